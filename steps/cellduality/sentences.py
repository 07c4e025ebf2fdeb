"""Cell sentences: a cell as its genes in descending order of expression, and the way back.

Shapes: N cells, G genes, K genes of a sentence. A sentence is a row of places in the list of genes,
padded with -1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from steps.shared.runtime import InputError

PAD = -1
BLOCK = 2048  # cells sorted at once; their keys stay in the cache
_LAST = np.uint64(2**64 - 1)


def ranked_genes(matrix: Any, length: int) -> np.ndarray:
    """Return the sentences (N, `length`), int32, of a sparse or dense matrix (N, G).

    Descending expression, compared in float32; genes that are not expressed are dropped; genes of
    equal expression stay in the order of the columns. log1p and division by a cell's total keep
    the order; values below zero (standardised expression does not keep it) are an `InputError`.
    """
    if length < 1:
        raise InputError(f"length of a cell sentence = {length}: must be at least 1")
    csr = sparse.csr_matrix(matrix)
    values = csr.data.astype(np.float32, copy=False)
    if len(values) and not (values.min() >= 0 and np.isfinite(values.max())):
        raise InputError(
            "expression must be finite and not negative; standardised values have no cell sentence"
        )
    sentence_NK = np.full((csr.shape[0], length), PAD, dtype=np.int32)
    for begin in range(0, csr.shape[0], BLOCK):
        rows = slice(begin, min(begin + BLOCK, csr.shape[0]))
        bounds = csr.indptr[rows.start : rows.stop + 1]
        part = slice(bounds[0], bounds[-1])
        ordered = _smallest(_padded(_keys(values[part], csr.indices[part]), bounds), length)
        genes = ordered.astype(np.uint32).view(np.int32)  # the lower half
        genes[ordered == _LAST] = PAD
        sentence_NK[rows, : genes.shape[1]] = genes
    return sentence_NK


def _keys(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return integers that sort by descending value, then by column; of a zero the largest."""
    keys = (~values.view(np.uint32)).astype(np.uint64)  # positive floats sort as their bits
    keys <<= np.uint64(32)
    keys |= columns.astype(np.uint64)
    keys[values == 0] = _LAST
    return keys


def _padded(keys: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the keys of some rows as a rectangle, filled up with the largest key."""
    counts = np.diff(bounds)
    padded = np.full((len(counts), max(1, counts.max(initial=0))), _LAST)
    padded[np.arange(padded.shape[1]) < counts[:, None]] = keys
    return padded


def _smallest(padded: np.ndarray, length: int) -> np.ndarray:
    """Return the `length` smallest keys of each row, sorted."""
    if length < padded.shape[1] // 2:
        padded = np.partition(padded, length - 1, axis=1)[:, :length]
    return np.sort(padded, axis=1)[:, :length]


@dataclass(frozen=True)
class RankLine:
    """Expression by rank: value = intercept + slope x log(rank), rank from 1, never below 0.

    A sentence has no values; the line, fitted once on training cells, gives them back.
    """

    slope: float
    intercept: float

    @classmethod
    def fit(cls, matrix: Any, sentence_NK: np.ndarray) -> "RankLine":
        """Fit by least squares on all genes of the sentences of a matrix (N, G)."""
        row, place = np.nonzero(sentence_NK != PAD)
        if len(row) < 2 or place.max() == 0:
            raise InputError("a rank line needs sentences of two genes or more")
        csr = sparse.csr_matrix(matrix)
        values = np.asarray(csr[row, sentence_NK[row, place]], dtype=float).ravel()
        slope, intercept = np.polyfit(np.log(place + 1.0), values, 1)
        return cls(float(slope), float(intercept))

    def expression(self, sentence_NK: np.ndarray, num_genes: int) -> np.ndarray:
        """Return expression (N, G), float32; a gene named twice has the value of its first."""
        length = sentence_NK.shape[1]
        value_K = self.intercept + self.slope * np.log(np.arange(length) + 1.0)
        value_K = np.maximum(value_K, 0).astype(np.float32)
        found_NG = np.zeros((len(sentence_NK), num_genes), dtype=np.float32)
        for place in range(length - 1, -1, -1):  # the first of two comes last and stays
            rows = np.flatnonzero(sentence_NK[:, place] != PAD)
            found_NG[rows, sentence_NK[rows, place]] = value_K[place]
        return found_NG
