"""Batches of prompts with their answers: fine-tuning, multiple choice."""

import torch

from steps.shared.runtime import InputError
from steps.shared.token_files import Batch


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
