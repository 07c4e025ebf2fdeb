"""The phases of CellDuality on small tables, made once."""

from pathlib import Path

import pytest
from cellduality_runs import evaluated, merged, prepared, trained


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """A folder with all phases of four rows."""
    folder = tmp_path_factory.mktemp("cellduality")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        prepared()
        trained("train")
        evaluated("train", merged("train", "merge"), "runs")
    return folder


@pytest.fixture
def work(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    return made
