"""E-distance between groups of cells (Szekely and Rizzo, 2013), all pairs from blocked products.

Shapes: N cells, D dimensions, C groups.
"""

import numpy as np

from steps.shared.runtime import InputError

BLOCK = 128  # rows of the table of distances held at once


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
    num_groups = len(bounds) - 1
    squares_N = (x_ND**2).sum(axis=1)
    sums_CC = np.zeros((num_groups, num_groups))
    for group in range(num_groups):
        # only what follows: the table is symmetric
        after = slice(bounds[group], None)
        for begin in range(bounds[group], bounds[group + 1], BLOCK):
            rows = slice(begin, min(begin + BLOCK, bounds[group + 1]))
            table = (-2 * x_ND[rows]) @ x_ND[after].T
            table += squares_N[rows, None]
            table += squares_N[after]
            np.maximum(table, 0, out=table)
            np.sqrt(table, out=table)
            columns = bounds[group:-1] - bounds[group]
            sums_CC[group, group:] += np.add.reduceat(table.sum(axis=0), columns)
    return np.triu(sums_CC) + np.triu(sums_CC, 1).T
