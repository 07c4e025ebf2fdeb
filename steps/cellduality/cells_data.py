"""Measured blood cells: pbmc68k_reduced, 700 cells of Zheng et al. (2017), for ANN and GEN.

The file comes inside scanpy. Its X is standardised, which destroys the order of expression; what is
read is `raw`, log1p of counts per cell. Shapes: N cells, G genes, K genes of a sentence.
"""

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse

from steps.cellduality.data_config import Cells
from steps.cellduality.sentences import ranked_genes
from steps.cellduality.splits import TRAIN, members, stratified
from steps.shared.runtime import InputError, reading, stream

FILE = "datasets/10x_pbmc68k_reduced.h5ad"  # in scanpy's package


@dataclass(frozen=True)
class CellData:
    """Cells of one seed: expression, sentences, types, splits."""

    genes: tuple[str, ...]  # G, in the order of the file
    types: tuple[str, ...]  # names of the types, sorted
    expression_NG: sparse.csr_matrix  # float32, log1p
    sentence_NK: np.ndarray  # int32, places in `genes`, -1 padded
    type_N: np.ndarray  # int64, places in `types`
    split_N: np.ndarray  # int8, codes of splits.SPLITS

    def members(self, split: str) -> np.ndarray:
        """Return the places of a split's cells, in order."""
        return members(self.split_N, split)


def load(settings: Cells, seed: int) -> CellData:
    """Read the cells, split them (stream `split`) and choose genes by training cells alone."""
    expression_NA, genes, types_N, clusters_N = read(scanpy_file(FILE))
    held_out_N = _held_out(settings.held_out, types_N, clusters_N)
    kept_N = _common(types_N, held_out_N, settings.min_cells)
    expression_NA, held_out_N = expression_NA[kept_N], held_out_N[kept_N]
    types, type_N = np.unique(types_N[kept_N], return_inverse=True)
    split_N = stratified(
        type_N,
        held_out_N,
        settings.validation_share,
        settings.test_share,
        stream("cellduality", "split", seed),
    )
    chosen = most_variable(expression_NA[split_N == TRAIN], settings.num_genes)
    expression_NG = sparse.csr_matrix(expression_NA[:, chosen])
    sentence_NK = ranked_genes(expression_NG, settings.length)
    if (sentence_NK[:, 1] < 0).any():
        raise InputError(f"num_genes = {settings.num_genes}: some cells express fewer than two")
    return CellData(
        genes=tuple(genes[chosen]),
        types=tuple(types),
        expression_NG=expression_NG,
        sentence_NK=sentence_NK,
        type_N=type_N.astype(np.int64),
        split_N=split_N,
    )


def scanpy_file(name: str) -> Path:
    """Return a file of the installed scanpy, which is not imported."""
    found = find_spec("scanpy")
    path = Path(found.origin).parent / name if found and found.origin else None
    if path is None or not path.is_file():
        raise InputError(f"scanpy's file {name} is not there; install the versions of the lock")
    return path


def read(path: Path) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """Return raw expression (N, A), gene names, types and clusters of an h5ad file."""
    from anndata import read_h5ad

    with reading(path, "cells with types and clusters"):
        with warnings.catch_warnings(action="ignore"):  # of an older layout, each part says so
            file = read_h5ad(path)
        raw = file.raw
        columns = [np.asarray(file.obs[name].astype(str)) for name in ("bulk_labels", "louvain")]
    if raw is None:
        raise InputError(f"{path}: has no raw expression; standardised values have no order")
    names = np.asarray(raw.var_names.astype(str))
    return sparse.csr_matrix(raw.X, dtype=np.float32), names, *columns


def most_variable(expression_NG: sparse.csr_matrix, count: int) -> np.ndarray:
    """Return the places of the `count` genes of largest variance, in the order of the columns."""
    if count > expression_NG.shape[1]:
        raise InputError(f"num_genes = {count}: must be at most {expression_NG.shape[1]}")
    mean_G = np.asarray(expression_NG.mean(axis=0, dtype=float)).ravel()
    square_G = np.asarray(expression_NG.power(2).mean(axis=0, dtype=float)).ravel()
    return np.sort(np.argsort(mean_G**2 - square_G, kind="stable")[:count])


def _held_out(
    held_out: dict[str, list[str]], types_N: np.ndarray, clusters_N: np.ndarray
) -> np.ndarray:
    found_N = np.zeros(len(types_N), dtype=bool)
    for name, clusters in held_out.items():
        for cluster in clusters:
            here_N = (types_N == name) & (clusters_N == cluster)
            if not here_N.any():
                raise InputError(f"held_out: no cell of type {name!r} in cluster {cluster!r}")
            found_N |= here_N
    return found_N


def _common(types_N: np.ndarray, held_out_N: np.ndarray, min_cells: int) -> np.ndarray:
    """Return which cells are of types that keep `min_cells` cells to learn from."""
    names, counts = np.unique(types_N[~held_out_N], return_counts=True)
    kept = names[counts >= min_cells]
    if lost := sorted(set(types_N[held_out_N]) - set(kept)):
        raise InputError(f"held_out: leaves fewer than min_cells = {min_cells} of {lost[0]!r}")
    if len(kept) < 2:
        raise InputError(f"min_cells = {min_cells}: leaves {len(kept)} types, two are needed")
    return np.isin(types_N, kept)
