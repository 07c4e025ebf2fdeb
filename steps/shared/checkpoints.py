"""Weighted averages of checkpoints, streamed: `merged_j = sum_k weights[j, k] checkpoint_k`.

Several curves j take one pass over the mapped files, and what is held in memory is one block of
each sum. Floating tensors are averaged in float32 or float64 (the weights are never rounded to the
tensor's dtype) in a fixed order, so the result depends on neither threads nor the number of curves.
Integer and boolean tensors, configuration and tokenizer come from the last checkpoint. Tensors tied
in a model are treated as they were saved: once, or twice alike.

    merge_checkpoints(["step-100", "step-200"], [[0.5, 0.5]], ["merged"],
                      accumulate="float32", threads=2)
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steps.shared.checkpoint_files import (
    FLOATS,
    STORAGE,
    TORCH_NAMES,
    Checkpoint,
    Spec,
    from_tensors,
    open_checkpoint,
    side_files,
    to_tensor,
)
from steps.shared.checkpoint_writer import CheckpointWriter
from steps.shared.runtime import InputError, progress

if TYPE_CHECKING:
    import torch

BLOCK = 65536  # elements summed at once by a thread: a float32 block stays in a 1 MiB cache
DTYPES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "float16": "F16"}

Sink = Callable[[int, int, np.ndarray], None]  # curve, first element, values


def merge_checkpoints(
    folders: Sequence[str | Path],
    weights: Any,
    outs: Sequence[str | Path],
    *,
    accumulate: str,
    save_dtype: str | None = None,
    threads: int,
) -> None:
    """Write one merge of n checkpoints (oldest first) per row of `weights` (curves, n).

    An entry of `outs` ending in `.safetensors` becomes one file, any other a folder with the last
    checkpoint's shards and side files. `save_dtype` None keeps each tensor's dtype. Everything that
    can be checked beforehand is, and after any InputError nothing new is at `outs`.
    """
    merge = _merge([open_checkpoint(folder) for folder in folders], weights, accumulate, save_dtype)
    _check_outs(merge, [Path(out) for out in outs])
    extra = side_files(merge.last.path, save_dtype)
    with ExitStack() as stack:
        run = stack.enter_context(_workers(threads))
        writers = [stack.enter_context(CheckpointWriter(out, merge.specs, extra)) for out in outs]
        for name in progress(merge.specs, total=len(merge.specs), label="merge"):

            def sink(curve: int, start: int, values: np.ndarray, name: str = name) -> None:
                writers[curve].write(name, values, start=start)

            merge.reduce(name, sink, run)


def merged_tensors(
    folders: Sequence[str | Path],
    weights: Any,
    *,
    accumulate: str,
    save_dtype: str | None = None,
    threads: int,
) -> "Iterator[tuple[str, list[torch.Tensor]]]":
    """Yield (name, [one merged tensor per row of `weights`]) without saving anything."""
    merge = _merge([open_checkpoint(folder) for folder in folders], weights, accumulate, save_dtype)
    yield from _in_memory(merge, threads)


def average(
    state_dicts: "Sequence[Mapping[str, torch.Tensor]]", weights: Any, *, accumulate: str
) -> "dict[str, torch.Tensor]":
    """Return the average of state dicts in memory by `weights` (n,)."""
    checkpoints = [from_tensors(f"state dict {i}", state) for i, state in enumerate(state_dicts)]
    merge = _merge(checkpoints, np.reshape(weights, (1, -1)), accumulate, None)
    return {name: tensor for name, (tensor,) in _in_memory(merge, threads=1)}


def save_model(path: str | Path, state_dict: "Mapping[str, torch.Tensor]") -> None:
    """Write a state dict to `path` (a folder, or a `.safetensors` file) atomically.

    The bytes depend only on names, dtypes, shapes and values.
    """
    checkpoint = from_tensors(str(path), state_dict)
    with CheckpointWriter(path, checkpoint.specs, {}) as writer:
        for name, values in checkpoint.data.items():
            writer.write(name, values, start=0)


def load_model(path: str | Path) -> "dict[str, torch.Tensor]":
    """Read a checkpoint's tensors into memory of their own."""
    checkpoint = open_checkpoint(path)
    return {
        name: to_tensor(values.copy(), checkpoint.specs[name])
        for name, values in checkpoint.data.items()
    }


