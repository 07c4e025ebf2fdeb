"""N2L's figures: accuracy over tasks and by row, confusion, singular values, theta.

Shapes: S seeds, T tasks, C classes, N points along x.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.n2l.evaluate import read_labels
from steps.shared.plots import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    label_lines,
    line_with_band,
    row_intervals,
)
from steps.shared.runs import Runs, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {
    "labels": BLACK,
    "n2l": BLUE,
    "ranpac": ORANGE,
    "rail": RED,
    "acil": GREEN,
    "zero_shot": GREY,
    "sequential": PINK,
}
SHORT = {
    "labels": "true labels",
    "acil": "ACIL",
    "zero_shot": "zero-shot",
    "sequential": "fine-tuned",
}


def draw(runs: Runs, labels: Mapping[str, str], learned: Mapping[str, Path]) -> dict[str, "Figure"]:
    """Return all figures by name, from runs and, by data set, the labels of one class order."""
    datasets = list(learned)
    tasks = {name: figure_data(path) for name, path in learned.items()}
    return {
        "over_tasks": over_tasks(runs, labels, datasets),
        "rows": by_row(runs, labels, datasets),
        "confusion": confusion(tasks),
        "singular": singular(tasks),
        "theta": theta(runs, tasks),
    }


def figure_data(path: Path) -> list[dict[str, np.ndarray]]:
    """Return each task's labels, singular values and theta, from labels.safetensors."""
    found: list[dict[str, np.ndarray]] = []
    for key, value in sorted(read_labels(path).items()):
        if key.startswith("figure/"):
            _, kind, task = key.split("/")
            found += [{} for _ in range(int(task) + 1 - len(found))]
            found[int(task)][kind] = value
    return found


def panels(datasets: Sequence[str], height: float) -> tuple["Figure", list["Axes"]]:
    """Return a figure with one titled panel a data set."""
    import matplotlib.pyplot as plt

    width = 5.6 * len(datasets)
    figure, axes = plt.subplots(1, len(datasets), figsize=(width, height), squeeze=False)
    for ax, name in zip(axes[0], datasets, strict=True):
        ax.set_title(name)
    return figure, list(axes[0])


def over_tasks(runs: Runs, labels: Mapping[str, str], datasets: Sequence[str]) -> "Figure":
    """Draw accuracy over all classes seen so far after every task, B0."""
    figure, axes = panels(datasets, 4.2)
    for ax, name in zip(axes, datasets, strict=True):
        x, found = series(runs, LINES, table="over_tasks", dataset=name, split="b0")
        for row, values_SN in found.items():
            label = SHORT.get(row, labels[row])
            line_with_band(ax, x, values_SN, label, colour=LINES[row], marker="o")
        ax.set_xticks(x)
        ax.set_xlabel("tasks learnt")
        ax.set_ylabel("accuracy over the classes seen, %")
        label_lines(ax)
    return figure


def by_row(runs: Runs, labels: Mapping[str, str], datasets: Sequence[str]) -> "Figure":
    """Draw accuracy after the last task by row, B0, with intervals over class orders."""
    figure, axes = panels(datasets, 3.6)
    for ax, name in zip(axes, datasets, strict=True):
        rows = [row for row in labels if row != "sequential"]
        _, found = series(runs, rows, table=name, dataset=name, split="b0", metric="last")
        row_intervals(ax, found, labels, highlight=["n2l"])
        ax.set_xlabel("accuracy after the last task, %")
    return figure


def confusion(tasks: Mapping[str, list[dict[str, np.ndarray]]]) -> "Figure":
    """Draw which label images of each class get, before and after refinement, one class order.

    Of digits all classes in their order: labels stay within a task, so squares along the diagonal
    are all that can be filled. Of the others the first task.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 2 * len(tasks), figsize=(3.4 * 2 * len(tasks), 3.5), squeeze=False
    )
    for place, (name, parts) in enumerate(tasks.items()):
        shown = parts if name == "digits" else parts[:1]
        true_N = np.concatenate([part["true"] for part in shown])
        for ax, kind in zip(axes[0][2 * place : 2 * place + 2], ("before", "after"), strict=True):
            labels_N = np.concatenate([part[kind] for part in shown])
            count = max(true_N.max(), labels_N.max()) + 1
            table_CC = np.zeros((count, count))
            np.add.at(table_CC, (true_N, labels_N), 1)
            share_CC = 100 * table_CC / np.maximum(table_CC.sum(1, keepdims=True), 1)
            drawn = ax.imshow(share_CC, vmin=0, vmax=100, cmap="Blues")
            right = 100 * float((true_N == labels_N).mean())
            ax.set_title(f"{name}, {kind} refinement: {right:.1f} %", fontsize=9)
            ax.grid(False)
            ax.set_xlabel("pseudo label (class in its order)")
            ax.set_ylabel("class")
    figure.colorbar(drawn, ax=axes, label="share of the class, %", fraction=0.02)
    return figure


def singular(tasks: Mapping[str, list[dict[str, np.ndarray]]]) -> "Figure":
    """Draw the singular values of every task's features and the rule's cut, one class order."""
    figure, axes = panels(list(tasks), 3.8)
    for ax, (_, parts) in zip(axes, tasks.items(), strict=True):
        for index, part in enumerate(parts):
            found = part["singular"][part["singular"] > 0]
            shade = 0.25 + 0.75 * index / max(1, len(parts) - 1)
            ax.plot(np.arange(1, len(found) + 1), found, color=BLUE, alpha=shade, linewidth=1)
            cut, kept = float(part["theta"][0]), int((found > part["theta"][0]).sum())
            ax.plot([kept + 0.5], [cut], marker="o", color=RED, alpha=shade)
        ax.set_yscale("log")
        ax.set_xlabel("direction; one line a task, dots: where the rule cuts")
        ax.set_ylabel("singular value")
    return figure


def theta(runs: Runs, tasks: Mapping[str, list[dict[str, np.ndarray]]]) -> "Figure":
    """Draw accuracy of refined labels and of N2L against theta, and what the rule reaches."""
    figure, axes = panels(list(tasks), 4.0)
    for ax, name in zip(axes, tasks, strict=True):
        for metric, colour, label in (
            ("pseudo_after", BLUE, "refined labels"),
            ("last", RED, "last accuracy"),
        ):
            cell = {"dataset": name, "split": "b0", "metric": metric}
            x, found = series(runs, ["n2l"], table="theta", **cell)
            line_with_band(ax, range(len(x)), found["n2l"], label, colour=colour, marker="o")
            _, rule = series(runs, ["n2l"], table=name, **cell)
            dashes = {"linestyle": "--", "linewidth": 1, "label": "_rule"}
            ax.axhline(rule["n2l"].mean(), color=colour, **dashes)
        ax.set_xticks(range(len(x)), [f"{point:g}" for point in x])
        ax.set_xlabel("theta; dashed: chosen by the rule")
        ax.set_ylabel("accuracy, %")
        label_lines(ax)
    return figure
