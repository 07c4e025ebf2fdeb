"""Token files of WSM, and batches from them.

A token file is a one-dimensional .npy array (uint8 or uint32), mapped into memory, so that a corpus
larger than memory costs nothing to open.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from steps.shared.runtime import InputError, stream

Batch = tuple[Tensor, Tensor]


def open_tokens(path: Path, context: int) -> np.ndarray:
    """Return the mapped tokens of a file; one too short for a sequence is an `InputError`."""
    try:
        tokens = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a token file ({error})") from None
    if tokens.ndim != 1 or len(tokens) <= context + 1:
        raise InputError(
            f"{path}: holds {tokens.shape} tokens, needs one dimension and over {context + 1}"
        )
    return tokens


def random_batches(
    tokens: np.ndarray, *, purpose: str, seed: int, first: int, last: int, batch: int, context: int
) -> Callable[[int], Batch]:
    """Return update -> (ids [B, T], targets [B, T]) for updates first..last.

    All offsets are drawn at once from the stream (wsm, purpose, seed), so update u reads the same
    sequences in every row and after every interruption.
    """
    rng = stream("wsm", purpose, seed)
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


def padded(items: list[tuple[list[int], int]], context: int) -> Batch:
    """Return (ids, targets) of token lists; only tokens from position `start` on are targets.

    `items` holds (tokens, start); shorter lists are padded. One over `context` + 1 tokens first
    loses the beginning of what is before `start`, down to half the context, then its end.
    """
    cut = [_cut(tokens, start, context) for tokens, start in items]
    length = max(len(tokens) for tokens, _ in cut) - 1
    ids = torch.zeros(len(items), length, dtype=torch.int64)
    targets = torch.full((len(items), length), -100)
    for index, (tokens, start) in enumerate(cut):
        row = torch.tensor(tokens)
        ids[index, : len(row) - 1] = row[:-1]
        targets[index, start - 1 : len(row) - 1] = row[start:]
    return ids, targets


def _cut(tokens: list[int], start: int, context: int) -> tuple[list[int], int]:
    if not 1 <= start < len(tokens):
        raise InputError(
            f"an item of {len(tokens)} tokens whose answer begins at {start}: must hold at least"
            " one token of a prompt and one of an answer"
        )
    excess = len(tokens) - (context + 1)
    drop = max(0, min(excess, start - context // 2))
    return tokens[drop : drop + context + 1], start - drop
