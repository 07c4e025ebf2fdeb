"""A scratch project for the scenario tests: the real workflow around paper-shaped fixtures."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from steps.shared.asset_manifest import load_manifest
from steps.shared.config import PHASES

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).with_name("fixture")
CODE = ("Snakefile", "dvc.yaml", ".dvcignore", ".gitignore", "steps/__init__.py")
BYTECODE = shutil.ignore_patterns("__pycache__")
# what the fixture trains, and what Snakemake says when all is done
ROWS, SEEDS = ("constant", "decayed"), (0, 1)
NOTHING = "Nothing to be done"


class Project:
    """A project folder, with its environment and the count of step executions."""

    def __init__(self, root: Path, shared: Path) -> None:
        """`shared` holds what all projects of a test session use: caches, git settings."""
        self.root = root
        self.count = root.with_name(f"{root.name}.count")
        self._seen = 0
        self.env = _environment(shared) | {"RETABLE_COUNT": str(self.count)}

    def copy(self, target: Path, shared: Path) -> "Project":
        """Return a copy in `target`, times included, as `cp -a` makes it."""
        shutil.copytree(self.root, target, symlinks=True)
        return Project(target, shared)

    def run(
        self, *command: str, check: bool = True, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `check` asserts success and shows the output otherwise."""
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.env | dict(env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert not check or done.returncode == 0, f"{command}\n{done.stdout}"
        return done

    def start(self, *command: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a command as a process group of its own."""
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.env | dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def executed(self) -> list[str]:
        """Return the executions since the last call, sorted; each is 'step row seed'."""
        lines = self.lines()
        new, self._seen = lines[self._seen :], len(lines)
        return sorted(new)

    def lines(self) -> list[str]:
        """Return all executions so far, in order."""
        return self.count.read_text().splitlines() if self.count.exists() else []

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace `old`, which must be there exactly once, in a file."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1, (path, old)
        (self.root / path).write_text(text.replace(old, new))

    def set(self, key: str, value: Any) -> None:
        """Set a dotted key below `papers` in params.yaml."""
        path = self.root / "params.yaml"
        config = yaml.safe_load(path.read_text())
        *parents, last = key.split(".")
        node = config["papers"]
        for name in parents:
            node = node[name]
        node[last] = value
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def results(self) -> dict[str, bytes]:
        """Return the bytes of every result file, by path."""
        files = sorted((self.root / "results").rglob("*"))
        return {str(f.relative_to(self.root)): f.read_bytes() for f in files if f.is_file()}


def _environment(shared: Path) -> dict[str, str]:
    """Return an environment without the settings of whoever runs the tests."""
    dropped = ("PYTHON", "SNAKEMAKE", "DVC", "GIT", "RETABLE", "XDG", "WANDB")
    env = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    git = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "Test"), ("EMAIL", "test@example.org"))
    }
    return (
        env
        | git
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}",
            "RETABLE_CACHE": str(shared / "cache"),
            "XDG_CACHE_HOME": str(shared / "xdg"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "DVC_NO_ANALYTICS": "1",
            "DVC_GLOBAL_CONFIG_DIR": str(shared / "dvc"),
            "DVC_SITE_CACHE_DIR": str(shared / "dvc-site"),
            "WANDB_MODE": "disabled",
            "OMP_NUM_THREADS": "1",
        }
    )


def fill_cache(cache: Path) -> None:
    """Put a small stand-in for one asset into the cache, so that nothing is downloaded."""
    asset = load_manifest()["wordnet"]
    for member in asset.members:
        path = cache / "assets" / asset.folder / member
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"stand-in for {member}\n")


def write_tree(root: Path, papers: Iterable[str], **block: Any) -> None:
    """Write the tracked tree: the real workflow and code, and a fixture for each paper.

    `block` replaces keys of every paper's configuration.
    """
    for name in CODE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in ("steps/shared", "kernels", "workflow"):
        shutil.copytree(ROOT / name, root / name, ignore=BYTECODE)
    shutil.copy(ROOT / "profiles", root / "profiles", follow_symlinks=False)
    for path in [*root.glob("workflow/rules/*.smk"), *root.glob("workflow/scales/*")]:
        if path.stem not in ("common", "assets", "tables"):
            path.unlink()
    dvc = root / "dvc.yaml"
    dvc.write_text(dvc.read_text().replace("wsm", "alpha"))
    config: dict[str, Any] = {"scale": "mini", "papers": {}}
    for paper in papers:
        _write_paper(root, paper)
        text = (FIXTURE / "params.yaml").read_text()
        config["papers"][paper] = yaml.safe_load(text) | block
    (root / "params.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def _write_paper(root: Path, paper: str) -> None:
    files = {path: root / "steps" / paper / path.name for path in (FIXTURE / "alpha").glob("*.*")}
    files[FIXTURE / "alpha.smk"] = root / f"workflow/rules/{paper}.smk"
    for source, target in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text().replace("alpha", paper))


def init(project: Project) -> None:
    """Make the tree a git and DVC repository with one commit."""
    project.run("git", "init", "-q", "-b", "main")
    project.run("dvc", "init", "-q")
    project.run("dvc", "config", "core.analytics", "false")
    commit(project, "tree")


def commit(project: Project, message: str) -> None:
    """Commit everything that git does not ignore."""
    project.run("git", "add", "-A")
    project.run("git", "commit", "-q", "-m", message)


def wait_for(moment: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until `moment`; a process that ends before it is an error."""
    until = time.monotonic() + 120
    while not moment():
        if process.poll() is not None:
            raise AssertionError(f"ended before the moment:\n{process.communicate()[0]}")
        assert time.monotonic() < until, "the moment did not come"
        time.sleep(0.02)


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill -9 the whole process group, as a power cut would."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def trains(paper: str, rows: Iterable[str] = ROWS, seeds: Iterable[int] = SEEDS) -> list[str]:
    """Return the training steps of a paper."""
    return [f"{paper}.train {row} {seed}" for row in rows for seed in seeds]


def merges(paper: str, seeds: Iterable[int] = SEEDS) -> list[str]:
    """Return the merging steps of a paper."""
    return [f"{paper}.merge - {seed}" for seed in seeds]


def since(paper: str, phase: str) -> list[str]:
    """Return all steps of a paper from `phase` on, sorted."""
    steps = {
        "prepare": [f"{paper}.prepare - -"],
        "train": trains(paper),
        "merge": merges(paper),
        "evaluate": [f"{paper}.evaluate - -"],
    }
    return sorted(sum((steps[name] for name in PHASES[PHASES.index(phase) :]), []))


def assert_settled(project: Project) -> None:
    """Assert that neither engine has anything left to do, or to record."""
    assert NOTHING in project.run("snakemake", "-n").stdout
    project.run("dvc", "status", "-q")