@dataclass(frozen=True)
class _Merge:
    """A validated merge: n checkpoints alike in `specs` (as they will be saved), weights (K, n)."""

    checkpoints: list[Checkpoint]
    weights: np.ndarray
    accumulate: str
    specs: dict[str, Spec]

    @property
    def last(self) -> Checkpoint:
        return self.checkpoints[-1]

    def reduce(self, name: str, sink: Sink, run: Callable[..., None]) -> None:
        """Send every block of every curve's tensor `name` to `sink`, from several threads."""
        if self.specs[name].dtype not in FLOATS:
            for curve in range(len(self.weights)):
                sink(curve, 0, self.last.data[name])
            return
        double = "F64" in (self.accumulate, self.last.specs[name].dtype)
        weights = self.weights.astype(np.float64 if double else np.float32)
        run(lambda begin, end: self._span(name, weights, begin, end, sink), self.specs[name].size)

    def _span(self, name: str, weights: np.ndarray, begin: int, end: int, sink: Sink) -> None:
        from steps.shared.weighted_sum import LARGEST, narrow, weighted_sum

        dtype = self.specs[name].dtype
        limit = LARGEST[dtype]
        sources = [checkpoint.data[name] for checkpoint in self.checkpoints]
        sums = np.empty((len(weights), min(BLOCK, end - begin)), weights.dtype)
        for start in range(begin, end, BLOCK):
            rows = list(sums[:, : end - start])
            weighted_sum(sources, weights, rows, start=start)
            for curve, values in enumerate(rows):
                low, high = float(values.min()), float(values.max())
                if not (low >= -limit and high <= limit):  # NaN compares false
                    raise InputError(self._blame(name))
                sink(curve, start, narrow(values, dtype))

    def _blame(self, name: str) -> str:
        from steps.shared.weighted_sum import weighted_sum

        for checkpoint in self.checkpoints:
            values = np.empty(self.specs[name].size, np.float64)
            weighted_sum([checkpoint.data[name]], np.ones((1, 1)), [values], start=0)
            if not np.isfinite(values).all():
                return f"{checkpoint.path}: tensor {name} holds NaN or infinity"
        return f"tensor {name}: the merged values do not fit {TORCH_NAMES[self.specs[name].dtype]}"


def _merge(
    checkpoints: list[Checkpoint], weights: Any, accumulate: str, save_dtype: str | None
) -> _Merge:
    if not checkpoints:
        raise InputError("no checkpoints to merge (allowed: one or more)")
    if accumulate not in ("float32", "float64"):
        raise InputError(f"accumulate: {accumulate!r} (allowed: float32, float64)")
    if save_dtype is not None and save_dtype not in DTYPES:
        raise InputError(f"save_dtype: {save_dtype!r} (allowed: {', '.join(DTYPES)})")
    weights = _check_weights(weights, len(checkpoints))
    for checkpoint in checkpoints[1:]:
        _check_alike(checkpoints[0], checkpoint)
    specs = {
        name: spec._replace(dtype=DTYPES[save_dtype])
        if save_dtype and spec.dtype in FLOATS
        else spec
        for name, spec in checkpoints[-1].specs.items()
    }
    return _Merge(checkpoints, weights, DTYPES[accumulate], specs)


def _check_weights(weights: Any, num_checkpoints: int) -> np.ndarray:
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


def _check_alike(first: Checkpoint, other: Checkpoint) -> None:
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


def _check_outs(merge: _Merge, outs: list[Path]) -> None:
    if len(outs) != len(merge.weights):
        raise InputError(f"{len(outs)} outputs for {len(merge.weights)} rows of weights")
    used = [path.resolve() for path in [*(c.path for c in merge.checkpoints), *outs]]
    for out in outs:
        if used.count(out.resolve()) > 1:
            raise InputError(f"{out}: an output must be neither an input nor another output")
        if out.exists() and out.is_dir() == (out.suffix == ".safetensors"):
            raise InputError(
                f"{out}: exists and is not {'a folder' if out.is_file() else 'a file'}"
            )


@contextmanager
def _workers(threads: int) -> Iterator[Callable[..., None]]:
    """Yield `run(work, size)`: `work(begin, end)` on `threads` threads over parts of `size`."""
    with ThreadPoolExecutor(threads) as pool:

        def run(work: Callable[[int, int], None], size: int) -> None:
            if threads == 1 or size <= BLOCK:
                work(0, size) if size else None
                return
            cuts = [size * part // threads for part in range(threads + 1)]
            for _ in pool.map(work, cuts[:-1], cuts[1:]):
                pass

        yield run


def _in_memory(merge: _Merge, threads: int) -> "Iterator[tuple[str, list[torch.Tensor]]]":
    with _workers(threads) as run:
        for name, spec in merge.specs.items():
            arrays = [np.empty(spec.size, STORAGE[spec.dtype]) for _ in merge.weights]

            def sink(
                curve: int, start: int, values: np.ndarray, arrays: list[np.ndarray] = arrays
            ) -> None:
                arrays[curve][start : start + values.size] = values

            merge.reduce(name, sink, run)
            yield name, [to_tensor(array, spec) for array in arrays]
