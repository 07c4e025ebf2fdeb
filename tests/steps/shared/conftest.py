"""Fixtures that several test files of the shared steps use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from asset_packages import Registry

from steps.shared import tracking


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Return a registry in place of pip, apt-get and npm."""
    return Registry(tmp_path, monkeypatch)


@pytest.fixture
def own_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test W&B without settings, and a folder of runs of its own."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setattr(tracking, "_off", False)
    yield
    tracking._close()
