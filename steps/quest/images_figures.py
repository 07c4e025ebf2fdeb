"""The figures of images: accuracy against corruptions and attacks, training, attention maps.

Shapes: S seeds, L history lines, N points along x.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.figure_data import Runs, by_x, histories, rows_in
from steps.shared.plots import PALETTE, label_lines, line_with_band
from steps.shared.runtime import read_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (*PALETTE, "#8C8C8C")  # eight rows
PANELS = [
    ("images_corruption", "corrupted", "severity of the corruptions"),
    ("images_attack", "fgsm", "radius of the attack, FGSM"),
    ("images_attack", "pgd", "radius of the attack, PGD"),
]
SPLITS = {"plain": "plain", "pattern": "with a pattern"}


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from its runs, histories and attention maps."""
    rows = rows_in(runs, "images", labels)
    by_row = {row: histories(trained, row) for row in rows}
    maps = read_csv(min(measured.glob("images_seed*_maps.csv")))
    return {
        "images_robustness": robustness(runs, labels),
        "images_training": training(by_row, labels),
        "images_attention": attention(maps, rows, labels),
    }


def robustness(runs: Runs, labels: Mapping[str, str]) -> "Figure":
    """Draw accuracy against the severity of corruptions and the radius of attacks; x = 0: clean."""
    import matplotlib.pyplot as plt

    clean = {
        labels[row]: [
            float(run["value"])
            for run in runs
            if (run["table"], run["row"], run["split"], run["metric"])
            == ("images", row, "clean", "accuracy")
        ]
        for row in rows_in(runs, "images", labels)
    }
    figure, axes = plt.subplots(1, len(PANELS), figsize=(4.6 * len(PANELS), 4.2))
    for ax, (table, split, x_name) in zip(axes, PANELS, strict=True):
        x, series = by_x(runs, table, split, "accuracy", labels)
        for colour, (label, values_SN) in zip(COLOURS, series.items(), strict=False):
            whole_SN = np.column_stack([clean[label], values_SN])
            line_with_band(ax, [0, *x], whole_SN, label, colour=colour, marker="o")
        ax.set_xticks([0, *x], ["clean", *(f"{value:g}" for value in x)])
        ax.set_xlabel(x_name)
        label_lines(ax)
    axes[0].set_ylabel("accuracy, %")
    return figure


def training(
    by_row: Mapping[str, list[list[dict[str, str]]]], labels: Mapping[str, str]
) -> "Figure":
    """Draw validation loss and the attention's largest logit over training."""
    import matplotlib.pyplot as plt

    figure, (loss_ax, logit_ax) = plt.subplots(1, 2, figsize=(11, 4.2))
    for colour, (row, lines) in zip(COLOURS, by_row.items(), strict=False):
        updates = [int(line["step"]) for line in lines[0]]
        for ax, name in ((loss_ax, "validation_loss"), (logit_ax, "max_logit")):
            values_SL = [[float(line[name]) for line in history] for history in lines]
            line_with_band(ax, updates, values_SL, labels[row], colour=colour)
    logit_ax.set_yscale("log")
    loss_ax.set_yscale("log")
    loss_ax.set_ylabel("validation loss, nats")
    logit_ax.set_ylabel("largest |logit| of the attention")
    for ax in (loss_ax, logit_ax):
        ax.set_xlabel("update")
        label_lines(ax)
    return figure


def attention(maps: Runs, rows: list[str], labels: Mapping[str, str]) -> "Figure":
    """Draw one image, plain and with a pattern, and each row's attention of the class token."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(SPLITS), 1 + len(rows), figsize=(1.45 * (1 + len(rows)), 3.4))
    columns = ["image", *rows]
    values = {(row, split): _square(maps, row, split) for row in columns for split in SPLITS}
    most = max(values[row, split].max() for row in rows for split in SPLITS)
    for split, axes_of_split in zip(SPLITS, axes, strict=True):
        for ax, row in zip(axes_of_split, columns, strict=True):
            is_image = row == "image"
            options = {"cmap": "gray", "vmax": 1} if is_image else {"cmap": "Blues", "vmax": most}
            drawn = ax.imshow(values[row, split], vmin=0, **options)
            _bare(ax)
            if split == "plain":
                title = "image" if is_image else labels[row]
                # two lines, so that neighbours stay apart
                title = title.replace(" (", "\n(").replace("-Q", "-\nQ")
                ax.set_title(title, fontsize=8.5, loc="center")
        axes_of_split[0].set_ylabel(SPLITS[split])
    figure.colorbar(drawn, ax=axes, label="attention", fraction=0.03)
    return figure


def _square(maps: Runs, row: str, split: str) -> np.ndarray:
    """Return the values of a row as a square; lines are in the order of their places."""
    own = [float(m["value"]) for m in maps if (m["row"], m["split"]) == (row, split)]
    side = round(len(own) ** 0.5)
    return np.array(own).reshape(side, side)


def _bare(ax: "Axes") -> None:
    ax.grid(False)
    ax.set_xticks([])
    ax.set_yticks([])
