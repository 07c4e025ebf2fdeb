"""What the figures of several tasks share: rows and seeds, maps, colours, rates, one figure.

Shapes: S seeds, N points along x.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.row_names import ROWS
from steps.shared.histories import check_numbers, curve, histories
from steps.shared.plots import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    label_lines,
    line_with_band,
    sweep,
)
from steps.shared.runs import Runs
from steps.shared.runtime import read_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = dict(zip(ROWS, (BLACK, GREEN, PINK, ORANGE, SKY, BLUE, GREY, RED), strict=True))
TRAINING = ("validation_loss", "max_logit")  # columns of a history


def rows_in(runs: Runs, table: str, labels: Mapping[str, str]) -> list[str]:
    """Return the rows that a table has runs of, in the order of `labels`."""
    found = {run["row"] for run in runs if run["table"] == table}
    return [row for row in labels if row in found]


def seeds_in(runs: Runs, table: str) -> list[int]:
    """Return the seeds that a table has runs of, ascending."""
    return sorted({int(run["seed"]) for run in runs if run["table"] == table})


def read_maps(path: Path, names: Iterable[str], numbers: Sequence[str]) -> list[dict[str, str]]:
    """Read lines of attention: columns of names and of numbers."""
    lines = read_csv(path, *names, *numbers)
    check_numbers(path, lines, numbers)
    return lines


def rates(
    ax: "Axes",
    x: Sequence[float | None],
    by_row: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
    *,
    y_name: str,
) -> None:
    """Draw the values of each row (S x N) against the learning rate (N), in the row's colour."""
    ax.set_prop_cycle(color=[COLOURS[row] for row in by_row])
    values = {labels[row]: values_SN for row, values_SN in by_row.items()}
    sweep(ax, x, values, x_name="learning rate", y_name=y_name, log_x=True)


def plain_log(ax: "Axes") -> None:
    """Make y logarithmic, with plain numbers at 1, 2 and 5 of every decade."""
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(LogLocator(subs="auto"))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")


def training(runs: Runs, table: str, labels: Mapping[str, str], trained: Path) -> "Figure":
    """Draw validation loss and the attention's largest logit over training, of a table's rows."""
    import matplotlib.pyplot as plt

    rows, seeds = rows_in(runs, table, labels), seeds_in(runs, table)
    figure, (loss_ax, logit_ax) = plt.subplots(1, 2, figsize=(11, 4.2))
    for row, own in histories(trained, rows, seeds, *TRAINING).items():
        for ax, name in zip((loss_ax, logit_ax), TRAINING, strict=True):
            line_with_band(ax, *curve(own, name), labels[row], colour=COLOURS[row])
    plain_log(logit_ax)
    plain_log(loss_ax)
    loss_ax.set_ylabel("validation loss, nats")
    logit_ax.set_ylabel("largest |logit| of the attention")
    for ax in (loss_ax, logit_ax):
        ax.set_xlabel("update")
        label_lines(ax)
    return figure
