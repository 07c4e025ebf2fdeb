"""E-distance between groups of cells (Szekely and Rizzo, 2013), all pairs from blocked products.

Shapes: N cells, D dimensions, C groups.
"""

import numpy as np

from steps.shared.runtime import InputError

BLOCK = 512  # cells of a group taken at once; a table of that side stays in the cache


def energy_distances(x_ND: np.ndarray, group_N: np.ndarray, num_groups: int) -> np.ndarray:
    """Return the E-distances of all pairs of groups (C, C), float64.

    2 E|X - Y| - E|X - X'| - E|Y - Y'| of Euclidean distances; the means within a group run over
    all pairs, a cell with itself included, so that the diagonal is 0 and nothing is negative.
    """
    counts_C = np.bincount(group_N, minlength=num_groups)
    if len(counts_C) > num_groups or counts_C.min() < 1:
        raise InputError(f"group {counts_C.argmin()} has no cell")
    order = np.argsort(group_N, kind="stable")
    x_ND = x_ND[order].astype(float)
    x_ND -= x_ND.mean(axis=0)  # far from the origin the squares would lose digits
    bounds = np.concatenate([[0], np.cumsum(counts_C)])
    mean_CC = _sums(x_ND, bounds) / np.outer(counts_C, counts_C)
    within_C = np.diag(mean_CC)
    return 2 * mean_CC - within_C[:, None] - within_C


def _sums(x_ND: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the sum of distances of each pair of groups; group c is bounds[c] : bounds[c + 1]."""
    squares_N1 = (x_ND**2).sum(axis=1, keepdims=True)
    one_N1 = np.ones_like(squares_N1)
    # the product of the two is |x|^2 - 2 x y + |y|^2
    left_ND = np.concatenate([-2 * x_ND, squares_N1, one_N1], axis=1)
    right_DN = np.concatenate([x_ND, one_N1, squares_N1], axis=1).T
    blocks = [
        (group, slice(begin, min(begin + BLOCK, bounds[group + 1])))
        for group in range(len(bounds) - 1)
        for begin in range(bounds[group], bounds[group + 1], BLOCK)
    ]
    sums_CC = np.zeros((len(bounds) - 1,) * 2)
    for place, (group, rows) in enumerate(blocks):
        for other, columns in blocks[place:]:
            table = left_ND[rows] @ right_DN[:, columns]
            np.maximum(table, 0, out=table)
            total = np.sqrt(table, out=table).sum()
            sums_CC[group, other] += total
            if columns != rows:
                sums_CC[other, group] += total
    return sums_CC
