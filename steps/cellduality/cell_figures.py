"""Cells as scanpy draws them: quality control, and embeddings of real and generated cells.

The same data give the same bytes: UMAP is seeded, and nothing is jittered. Shapes: N cells, G
genes, D dimensions.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steps.cellduality.cells_data import FILE, scanpy_file
from steps.shared.plots import BLUE, GREY, PALETTE, RED, SKY
from steps.shared.runtime import InputError

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.figure import Figure

QUALITY = {
    "n_counts": "molecules counted",
    "n_genes": "genes detected",
    "percent_mito": "share of mitochondrial genes",
}
COLOURS = (*PALETTE, "#882255", "#44AA99", "#999933", "#661100", GREY)
# by the code of a split
SPLIT_COLOURS = {"train": GREY, "validation": SKY, "test": BLUE, "held out": RED}
COMPONENTS, NEIGHBOURS = 20, 15
SIZE = 24  # square points


def told_apart(type_N: np.ndarray, types: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return where each type is among those drawn (L), and their names.

    All of them, unless they are more than there are colours: then the rarest are one.
    """
    if len(types) <= len(COLOURS):
        return np.arange(len(types)), tuple(types)
    counts_L = np.bincount(type_N, minlength=len(types))
    common = np.sort(np.argsort(-counts_L, kind="stable")[: len(COLOURS) - 1])
    place_L = np.full(len(types), len(common))
    place_L[common] = np.arange(len(common))
    return place_L, (*(types[code] for code in common), "other types")


def quality() -> "Figure":
    """Draw what was counted in each measured cell, by type: violins of pbmc68k_reduced."""
    import matplotlib.pyplot as plt
    import scanpy

    with warnings.catch_warnings(action="ignore"):  # of an older layout, each part says so
        cells = scanpy.read_h5ad(scanpy_file(FILE))
    cells.uns["bulk_labels_colors"] = [SKY] * cells.obs["bulk_labels"].nunique()
    figure, axes = plt.subplots(1, len(QUALITY), figsize=(11.0, 4.2))
    for ax, (column, title) in zip(axes, QUALITY.items(), strict=True):
        with warnings.catch_warnings(action="ignore"):  # of seaborn's coming changes
            scanpy.pl.violin(
                cells, column, groupby="bulk_labels", stripplot=False, inner="quartile",
                rotation=90, ax=ax, show=False,
            )  # fmt: skip
        ax.set(title=title, xlabel="", ylabel="")
        ax.grid(False, axis="x")
    return figure


def embedding(
    expression_NG: np.ndarray, type_N: np.ndarray, types: Sequence[str], split_N: np.ndarray
) -> "Figure":
    """Draw all real cells in a UMAP of their expression, by type and by split."""
    cells = _annotated(expression_NG, type_N, types)
    splits = list(SPLIT_COLOURS)
    cells.obs["split"] = _category([splits[code] for code in split_N], splits)
    cells.uns["split_colors"] = list(SPLIT_COLOURS.values())
    _lay_out(cells, components=min(COMPONENTS, *(length - 1 for length in cells.shape)))
    figure = _panels(cells, {"type": "real cells by type", "split": "real cells by split"})
    for ax, column in zip(figure.axes, ("type", "split"), strict=True):
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": 2}
        ax.legend(handles=_handles(cells, column), **below)
    return figure


def generated(
    real_ND: np.ndarray,
    real_type_N: np.ndarray,
    found: Mapping[str, tuple[np.ndarray, np.ndarray]],
    types: Sequence[str],
) -> "Figure":
    """Draw real cells and those that each row generated in one UMAP, a panel a row.

    `found`: the row's label -> its cells (N, D) in the basis of `real_ND`, and the types asked for.
    """
    for label, (points_ND, wanted_N) in found.items():
        if points_ND.shape != (len(wanted_N), real_ND.shape[1]):
            raise InputError(f"row {label!r}: {points_ND.shape} points, {len(wanted_N)} types")
    points_ND = np.concatenate([real_ND, *(points for points, _ in found.values())])
    type_N = np.concatenate([real_type_N, *(wanted for _, wanted in found.values())])
    origins = np.repeat(
        ["real cells", *found], [len(real_ND), *(len(w) for _, w in found.values())]
    )
    cells = _annotated(points_ND, type_N, types)
    for label in ("real cells", *found):
        names = [
            types[code] if own else np.nan
            for code, own in zip(type_N, origins == label, strict=True)
        ]
        cells.obs[label] = _category(names, types)
        cells.uns[f"{label}_colors"] = _colours(types)
    _lay_out(cells, components=None)
    figure = _panels(cells, {label: label for label in ("real cells", *found)})
    figure.legend(handles=_handles(cells, "type"), loc="outside lower center", ncols=4)
    return figure


def _annotated(x_NG: np.ndarray, type_N: np.ndarray, types: Sequence[str]) -> "AnnData":
    from anndata import AnnData

    cells = AnnData(np.asarray(x_NG, dtype=np.float32))
    cells.obs["type"] = _category([types[code] for code in type_N], types)
    cells.uns["type_colors"] = _colours(types)
    return cells


def _category(names: Sequence[object], categories: Sequence[str]) -> object:
    import pandas as pd

    return pd.Categorical(names, categories=list(categories))


def _colours(types: Sequence[str]) -> list[str]:
    if len(types) > len(COLOURS):
        raise InputError(f"{len(types)} types: there are {len(COLOURS)} colours that can be told")
    return list(COLOURS[: len(types)])


def _lay_out(cells: "AnnData", components: int | None) -> None:
    """Add UMAP's coordinates, from a PCA of `components` or from the points themselves."""
    import scanpy

    with warnings.catch_warnings(action="ignore"):  # of UMAP: a seed takes one thread
        if components is not None:
            scanpy.pp.pca(cells, n_comps=components, random_state=0, svd_solver="full")
        space = "X" if components is None else "X_pca"
        scanpy.pp.neighbors(cells, NEIGHBOURS, use_rep=space, random_state=0)
        scanpy.tl.umap(cells, random_state=0)


def _panels(cells: "AnnData", titles: Mapping[str, str]) -> "Figure":
    """Draw one UMAP a column of `obs`; cells without a value are pale and lie below."""
    import matplotlib.pyplot as plt
    import scanpy

    size = {"figsize": (4.4 * len(titles), 5.4)}
    figure, axes = plt.subplots(1, len(titles), squeeze=False, sharex=True, sharey=True, **size)
    for ax, (column, title) in zip(axes[0], titles.items(), strict=True):
        with warnings.catch_warnings(action="ignore"):  # of matplotlib's coming changes
            scanpy.pl.umap(
                cells, color=column, ax=ax, show=False, size=SIZE, na_color="#E5E5E5",
                legend_loc="none",
            )  # fmt: skip
        ax.set(title=title, xlabel="UMAP 1", ylabel="UMAP 2" if ax is axes[0, 0] else "")
    return figure


def _handles(cells: "AnnData", column: str) -> list[object]:
    from matplotlib.lines import Line2D

    names, colours = cells.obs[column].cat.categories, cells.uns[f"{column}_colors"]
    dot = {"marker": "o", "linestyle": "", "markersize": 5}
    return [
        Line2D([], [], color=colour, label=name, **dot)
        for name, colour in zip(names, colours, strict=True)
    ]
