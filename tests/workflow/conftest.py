"""Scratch projects for the scenario tests: built and run once, copied for each scenario."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch import Project, commit, fill_cache, init, write_tree
from smoke_tree import smoke_run, tracked_copy


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all projects share, the same one for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    worker = base.name.startswith("popen-")
    return (base.parent if worker else base) / "scratch"


@pytest.fixture(scope="session")
def recorded(shared: Path) -> Project:
    """Return a project of two papers, run to the end and recorded with DVC; do not change it."""
    shared.mkdir(exist_ok=True)
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        project = Project(shared / "recorded", shared)
        if not (shared / "complete").exists():
            fill_cache(shared / "cache")
            write_tree(project.root, ["alpha", "beta"])
            init(project)
            project.run("snakemake", "-c2")
            (shared / "executed.txt").write_text("\n".join(project.executed()))
            project.run("dvc", "commit", "-f", "-q")
            commit(project, "results")
            (shared / "complete").touch()
    return project


@pytest.fixture
def project(recorded: Project, shared: Path, tmp_path: Path) -> Project:
    """Return a copy of the recorded project that a scenario may change."""
    return recorded.copy(tmp_path / "project", shared)


@pytest.fixture
def fresh(shared: Path, tmp_path: Path) -> Callable[..., Project]:
    """Return a maker of projects that never ran: `fresh(name, papers, **block)`."""
    fill_cache(shared / "cache")

    def make(name: str, papers: tuple[str, ...] = ("alpha",), **block: object) -> Project:
        project = Project(tmp_path / name, shared)
        write_tree(project.root, papers, **block)
        return project

    return make


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree in which the whole workflow ran at scale smoke."""
    tree = tracked_copy(tmp_path_factory.mktemp("smoke") / "tree")
    assert smoke_run(tree).returncode == 0
    return tree
