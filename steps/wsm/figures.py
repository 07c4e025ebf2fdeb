"""WSM's figures: training, the main table as intervals, and the two sweeps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steps.shared.histories import History, curve, histories
from steps.shared.plots import label_lines, line_with_band, row_intervals, sweep
from steps.shared.runs import Runs, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "trunk": "trunk",
    "constant": "constant rate",
    "wsd_linear": "linear decay",
    "wsd_cosine": "cosine decay",
    "wsd_1_sqrt": "1-sqrt decay",
}
SHOWN = (
    ("anneal", "bits_per_byte", "glosses, bits per byte (lower is better)"),
    ("choices", "choice_accuracy", "gloss choice, accuracy, % (higher is better)"),
)
MEAN = "wsm_mean"
SWEEPS = {"duration": "merge duration, updates", "count": "checkpoints in the whole window"}


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, rows: Sequence[str]
) -> dict[str, "Figure"]:
    """Return all figures by name, from runs and the histories of the trunk and trained rows."""
    seeds = sorted({int(run["seed"]) for run in runs})
    columns = ("validation_loss", "learning_rate")
    return {
        "training": training(histories(trained, ["trunk", *rows], seeds, *columns)),
        "rows": by_row(runs, labels),
        "sweeps": sweeps(runs),
    }


def training(by_row: Mapping[str, Sequence[History]]) -> "Figure":
    """Draw validation loss and learning rate of the branches (seeds: mean and 95 % band)."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    titles = ("trunk, general corpus", "branches, annealing corpus", "learning rate")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
        ax.set_xlabel("update")
    for row, own in by_row.items():
        ax = axes[0] if row == "trunk" else axes[1]
        line_with_band(ax, *curve(own, "validation_loss"), LABELS.get(row, row))
        if row != "trunk":
            line_with_band(axes[2], *curve(own[:1], "learning_rate"), LABELS.get(row, row))
    axes[0].set_ylabel("validation loss, nats per token")
    for ax in axes[1:]:
        label_lines(ax)
    return figure


def by_row(runs: Runs, labels: Mapping[str, str]) -> "Figure":
    """Draw the main table: loss on the annealing corpus and multiple choice, by row."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SHOWN), figsize=(11, 4.2), sharey=True)
    merged = [row for row in labels if row.startswith("wsm")]
    for ax, (dataset, metric, name) in zip(axes, SHOWN, strict=True):
        _, found = series(runs, labels, table="main", dataset=dataset, metric=metric)
        row_intervals(ax, found, labels, highlight=merged)
        ax.set_xlabel(name)
    return figure


def sweeps(runs: Runs) -> "Figure":
    """Draw loss against merge duration and against the number of checkpoints."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SWEEPS), figsize=(10, 3.6), sharey=True)
    for ax, (table, name) in zip(axes, SWEEPS.items(), strict=True):
        x, found = series(runs, [MEAN], table=table, metric="bits_per_byte")
        sweep(ax, x, {"mean": found[MEAN]}, x_name=name, y_name="bits per byte", log_x=True)
    return figure
