"""The figures of images: accuracy against corruptions and attacks, training, attention maps.

Shapes: S seeds, N points along x.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.figure_data import COLOURS, read_maps, rows_in, seeds_in, training
from steps.shared.intervals import t_interval
from steps.shared.runs import Runs, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = [
    ("images_corruption", "corrupted", "severity of the corruptions"),
    ("images_attack", "fgsm", "radius, FGSM"),
    ("images_attack", "pgd", "radius, PGD"),
]
BASE = "standard"
SPREAD = 0.7  # of the distance between two x, over which the rows' dots are spread
SPLITS = ("plain", "pattern")


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from its runs, histories and attention maps."""
    path = measured / f"images_seed{seeds_in(runs, 'images')[0]}_maps.csv"
    maps = read_maps(path, ("split", "row", "place"), ("value",))
    return {
        "images_robustness": robustness(runs, labels),
        "images_training": training(runs, "images", labels, trained),
        "images_attention": attention(maps, rows_in(runs, "images", labels), labels),
    }


def robustness(runs: Runs, labels: Mapping[str, str]) -> "Figure":
    """Draw each row's accuracy less that of standard attention, by severity and by radius.

    The difference is taken within seeds; below each x stands what standard attention reaches.
    Without standard attention the rows' accuracies are drawn themselves.
    """
    import matplotlib.pyplot as plt

    rows = rows_in(runs, "images", labels)
    others = [row for row in rows if row != BASE]
    figure, axes = plt.subplots(
        1, len(PANELS), figsize=(12, 4.4), sharey=True, width_ratios=[4, 3, 3]
    )
    for ax, panel in zip(axes, PANELS, strict=True):
        names, values = _accuracies(runs, panel, rows)
        base_SN = values.get(BASE, 0.0)
        for index, row in enumerate(others):
            shift = SPREAD * (index / max(1, len(others) - 1) - 0.5)
            _differences(ax, values[row] - base_SN, shift, row, labels[row])
        ax.set_xlabel(panel[2])
        if BASE in rows:
            means = values[BASE].mean(0)
            names = [f"{name}\n({mean:.1f})" for name, mean in zip(names, means, strict=True)]
            ax.axhline(0, color=COLOURS[BASE], linewidth=1)
            ax.set_xlabel(f"{panel[2]} (accuracy of standard attention, %)")
        ax.set_xticks(range(len(names)), names)
        ax.grid(False, axis="x")
    less = "accuracy less that of standard attention, points"
    axes[0].set_ylabel(less if BASE in rows else "accuracy, %")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(others))
    return figure


def _accuracies(
    runs: Runs, panel: tuple[str, str, str], rows: list[str]
) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of a panel's x, clean images first, and by row the accuracy (S x N)."""
    table, split, _ = panel
    _, clean = series(runs, rows, table="images", split="clean", metric="accuracy")
    x, found = series(runs, rows, table=table, split=split, metric="accuracy")
    names = ["clean", *(f"{point:g}" for point in x)]
    return names, {row: np.hstack([clean[row], found[row]]) for row in rows}


def _differences(ax: "Axes", values_SN: np.ndarray, shift: float, row: str, label: str) -> None:
    mean, _, low, high = t_interval(values_SN)
    places = np.arange(len(mean)) + shift
    ax.vlines(places, low, high, color=COLOURS[row], linewidth=1.4)
    ax.plot(places, mean, linestyle="", marker="o", color=COLOURS[row], label=label)


def attention(maps: Runs, rows: list[str], labels: Mapping[str, str]) -> "Figure":
    """Draw one image, plain and with a pattern, and each row's attention of the class token."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(SPLITS), 1 + len(rows), figsize=(1.45 * (1 + len(rows)), 3.1))
    columns = ["image", *rows]
    values = {(row, split): _square(maps, row, split) for row in columns for split in SPLITS}
    most = max(values[row, split].max() for row in rows for split in SPLITS)
    for split, axes_of_split in zip(SPLITS, axes, strict=True):
        for ax, row in zip(axes_of_split, columns, strict=True):
            is_image = row == "image"
            options = {"cmap": "gray", "vmax": 1} if is_image else {"cmap": "Blues", "vmax": most}
            drawn = ax.imshow(values[row, split], vmin=0, **options)
            _bare(ax, framed=is_image)
            if split == "plain":
                title = "image" if is_image else labels[row]
                # two lines, so that neighbours stay apart
                title = title.replace(" (", "\n(").replace("-Q", "-\nQ")
                ax.set_title(title, fontsize=8.5, loc="center")
        axes_of_split[0].set_ylabel(split)
    figure.colorbar(drawn, ax=axes, label="attention", fraction=0.03)
    return figure


def _square(maps: Runs, row: str, split: str) -> np.ndarray:
    """Return the values of a row as a square; lines are in the order of their places."""
    own = [float(m["value"]) for m in maps if (m["row"], m["split"]) == (row, split)]
    side = round(len(own) ** 0.5)
    return np.array(own).reshape(side, side)


def _bare(ax: "Axes", *, framed: bool) -> None:
    ax.grid(False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(framed)
