"""Token files of language models, and batches from them.

A token file is a one-dimensional .npy array of unsigned integers, written document by document and
mapped into memory to be read, so that a corpus may be larger than memory.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from steps.shared.runtime import InputError, atomic_path, reading, remedy, stream

Batch = tuple[Tensor, Tensor]


class TokenWriter:
    """Appends documents to a token file while they fit `limit` tokens; see `token_writer`."""

    def __init__(self, file: BinaryIO, dtype: np.dtype, limit: int) -> None:
        """Write the header of an empty array."""
        self.documents = self.tokens = self.bytes = 0
        self.full = False
        self._file, self._dtype, self._limit = file, np.dtype(dtype), limit
        self._header()

    def add(self, text: str, ids: np.ndarray) -> None:
        """Append a whole document; the first one that does not fit makes the file full."""
        self.full = self.full or self.tokens + len(ids) > self._limit
        if self.full:
            return
        self._file.write(ids.astype(self._dtype, copy=False).tobytes())
        self.documents += 1
        self.tokens += len(ids)
        self.bytes += len(text.encode())

    def close(self) -> None:
        """Write the length into the header, in which numpy leaves room for it."""
        self._file.seek(0)
        self._header()

    def _header(self) -> None:
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(self._file, header)


@contextmanager
def token_writer(path: Path, *, dtype: np.dtype, limit: int) -> Iterator[TokenWriter]:
    """Open a token file for writing; it appears at `path`, whole, when the block ends."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        writer = TokenWriter(file, dtype, limit)
        yield writer
        writer.close()


def open_tokens(path: Path, context: int, vocabulary: int | None = None) -> np.ndarray:
    """Return the mapped tokens of a file; one too short for a sequence is an `InputError`.

    With a `vocabulary`, the file is read once to see that every token is below it.
    """
    with reading(path, "a token file"):
        tokens = np.load(path, mmap_mode="r")
    if tokens.ndim != 1 or len(tokens) <= context + 1:
        raise InputError(
            f"{path}: holds {tokens.shape} tokens, needs one dimension and over {context + 1}"
            f"{remedy(path)}"
        )
    if tokens.dtype.kind != "u":
        raise InputError(f"{path}: holds {tokens.dtype}, needs unsigned integers{remedy(path)}")
    if vocabulary is not None and (highest := int(tokens.max())) >= vocabulary:
        raise InputError(f"{path}: token {highest}: must be below {vocabulary}{remedy(path)}")
    return tokens


def random_batches(
    tokens: np.ndarray,
    *,
    paper: str,
    purpose: str,
    seed: int,
    first: int,
    last: int,
    batch: int,
    context: int,
) -> Callable[[int], Batch]:
    """Return update -> (ids [B, T], targets [B, T]) for updates first..last.

    All offsets are drawn at once from the stream (paper, purpose, seed), so update u reads the same
    sequences in every row and after every interruption.
    """
    rng = stream(paper, purpose, seed)
    offsets = rng.integers(0, len(tokens) - context - 1, size=(last - first + 1, batch))

    def read(update: int) -> Batch:
        rows = [tokens[begin : begin + context + 1] for begin in offsets[update - first]]
        ids = torch.from_numpy(np.stack(rows).astype(np.int64))
        return ids[:, :-1], ids[:, 1:]

    return read


def sequential_batches(tokens: np.ndarray, *, batch: int, context: int) -> list[Batch]:
    """Cut tokens into disjoint windows [B, T] that predict every token but the first once."""
    count = (len(tokens) - 1) // context
    inputs = np.asarray(tokens[: count * context]).reshape(count, context).astype(np.int64)
    targets = np.asarray(tokens[1 : count * context + 1]).reshape(count, context).astype(np.int64)
    pairs = (torch.from_numpy(inputs), torch.from_numpy(targets))
    return list(zip(*(part.split(batch) for part in pairs), strict=True))
