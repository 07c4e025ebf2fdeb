"""The other packages of the races: pinned in benchmarks/<name>.txt, installed on first use.

A peer that clashes with this project's environment gets one of its own; the others are installed
without their dependencies in a folder beside it. Both are kept in RETABLE_CACHE.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from steps.shared.runtime import log

BENCHMARKS = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("RETABLE_CACHE", Path.home() / ".cache" / "retable"))


def environment(name: str) -> Path:
    """Return the folder of programs of a peer's own environment, made if it is not there."""
    programs = CACHE / f"bench-{name}" / "bin"

    def make() -> None:
        subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
        _install(programs / "python", name)

    _once(programs.parent, make)
    return programs


def beside(name: str) -> None:
    """Make the packages of benchmarks/<name>.txt importable, after those of the environment."""
    folder = CACHE / f"bench-{name}"
    _once(folder, lambda: _install(sys.executable, name, "--no-deps", "--target", folder))
    sys.path.append(str(folder))


def pinned(name: str, package: str) -> str:
    """Return the version of a package in benchmarks/<name>.txt."""
    lines = (BENCHMARKS / f"{name}.txt").read_text(encoding="utf-8").split()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def _once(folder: Path, make: Callable[[], None]) -> None:
    if not (folder / "made").exists():
        log(f"making {folder} (once)")
        make()
        (folder / "made").touch()


def _install(python: Path | str, name: str, *options: Path | str) -> None:
    pins = BENCHMARKS / f"{name}.txt"
    pip = [python, "-m", "pip", "install", "--quiet", *options, "-r", pins]
    subprocess.run(pip, check=True)
