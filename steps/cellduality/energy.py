"""E-distance between groups of cells (Szekely and Rizzo, 2013), all pairs from blocked products.

Shapes: N cells, D dimensions, C groups.
"""

import numpy as np

from steps.shared.runtime import InputError

BLOCK = 1024  # rows of the table of distances held at once


def energy_distances(x_ND: np.ndarray, group_N: np.ndarray, num_groups: int) -> np.ndarray:
    """Return the E-distances of all pairs of groups (C, C), float64.

    2 E|X - Y| - E|X - X'| - E|Y - Y'| of Euclidean distances; the means within a group run over
    all pairs, a cell with itself included, so that the diagonal is 0 and nothing is negative.
    """
    counts_C = np.bincount(group_N, minlength=num_groups)
    if len(counts_C) > num_groups or counts_C.min() < 1:
        raise InputError(f"group {counts_C.argmin()} has no cell")
    order = np.argsort(group_N, kind="stable")
    x_ND = np.ascontiguousarray(x_ND[order], dtype=float)
    bounds = np.concatenate([[0], np.cumsum(counts_C)])
    sums_NC = np.empty((len(x_ND), num_groups))
    squares_N = (x_ND**2).sum(axis=1)
    for begin in range(0, len(x_ND), BLOCK):
        rows = slice(begin, begin + BLOCK)
        table = x_ND[rows] @ x_ND.T
        table *= -2
        table += squares_N[rows, None]
        table += squares_N
        np.sqrt(table.clip(0, out=table), out=table)
        sums_NC[rows] = np.add.reduceat(table, bounds[:-1], axis=1)
    mean_CC = np.add.reduceat(sums_NC, bounds[:-1], axis=0) / np.outer(counts_C, counts_C)
    within_C = np.diag(mean_CC)
    return 2 * mean_CC - within_C[:, None] - within_C
