"""The house style of figures: quiet axes, safe colours, labels on the lines, the same bytes again.

A figure is SVG with its letters as paths, or PNG, chosen by the file's ending. Bands and bars are
95 % t intervals over seeds. Shapes: S seeds, N points along x.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

from steps.shared.intervals import t_interval
from steps.shared.runtime import InputError, atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

# Okabe and Ito's colours, told apart with every common colour vision; yellow is too pale for lines
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK = PALETTE
GREY = "#8C8C8C"
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
RC = {
    "svg.hashsalt": "retable",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "figure.figsize": (6.0, 3.6),
    "figure.dpi": 100.0,
    "savefig.dpi": 160.0,
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.1,
}


def style() -> None:
    """Set the house style, and nothing of the user's, for all figures made from here on."""
    matplotlib.use("Agg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(RC)


def save(figure: "Figure", path: str | Path) -> None:
    """Write `figure` to an .svg or .png atomically and close it; no date, no version inside."""
    import matplotlib.pyplot as plt

    suffix = Path(path).suffix
    if suffix not in METADATA:
        raise InputError(f"{path}: a figure is .svg or .png")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], metadata=METADATA[suffix])
    plt.close(figure)


def line_with_band(
    ax: "Axes",
    x: "ArrayLike",
    values_SN: "ArrayLike",
    label: str,
    *,
    colour: str | None = None,
    marker: str = "",
) -> None:
    """Draw the mean over seeds of `values_SN` (S x N) against x (N), with its 95 % band."""
    x = np.asarray(x, dtype=float)
    values_SN = np.atleast_2d(np.asarray(values_SN, dtype=float))
    if values_SN.shape[1:] != x.shape:
        raise InputError(f"line {label!r}: {values_SN.shape} values for {x.shape} points of x")
    mean, _, low, high = t_interval(values_SN)
    (line,) = ax.plot(x, mean, label=label, color=colour, marker=marker)
    if len(values_SN) > 1:
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)


def label_lines(ax: "Axes", *, gap_points: float = 11.0) -> None:
    """Write each line's label at its right end, pushed apart to at least `gap_points`.

    Call it last: the limits and the scale of the axes must be final.
    """
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    if not lines:
        return
    ax.figure.draw_without_rendering()  # the layout decides how tall the axes are
    points = 72 / ax.figure.dpi
    ends = [line.get_xydata()[-1] for line in lines]
    heights = np.array([ax.transData.transform(end)[1] * points for end in ends])
    placed = spread(heights, gap_points)
    for line, end, shift in zip(lines, ends, placed - heights, strict=True):
        ax.annotate(
            line.get_label(),
            end,
            xytext=(6, shift),
            textcoords="offset points",
            color=line.get_color(),
            va="center",
            annotation_clip=False,
        )


def spread(heights: Sequence[float], gap: float) -> np.ndarray:
    """Return heights moved as little as blocks allow so that any two are `gap` or more apart."""
    heights = np.asarray(heights, dtype=float)
    blocks: list[list[int]] = [[int(i)] for i in np.argsort(heights, kind="stable")]

    def centre(block: list[int]) -> float:
        return float(heights[block].mean())

    def touch(pair: tuple[list[int], list[int]]) -> bool:
        below, above = pair
        return centre(above) - centre(below) < gap * (len(below) + len(above)) / 2 - 1e-9

    while (
        first := next((i for i, p in enumerate(pairwise(blocks)) if touch(p)), None)
    ) is not None:
        blocks[first : first + 2] = [blocks[first] + blocks[first + 1]]
    placed = np.empty_like(heights)
    for block in blocks:
        placed[block] = centre(block) + gap * (np.arange(len(block)) - (len(block) - 1) / 2)
    return placed


def dot_interval(
    ax: "Axes",
    labels: Sequence[str],
    mean: "ArrayLike",
    low: "ArrayLike",
    high: "ArrayLike",
    *,
    highlight: Sequence[str],
) -> None:
    """Draw one dot with its interval per label, first on top; `highlight` ones in colour.

    An interval whose ends are nan is not drawn.
    """
    mean, low, high = (np.asarray(values, dtype=float) for values in (mean, low, high))
    if unknown := set(highlight) - set(labels):
        raise InputError(f"highlight: {sorted(unknown)} are not among the labels")
    for place, label in enumerate(labels):
        colour = BLUE if label in highlight else GREY
        ax.plot([low[place], high[place]], [place, place], color=colour, solid_capstyle="round")
        ax.plot([mean[place]], [place], marker="o", color=colour)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def row_intervals(
    ax: "Axes",
    by_row: Mapping[str, "ArrayLike"],
    labels: Mapping[str, str],
    *,
    highlight: Iterable[str],
) -> None:
    """Draw the mean over seeds of each row (S, or S x 1) with its interval, first on top.

    A single seed has a dot alone. Those rows of `highlight` that there are have a colour.
    """
    spans = [t_interval(np.ravel(values)) for values in by_row.values()]
    mean, low, high = ([span[part] for span in spans] for part in (0, 2, 3))
    names = [labels[row] for row in by_row]
    coloured = [labels[row] for row in highlight if row in by_row]
    dot_interval(ax, names, mean, low, high, highlight=coloured)


def sweep(
    ax: "Axes",
    x: "ArrayLike",
    series: Mapping[str, Any],
    *,
    x_name: str,
    y_name: str,
    log_x: bool,
) -> None:
    """Draw each of `series` (label -> S x N) over x (N) with dots, band and label."""
    x = np.asarray(x, dtype=float)
    if log_x:
        ax.set_xscale("log")
    for label, values_SN in series.items():
        line_with_band(ax, x, values_SN, label, marker="o")
    ax.set_xticks(x, [f"{value:g}" for value in x])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(x_name)
    ax.set_ylabel(y_name)
    label_lines(ax)
