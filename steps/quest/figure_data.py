"""What the figures of several tasks share: runs of a cell, histories, colours, one figure."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.row_names import ROWS
from steps.shared.histories import check_numbers, read_history
from steps.shared.plots import GREY, PALETTE, label_lines, line_with_band
from steps.shared.runtime import read_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK = PALETTE
COLOURS = dict(zip(ROWS, (BLACK, GREEN, PINK, ORANGE, SKY, BLUE, GREY, RED), strict=True))
TRAINING = ("validation_loss", "max_logit")  # columns of a history
Runs = Sequence[Mapping[str, str]]


def rows_in(runs: Runs, table: str, labels: Mapping[str, str]) -> list[str]:
    """Return the rows that a table has runs of, in the order of `labels`."""
    found = {run["row"] for run in runs if run["table"] == table}
    return [row for row in labels if row in found]


def by_x(
    runs: Runs, table: str, split: str, metric: str, labels: Mapping[str, str]
) -> tuple[list[float], dict[str, np.ndarray]]:
    """Return the x of a sweep's column and, by row label, its values over seeds and x (S x N)."""
    own = [
        run for run in runs if (run["table"], run["split"], run["metric"]) == (table, split, metric)
    ]
    x = sorted({float(run["x"]) for run in own})
    series = {}
    for row in rows_in(own, table, labels):
        values: dict[str, dict[float, float]] = {}
        for run in own:
            if run["row"] == row:
                values.setdefault(run["seed"], {})[float(run["x"])] = float(run["value"])
        series[labels[row]] = np.array([[seed[point] for point in x] for seed in values.values()])
    return x, series


def seeds_in(runs: Runs, table: str) -> list[int]:
    """Return the seeds that a table has runs of, ascending."""
    return sorted({int(run["seed"]) for run in runs if run["table"] == table})


def histories(
    folder: Path, row: str, seeds: Iterable[int], *columns: str
) -> list[list[dict[str, str]]]:
    """Return the histories of a row, one a seed, which have these columns."""
    paths = [folder / row / f"seed{seed}" / "history.csv" for seed in seeds]
    return [read_history(path, *columns) for path in paths]


def read_maps(path: Path, names: Iterable[str], numbers: Sequence[str]) -> list[dict[str, str]]:
    """Read lines of attention: columns of names and of numbers."""
    lines = read_csv(path, *names, *numbers)
    check_numbers(path, lines, numbers)
    return lines


def colour_rows(ax: "Axes", rows: Iterable[str]) -> None:
    """Let the next lines of `ax` have the colours of these rows, which are those of all figures."""
    ax.set_prop_cycle(color=[COLOURS[row] for row in rows])


def plain_log(ax: "Axes") -> None:
    """Make y logarithmic, with plain numbers at 1, 2 and 5 of every decade."""
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(LogLocator(subs="auto"))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")


def training(
    by_row: Mapping[str, list[list[dict[str, str]]]], labels: Mapping[str, str]
) -> "Figure":
    """Draw validation loss and the attention's largest logit over training."""
    import matplotlib.pyplot as plt

    figure, (loss_ax, logit_ax) = plt.subplots(1, 2, figsize=(11, 4.2))
    for row, lines in by_row.items():
        updates = [int(line["step"]) for line in lines[0]]
        for ax, name in zip((loss_ax, logit_ax), TRAINING, strict=True):
            values_SL = [[float(line[name]) for line in history] for history in lines]
            line_with_band(ax, updates, values_SL, labels[row], colour=COLOURS[row])
    plain_log(logit_ax)
    plain_log(loss_ax)
    loss_ax.set_ylabel("validation loss, nats")
    logit_ax.set_ylabel("largest |logit| of the attention")
    for ax in (loss_ax, logit_ax):
        ax.set_xlabel("update")
        label_lines(ax)
    return figure
