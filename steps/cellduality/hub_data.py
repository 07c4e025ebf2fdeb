"""The data sets of the paper's scale from h5ad files, in the form of the packaged ones.

Shapes: N cells, G genes, K genes of a sentence.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from steps.cellduality.cells_data import CellData, most_variable
from steps.cellduality.drug_data import LABELS, DrugData
from steps.cellduality.hub_config import HubCells, HubDrugs, HubFile, HubPerturbations
from steps.cellduality.perturb_data import PerturbData
from steps.cellduality.sentences import ranked_genes
from steps.cellduality.splits import TRAIN, stratified
from steps.shared.errors import one_line
from steps.shared.runtime import InputError, reading, stream

LARGEST_LOG = 30.0  # log1p of counts stays below, counts themselves do not


def fetched(source: HubFile) -> Path:
    """Return the path of a file: in a local folder, or downloaded from the hub."""
    local = Path(source.repo) / source.file
    if local.is_file():
        return local
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(source.repo, source.file, repo_type="dataset"))
    except Exception as error:  # offline, gated, unknown: one line each
        raise InputError(
            f"data set {source.repo}, file {source.file}: cannot be read ({one_line(error)})"
        ) from None


def read(source: HubFile, columns: list[str]) -> tuple[Any, np.ndarray, list[np.ndarray]]:
    """Return expression (N, A), CSR, names of genes, and columns of obs as text."""
    from anndata import read_h5ad

    path = fetched(source)
    with reading(path, f"cells with {', '.join(columns)}"):
        file = read_h5ad(path)
        found = [np.asarray(file.obs[name].astype(str)) for name in columns]
    names = np.asarray(file.var_names.astype(str))
    expression = sparse.csr_matrix(file.X, dtype=np.float32)
    highest = expression.max()
    if not 0 < highest < LARGEST_LOG or expression.min() < 0:
        rule = f"log-normalised, from 0 to {LARGEST_LOG}"
        raise InputError(f"{path}: expression up to {highest:g}, must be {rule}")
    return expression, names, found


def both(known: HubFile, ood: HubFile, columns: list[str]) -> tuple[Any, ...]:
    """Return two files as one: expression of their common genes, genes, columns, which is ood.

    Symbols are compared in upper case, since those of a mouse are written otherwise.
    """
    one, two = read(known, columns), read(ood, columns)
    symbols = ([name.upper() for name in names] for names in (one[1], two[1]))
    genes, first, second = np.intersect1d(*symbols, return_indices=True)
    if not len(genes):
        raise InputError(f"{ood.file}: shares no gene with {known.file}")
    expression = sparse.vstack([one[0][:, first], two[0][:, second]]).tocsr()
    joined = [np.concatenate(pair) for pair in zip(one[2], two[2], strict=True)]
    ood_N = np.arange(expression.shape[0]) >= one[0].shape[0]
    return expression, genes, joined, ood_N


def cells(settings: HubCells, seed: int) -> CellData:
    """Return cells with types; types that only the file out of distribution has are left out."""
    expression, genes, (types_N,), ood_N = both(
        settings.known, settings.ood, [settings.type_column]
    )
    kept = np.isin(types_N, np.unique(types_N[~ood_N]))
    expression, types_N, ood_N = expression[kept], types_N[kept], ood_N[kept]
    types, type_N = np.unique(types_N, return_inverse=True)
    split_N = _split(type_N, ood_N, settings, seed)
    chosen = most_variable(expression[split_N == TRAIN], settings.num_genes)
    expression = sparse.csr_matrix(expression[:, chosen])
    sentence_NK = ranked_genes(expression, settings.length)
    if (sentence_NK[:, 1] < 0).any():
        raise InputError(f"num_genes = {settings.num_genes}: some cells express fewer than two")
    return CellData(
        genes=tuple(genes[chosen]),
        types=tuple(types),
        expression_NG=expression,
        sentence_NK=sentence_NK,
        type_N=type_N.astype(np.int64),
        split_N=split_N,
    )


def drugs(settings: HubDrugs, seed: int) -> DrugData:
    """Return cells as lines, each with a response to its own drug alone."""
    columns = [settings.drug_column, settings.response_column]
    expression, genes, (drug_N, response_N), ood_N = both(settings.known, settings.ood, columns)
    if unknown := sorted(set(response_N) - set(LABELS)):
        raise InputError(f"{settings.response_column}: {unknown[0]!r}, must be of {LABELS}")
    label_N = np.array([LABELS.index(name) for name in response_N], dtype=np.int8)
    split_N = _split(label_N, ood_N, settings, seed)
    chosen = most_variable(expression[split_N == TRAIN], settings.num_genes)
    expression = sparse.csr_matrix(expression[:, chosen])
    names, place_N = np.unique(drug_N, return_inverse=True)
    label_LD = np.full((len(label_N), len(names)), -1, dtype=np.int8)
    label_LD[np.arange(len(label_N)), place_N] = label_N
    return DrugData(
        features=tuple(genes[chosen]),
        drugs=tuple(names),
        altered_LF=expression.toarray(),
        sentence_LK=ranked_genes(expression, settings.length),
        label_LD=label_LD,
        split_L=split_N,
    )


def perturbations(settings: HubPerturbations, seed: int) -> PerturbData:
    """Return perturbed cells, each with a control cell of its type as the cell before."""
    columns = [settings.target_column, settings.type_column]
    expression, genes, (target_N, types_N) = read(settings.known, columns)
    types, type_N = np.unique(types_N, return_inverse=True)
    control_N = target_N == settings.control
    after = np.flatnonzero(~control_N & np.isin(type_N, type_N[control_N]))
    if not len(after):
        raise InputError(f"{settings.target_column}: no perturbed cell of a type with controls")
    rng = stream("cellduality", "data", seed)
    controls = {code: np.flatnonzero(control_N & (type_N == code)) for code in set(type_N[after])}
    before = np.array([rng.choice(controls[type_N[i]]) for i in after])
    targets, place_N = np.unique(target_N[after], return_inverse=True)
    rng = stream("cellduality", "split", seed)
    if settings.num_held_out >= len(targets):
        raise InputError(f"num_held_out = {settings.num_held_out}: of {len(targets)} perturbations")
    held_out = rng.permutation(len(targets))[: settings.num_held_out]
    split_N = stratified(
        place_N,
        np.isin(place_N, held_out),
        settings.validation_share,
        settings.test_share,
        rng,
    )
    chosen = most_variable(expression[after[split_N == TRAIN]], settings.num_genes)
    before_NG, after_NG = (expression[rows][:, chosen] for rows in (before, after))
    return PerturbData(
        genes=tuple(genes[chosen]),
        perturbations=tuple((settings.operation, name) for name in targets),
        types=tuple(types),
        before_NG=before_NG.toarray(),
        after_NG=after_NG.toarray(),
        sentence_before_NK=ranked_genes(before_NG, settings.length),
        sentence_after_NK=ranked_genes(after_NG, settings.length),
        perturbation_N=place_N.astype(np.int64),
        type_N=type_N[after],
        split_N=split_N,
    )


def _split(
    group_N: np.ndarray, ood_N: np.ndarray, settings: HubCells | HubDrugs, seed: int
) -> np.ndarray:
    shares = (settings.validation_share, settings.test_share)
    return stratified(group_N, ood_N, *shares, stream("cellduality", "split", seed))
