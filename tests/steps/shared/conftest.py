"""Fixtures that several test files of the shared steps use."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asset_packages import Registry

from steps.shared import config, tracking

ROOT = Path(__file__).resolve().parents[3]


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


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the repository's root, where the configuration is."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with copies of the configuration, to be broken, and work in it."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / config.SCALES, tmp_path / config.SCALES)
    monkeypatch.chdir(tmp_path)
    return tmp_path
