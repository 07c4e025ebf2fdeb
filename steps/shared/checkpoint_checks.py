"""What a merge refuses before anything is written, in one line each."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steps.shared.checkpoint_files import Checkpoint
from steps.shared.runtime import InputError


def check_weights(weights: Any, num_checkpoints: int) -> np.ndarray:
    """Return weights as (curves, checkpoints) float64; rows that do not sum to 1 are warned of."""
    try:
        weights = np.atleast_2d(np.asarray(weights, np.float64))
    except (TypeError, ValueError):
        raise InputError("weights: not a rectangle of numbers (curves, checkpoints)") from None
    if weights.ndim != 2 or weights.shape[1] != num_checkpoints:
        raise InputError(f"weights: shape {weights.shape} for {num_checkpoints} checkpoints")
    if not np.isfinite(weights).all():
        raise InputError("weights: NaN or infinity (allowed: finite numbers)")
    if (abs(weights.sum(axis=1) - 1) > 1e-6).any():
        warnings.warn("weights that do not sum to 1 rescale the model", stacklevel=4)
    return weights


def check_alike(first: Checkpoint, other: Checkpoint) -> None:
    """Refuse two checkpoints whose tensors differ in name, dtype or shape."""
    for one, two in ((first, other), (other, first)):
        for name in sorted(one.specs.keys() - two.specs.keys()):
            raise InputError(f"{two.path}: tensor {name} is missing; {one.path} has it")
    for name, (dtype, shape, _) in first.specs.items():
        spec = other.specs[name]
        if (spec.dtype, spec.shape) != (dtype, shape):
            raise InputError(
                f"{other.path}: tensor {name} is {spec.dtype} {list(spec.shape)}; "
                f"in {first.path} it is {dtype} {list(shape)}"
            )


def check_outs(inputs: Sequence[Path], num_rows: int, outs: Sequence[Path]) -> None:
    """Refuse outputs that are too few, would overwrite an input or are of the wrong kind."""
    if len(outs) != num_rows:
        raise InputError(f"{len(outs)} outputs for {num_rows} rows of weights")
    used = [path.resolve() for path in [*inputs, *outs]]
    for out in outs:
        if used.count(out.resolve()) > 1:
            raise InputError(f"{out}: an output must be neither an input nor another output")
        if out.exists() and out.is_dir() == (out.suffix == ".safetensors"):
            raise InputError(
                f"{out}: exists and is not {'a folder' if out.is_file() else 'a file'}"
            )
