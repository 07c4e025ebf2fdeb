"""WSM's figures: training, the main table as intervals, and the two sweeps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steps.shared.plots import dot_interval, label_lines, line_with_band, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "trunk": "trunk",
    "constant": "constant rate",
    "wsd_linear": "linear decay",
    "wsd_cosine": "cosine decay",
    "wsd_1_sqrt": "1-sqrt decay",
}
History = Sequence[Mapping[str, str]]


def training(histories: Mapping[str, Sequence[History]]) -> "Figure":
    """Draw validation loss and learning rate of the branches (seeds: mean and 95 % band)."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    titles = ("Trunk, general corpus", "Branches, annealing corpus", "Learning rate")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
        ax.set_xlabel("update")
    for row, runs in histories.items():
        x = [int(line["step"]) for line in runs[0]]
        ax = axes[0] if row == "trunk" else axes[1]
        line_with_band(ax, x, _column(runs, "validation_loss"), LABELS.get(row, row))
        if row != "trunk":
            rates = _column(runs[:1], "learning_rate")
            line_with_band(axes[2], x, rates, LABELS.get(row, row))
    axes[0].set_ylabel("validation loss, nats per token")
    for ax in axes[1:]:
        label_lines(ax)
    return figure


def main_table(cells: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> "Figure":
    """Draw the main table: loss on the annealing corpus and multiple choice, by row."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    metrics = (("anneal", "bits_per_byte"), ("choices", "choice_accuracy"))
    names = ("Glosses, bits per byte (lower is better)", "Gloss choice, % (higher is better)")
    for ax, (dataset, metric), name in zip(axes, metrics, names, strict=True):
        own = {
            cell["row"]: cell
            for cell in cells
            if (cell["table"], cell["dataset"], cell["metric"]) == ("main", dataset, metric)
        }
        rows = [own[row] for row in labels]
        mean, low, high = (_numbers(rows, key) for key in ("mean", "ci_low", "ci_high"))
        merged = [label for row, label in labels.items() if row.startswith("wsm")]
        low, high = (np.where(np.isnan(edge), mean, edge) for edge in (low, high))
        dot_interval(ax, list(labels.values()), mean, low, high, highlight=merged)
        ax.set_xlabel(name)
    return figure


def sweeps(runs: Sequence[Mapping[str, str]]) -> "Figure":
    """Draw loss against merge duration and against the number of checkpoints."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True)
    names = {"duration": "merge duration, updates", "count": "checkpoints in the whole window"}
    for ax, (table, name) in zip(axes, names.items(), strict=True):
        own = [run for run in runs if (run["table"], run["metric"]) == (table, "bits_per_byte")]
        x = sorted({int(run["x"]) for run in own})
        by_seed: dict[str, dict[int, float]] = {}
        for run in own:
            by_seed.setdefault(run["seed"], {})[int(run["x"])] = float(run["value"])
        values_SN = [[seed[point] for point in x] for seed in by_seed.values()]
        sweep(ax, x, {"mean": values_SN}, x_name=name, y_name="bits per byte", log_x=True)
    return figure


def _column(runs: Sequence[History], name: str) -> list[list[float]]:
    return [[float(line[name]) for line in history] for history in runs]


def _numbers(cells: Sequence[Mapping[str, Any]], key: str) -> np.ndarray:
    return np.array([np.nan if cell[key] is None else cell[key] for cell in cells], dtype=float)
