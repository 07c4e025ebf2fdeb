"""The reward of reconstructed genes: it takes no true output, only what the prompt itself hides.

Shapes: N candidates, H hidden genes, J guessed genes. Genes are numbers, padded with -1.
"""

import numpy as np
from numba import njit

from steps.shared.runtime import InputError


def rank_weighted_jaccard(hidden_NH: np.ndarray, guessed_NJ: np.ndarray) -> np.ndarray:
    """Return the rank-weighted Jaccard similarity of each pair of gene lists (N), float64.

    With w(g, c) = 1 / rank of g in c, from 1, the sum over common genes of (w(g, hidden) +
    w(g, guessed)) / 2, divided by the sum over all genes of w(g, hidden), or of w(g, guessed) where
    g is not hidden. A repeated gene counts once, at its first place, and does not take up a rank.
    0 without a common gene, so also where nothing is hidden.

    As the formula is written it is 1 for any order of the same set: rank matters only where the
    sets differ. It is not symmetric.
    """
    hidden_NH, guessed_NJ = (
        np.atleast_2d(np.asarray(genes, dtype=np.int64)) for genes in (hidden_NH, guessed_NJ)
    )
    if len(hidden_NH) != len(guessed_NJ):
        raise InputError(f"{len(hidden_NH)} hidden and {len(guessed_NJ)} guessed lists: as many")
    num_genes = max(hidden_NH.max(initial=0), guessed_NJ.max(initial=0)) + 1
    return _similarities(hidden_NH, guessed_NJ, num_genes)


@njit(cache=True)
def _similarities(hidden_NH: np.ndarray, guessed_NJ: np.ndarray, num_genes: int) -> np.ndarray:
    found_N = np.zeros(len(hidden_NH))
    hidden_weight_G = np.zeros(num_genes)
    # the last candidate whose list has the gene: the tables are never cleared
    hidden_in_G, guessed_in_G = np.full(num_genes, -1), np.full(num_genes, -1)
    for candidate in range(len(hidden_NH)):
        whole = shared = 0.0
        rank = 0
        for gene in hidden_NH[candidate]:
            if gene >= 0 and hidden_in_G[gene] != candidate:
                rank += 1
                hidden_in_G[gene] = candidate
                hidden_weight_G[gene] = 1 / rank
                whole += 1 / rank
        rank = 0
        for gene in guessed_NJ[candidate]:
            if gene >= 0 and guessed_in_G[gene] != candidate:
                rank += 1
                guessed_in_G[gene] = candidate
                if hidden_in_G[gene] == candidate:
                    shared += (hidden_weight_G[gene] + 1 / rank) / 2
                else:
                    whole += 1 / rank
        found_N[candidate] = shared / whole if whole > 0 else 0.0
    return found_N
