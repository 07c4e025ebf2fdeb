"""Weighted averages of checkpoints, streamed: `merged_j = sum_k weights[j, k] checkpoint_k`.

Several curves j take one pass over the mapped files, and what is held in memory is one block of
each sum. Floating tensors are averaged in float32 or float64 (the weights are never rounded to the
tensor's dtype) in a fixed order, so the result depends on neither threads nor the number of curves.
Integer and boolean tensors, configuration and tokenizer come from the last checkpoint. Tensors tied
in a model are treated as they were saved: once, or twice alike.

    merge_checkpoints(["step-100", "step-200"], [[0.5, 0.5]], ["merged"],
                      accumulate="float32", threads=2)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steps.shared.checkpoint_checks import check_alike, check_outs, check_weights
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
from steps.shared.checkpoint_memory import TensorMemory
from steps.shared.checkpoint_writer import CheckpointWriter
from steps.shared.runtime import InputError, progress

if TYPE_CHECKING:
    import torch

BLOCK = 65536  # elements summed at once by a thread: a float32 block stays in a 1 MiB cache
DTYPES = {"float32": "F32", "float64": "F64"}  # to sum in


def merge_checkpoints(
    folders: Sequence[str | Path],
    weights: Any,
    outs: Sequence[str | Path],
    *,
    accumulate: str,
    threads: int,
) -> None:
    """Write one merge of n checkpoints (oldest first) per row of `weights` (curves, n).

    An entry of `outs` ending in `.safetensors` becomes one file, any other a folder with the last
    checkpoint's shards and side files. Everything that can be checked beforehand is, and after any
    InputError nothing new is at `outs`.
    """
    merge = _merge([open_checkpoint(folder) for folder in folders], weights, accumulate)
    inputs = [checkpoint.path for checkpoint in merge.checkpoints]
    check_outs(inputs, len(merge.weights), [Path(out) for out in outs])
    extra = side_files(merge.last.path)
    with ExitStack() as stack:
        run = stack.enter_context(_workers(threads))
        writers = [stack.enter_context(CheckpointWriter(out, merge.specs, extra)) for out in outs]
        for name in progress(merge.specs, total=len(merge.specs), label="merge"):

            def work(begin: int, end: int, name: str = name) -> None:
                """Merge and write elements begin..end of one tensor, a block at a time."""
                dtype = STORAGE[merge.specs[name].dtype]
                rows = list(np.empty((len(writers), min(BLOCK, end - begin)), dtype))
                for start in range(begin, end, BLOCK):
                    rows = [row[: end - start] for row in rows]
                    merge.sum_into(name, rows, start)
                    for writer, row in zip(writers, rows, strict=True):
                        writer.write(name, row, start=start)

            run(work, merge.specs[name].size)


def merged_tensors(
    folders: Sequence[str | Path],
    weights: Any,
    *,
    accumulate: str,
    threads: int,
    memory: TensorMemory | None = None,
) -> "Iterator[tuple[str, list[torch.Tensor]]]":
    """Yield (name, [one merged tensor per row of `weights`]) without saving anything.

    `memory` given to several merges: a later one uses again what dropped tensors had.
    """
    merge = _merge([open_checkpoint(folder) for folder in folders], weights, accumulate)
    yield from _in_memory(merge, threads, memory or TensorMemory())


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
    """A validated merge: n checkpoints alike, weights (K, n)."""

    checkpoints: list[Checkpoint]
    weights: np.ndarray
    accumulate: str

    @property
    def last(self) -> Checkpoint:
        return self.checkpoints[-1]

    @property
    def specs(self) -> dict[str, Spec]:
        return self.last.specs

    def sum_into(self, name: str, outs: Sequence[np.ndarray], start: int) -> None:
        """Set each curve's array to elements `start`, ... of its tensor, as `STORAGE` says."""
        from steps.shared.weighted_sum import LARGEST, weighted_sum

        dtype = self.specs[name].dtype
        if dtype not in FLOATS:
            for out in outs:
                out[:] = self.last.data[name][start : start + out.size]
            return
        double = "F64" in (self.accumulate, dtype)
        weights = self.weights.astype(np.float64 if double else np.float32)
        sources = [checkpoint.data[name] for checkpoint in self.checkpoints]
        if not weighted_sum(sources, weights, outs, start=start) <= LARGEST[dtype]:  # or NaN
            raise InputError(self._blame(name))

    def _blame(self, name: str) -> str:
        from steps.shared.weighted_sum import weighted_sum

        for checkpoint in self.checkpoints:
            values = np.empty(self.specs[name].size, np.float64)
            source = [checkpoint.data[name]]
            if not np.isfinite(weighted_sum(source, np.ones((1, 1)), [values], start=0)):
                return f"{checkpoint.path}: tensor {name} holds NaN or infinity"
        return f"tensor {name}: the merged values do not fit {TORCH_NAMES[self.specs[name].dtype]}"


def _merge(checkpoints: list[Checkpoint], weights: Any, accumulate: str) -> _Merge:
    if not checkpoints:
        raise InputError("no checkpoints to merge (allowed: one or more)")
    if accumulate not in DTYPES:
        raise InputError(f"accumulate: {accumulate!r} (allowed: {', '.join(DTYPES)})")
    weights = check_weights(weights, len(checkpoints))
    for checkpoint in checkpoints[1:]:
        check_alike(checkpoints[0], checkpoint)
    return _Merge(checkpoints, weights, DTYPES[accumulate])


@contextmanager
def _workers(threads: int) -> Iterator[Callable[..., None]]:
    """Yield `run(work, size)`: `work(begin, end)` on `threads` threads over parts of `size`."""
    with ThreadPoolExecutor(threads) as pool:

        def run(work: Callable[[int, int], None], size: int) -> None:
            """Call `work` on parts of `range(size)` and wait; the first error is raised."""
            if threads == 1 or size <= BLOCK:
                work(0, size) if size else None
                return
            cuts = [size * part // threads for part in range(threads + 1)]
            for _ in pool.map(work, cuts[:-1], cuts[1:]):
                pass

        yield run


def _in_memory(
    merge: _Merge, threads: int, memory: TensorMemory
) -> "Iterator[tuple[str, list[torch.Tensor]]]":
    memory.expect(len(merge.weights) * sum(s.num_bytes for s in merge.specs.values()))
    with _workers(threads) as run:
        for name, spec in merge.specs.items():
            arrays = [memory.take(spec.size, STORAGE[spec.dtype]) for _ in merge.weights]

            def work(
                begin: int, end: int, name: str = name, arrays: list[np.ndarray] = arrays
            ) -> None:
                merge.sum_into(name, [array[begin:end] for array in arrays], begin)

            run(work, spec.size)
            yield name, [to_tensor(array, spec) for array in arrays]
            del arrays, work  # memory that the caller drops can be used for the next tensor
