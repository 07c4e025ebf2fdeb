"""The two rewards of section 2.4: neither takes a true output, only the prompt's own input.

Shapes: N candidates, H hidden genes, J guessed genes. Genes are numbers, padded with -1.
"""

import numpy as np

from steps.shared.runtime import InputError

BLOCK = 2048  # candidates whose table of ranks is held at once


def label_reconstruction(label_N: np.ndarray, guessed_N: np.ndarray) -> np.ndarray:
    """Return 1 where the dual gives back the label of the prompt, else 0 (N), float64.

    A guess of -1 is an answer that names no label.
    """
    label_N, guessed_N = np.asarray(label_N), np.asarray(guessed_N)
    if label_N.shape != guessed_N.shape:
        raise InputError(f"{len(label_N)} labels and {len(guessed_N)} guesses: must be as many")
    if (label_N < 0).any():
        raise InputError("a prompt's label must be 0 or more")
    return (label_N == guessed_N).astype(np.float64)


def rank_weighted_jaccard(hidden_NH: np.ndarray, guessed_NJ: np.ndarray) -> np.ndarray:
    """Return the rank-weighted Jaccard similarity of each pair of gene lists (N), float64.

    With w(g, c) = 1 / rank of g in c, from 1, the sum over common genes of (w(g, hidden) +
    w(g, guessed)) / 2, divided by the sum over all genes of w(g, hidden), or of w(g, guessed) where
    g is not hidden. A repeated gene counts once, at its first place, and does not take up a rank.
    0 without a common gene, so also where nothing is hidden.

    As the formula is written it is 1 for any order of the same set: rank matters only where the
    sets differ. It is not symmetric.
    """
    hidden_NH, guessed_NJ = np.atleast_2d(hidden_NH), np.atleast_2d(guessed_NJ)
    if len(hidden_NH) != len(guessed_NJ):
        raise InputError(f"{len(hidden_NH)} hidden and {len(guessed_NJ)} guessed lists: as many")
    top = max(hidden_NH.max(initial=0), guessed_NJ.max(initial=0)) + 1
    found = [
        _block(hidden_NH[begin : begin + BLOCK], guessed_NJ[begin : begin + BLOCK], top)
        for begin in range(0, len(hidden_NH), BLOCK)
    ]
    return np.concatenate(found) if found else np.zeros(0)


def _block(hidden_NH: np.ndarray, guessed_NJ: np.ndarray, top: int) -> np.ndarray:
    hidden_w_NH, guessed_w_NJ = _weights(hidden_NH, top), _weights(guessed_NJ, top)
    table_NG = np.zeros((len(hidden_NH), top + 1))  # the last column takes what is padded
    rows = np.arange(len(hidden_NH))[:, None]
    # a repeated gene has weight 0 after its first place; written backwards, the first stays
    table_NG[rows, hidden_NH[:, ::-1]] = hidden_w_NH[:, ::-1]
    table_NG[:, -1] = 0
    hidden_at_NJ = table_NG[rows, guessed_NJ]
    common_NJ = (hidden_at_NJ > 0) & (guessed_w_NJ > 0)
    shared_N = np.where(common_NJ, (hidden_at_NJ + guessed_w_NJ) / 2, 0).sum(1)
    other_N = np.where(common_NJ, 0, guessed_w_NJ).sum(1)
    whole_N = hidden_w_NH.sum(1) + other_N
    return np.divide(shared_N, whole_N, out=np.zeros_like(shared_N), where=whole_N > 0)


def _weights(genes_NK: np.ndarray, top: int) -> np.ndarray:
    """Return 1 / rank of each gene at its first place, 0 elsewhere and where padded."""
    count, length = genes_NK.shape
    rows, places = np.arange(count)[:, None], np.arange(length, dtype=np.int16)
    first_NG = np.empty((count, top + 1), dtype=np.int16)
    first_NG[rows, genes_NK[:, ::-1]] = places[::-1]
    counts_NK = (first_NG[rows, genes_NK] == places) & (genes_NK >= 0)
    return counts_NK / np.maximum(np.cumsum(counts_NK, axis=1), 1)
