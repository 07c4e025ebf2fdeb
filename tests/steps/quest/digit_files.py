"""A small table of digits in the form of the asset, for the tests of images."""

import gzip
from pathlib import Path

import numpy as np


def write_digits(path: Path, *, count: int, columns: int = 785) -> np.ndarray:
    """Write `count` lines of random pixels, the labels in blocks of one class; return the table."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 256, size=(count, columns))
    table[:, -1] = np.arange(count) * 10 // count
    with gzip.open(path, "wt") as file:
        np.savetxt(file, table, fmt="%d", delimiter=",")
    return table
