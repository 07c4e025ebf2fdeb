"""What the tests of many steps share: a kill, what a job left, a small table of digits."""

import copy
import gzip
from pathlib import Path
from typing import Any

import numpy as np

from steps.shared.config_files import load


class Killed(Exception):
    """Stops a job in place of a kill."""


def contents(folder: str | Path) -> dict[str, bytes]:
    """Return the bytes of everything below a folder but folders, by path."""
    files = (path for path in Path(folder).rglob("*") if not path.is_dir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def random_digits(count: int, columns: int = 785) -> np.ndarray:
    """Return lines of random pixels and a label, the labels in blocks of one class."""
    table = np.random.default_rng(0).integers(0, 256, size=(count, columns))
    table[:, -1] = np.arange(count) * 10 // count
    return table


def write_digits(path: str | Path, table: np.ndarray) -> None:
    """Write a table in the form of the asset."""
    with gzip.open(path, "wt") as file:
        np.savetxt(file, table, fmt="%d", delimiter=",")


def changed(paper: str, path: str, value: Any) -> dict[str, Any]:
    """Return the configuration of scale mini with one key (a.b.c) of a paper's block replaced."""
    config = copy.deepcopy(load("mini"))
    node = config["papers"][paper]
    *above, last = path.split(".")
    for name in above:
        node = node[name]
    node[last] = value
    return config
