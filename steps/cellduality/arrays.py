"""The arrays of a seed's data that evaluation compares with, as one file of tensors.

Keys are <data set>/<field>; shapes as in the data modules.
"""

from pathlib import Path

import numpy as np
from scipy import sparse

from steps.cellduality.questions import Data
from steps.cellduality.splits import code
from steps.shared import tensor_files

FIELDS = {
    "cells": ("expression_NG", "sentence_NK", "type_N", "split_N"),
    "drugs": ("altered_LF", "label_LD", "split_L"),
    "perturbations": ("before_NG", "after_NG", "perturbation_N", "split_N"),
}


def of(data: Data) -> dict[str, np.ndarray]:
    """Return the arrays that evaluation reads, dense."""
    found = {}
    for name, fields in FIELDS.items():
        for field in fields:
            value = getattr(getattr(data, name), field)
            found[f"{name}/{field}"] = value.toarray() if sparse.issparse(value) else value
    return found


def read(path: Path) -> dict[str, np.ndarray]:
    """Read arrays.safetensors."""
    return tensor_files.read(path, "arrays as prepare writes them", framework="numpy")


def members(arrays: dict[str, np.ndarray], data: str, split: str) -> np.ndarray:
    """Return the places of a split's cells or lines, in order."""
    key = f"{data}/split_L" if data == "drugs" else f"{data}/split_N"
    return np.flatnonzero(arrays[key] == code(split))
