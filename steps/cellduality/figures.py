"""CellDuality's figures: rewards in training, rows, confusion, and cells as scanpy draws them.

Shapes: S seeds, N points along x, L types.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steps.cellduality import arrays as stored
from steps.cellduality.cell_figures import embedding, generated, quality, told_apart
from steps.cellduality.config import Evaluate
from steps.cellduality.scores import Judge
from steps.cellduality.vocabulary import TASKS, Vocabulary
from steps.shared.histories import curve, histories
from steps.shared.plots import BLACK, BLUE, label_lines, line_with_band, row_intervals
from steps.shared.runs import Runs, series
from steps.shared.runtime import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {"rl_gt": BLACK, "cellduality": BLUE}  # rows of all seeds
ROWS = {"sft": "SFT", "rl_gt": "oracle", "cellduality": "CellDuality"}
SHOWN = (
    ("annotation", "test", "accuracy", "annotation, accuracy, %"),
    ("annotation", "ood", "macro_f1", "annotation, held out, macro-F1, %"),
    ("drug", "test", "accuracy", "drug response, accuracy, %"),
    ("generation", "test", "knn3", "generation, kNN@3, %"),
    ("generation", "test", "scfid", "generation, scFID"),
    ("generation", "test", "diversity", "generation, diversity (real cells: 1)"),
    ("perturbation", "ood", "delta_pearson", "perturbation, held out, correlation of changes"),
    ("perturbation", "ood", "e_distance", "perturbation, held out, E-distance"),
)


def draw(
    runs: Runs,
    labels: Mapping[str, str],
    results: Path,
    seeds: Sequence[int],
    config: Evaluate,
    *,
    packaged: bool,
) -> dict[str, "Figure"]:
    """Return all figures by name; those of single cells are of the first seed.

    The quality of cells is drawn where they are `packaged` ones, of which it is known.
    """
    first = f"seed{seeds[0]}"
    answers = read_json(results / f"evaluate/seeds/{first}_answers.json", *ROWS)
    prepared = results / "prepare" / first
    return {
        "training": training(results / "train", seeds),
        "rows": by_row(runs, labels),
        "confusion": confusion(prepared, answers),
        **cells(prepared, answers, config),
        **({"quality": quality()} if packaged else {}),
    }


def cells(prepared: Path, answers: Mapping[str, Any], config: Evaluate) -> dict[str, "Figure"]:
    """Real cells by type and split, and generated ones among the real test cells."""
    arrays = stored.read(prepared / "arrays.safetensors")
    vocabulary = Vocabulary.read(prepared / "vocabulary.json")
    space = Judge(arrays, vocabulary, config.components).cells
    test = stored.members(arrays, "cells", "test")
    place_L, types = told_apart(arrays["cells/type_N"], vocabulary.types)
    type_N, wanted = place_L[arrays["cells/type_N"]], []
    for row in read_json(prepared / "questions.json", "test")["test"]:
        if row["task"] == "generation":
            wanted.append(place_L[vocabulary.types.index(row["condition"][0])])
    found = {}
    for row, label in ROWS.items():
        sentences = answers[row]["generation/test"]
        points_ND = space.points(vocabulary.matrix("generation", sentences))
        found[label] = (points_ND, np.tile(wanted, len(sentences) // len(wanted)))
    real_ND = space.points(arrays["cells/sentence_NK"][test])
    return {
        "generated": generated(real_ND, type_N[test], found, types),
        "embedding": embedding(
            arrays["cells/expression_NG"], type_N, types, arrays["cells/split_N"]
        ),
    }


def training(trained: Path, seeds: Sequence[int]) -> "Figure":
    """Mean reward and its parts, KL divergence and the dual on real cells, over the updates."""
    import matplotlib.pyplot as plt

    panels = [
        ("reward", "mean reward"),
        *((f"reward_{task}", f"reward of {task}") for task in TASKS),
        ("kl", "KL divergence to SFT, nats"),
        ("dual_generation", "type read back from real cells"),
        ("dual_annotation", "hidden genes of real cells"),
    ]
    by_row = histories(trained, LINES, seeds, *(column for column, _ in panels))
    figure, axes = plt.subplots(4, 2, figsize=(8.0, 9.0), sharex=True)
    for ax, (column, title) in zip(axes.flat, panels, strict=True):
        for row, colour in LINES.items():
            line_with_band(ax, *curve(by_row[row], column), ROWS[row], colour=colour)
        ax.set_title(title)
        label_lines(ax)
    for ax in axes[-1]:
        ax.set_xlabel("update")
    return figure


def by_row(runs: Runs, labels: Mapping[str, str]) -> "Figure":
    """The main columns of the main table, each row's mean with its interval."""
    import matplotlib.pyplot as plt

    rows = [row for row in labels if row != "base"]  # which knows nothing: it would set the scale
    figure, axes = plt.subplots(4, 2, figsize=(9.0, 9.5))
    for ax, (dataset, split, metric, title) in zip(axes.flat, SHOWN, strict=True):
        cell = {"table": "main", "dataset": dataset, "split": split, "metric": metric}
        _, found = series(runs, rows, **cell)
        row_intervals(ax, found, labels, highlight=["cellduality"])
        ax.set_title(title)
    return figure


def confusion(prepared: Path, answers: Mapping[str, Any]) -> "Figure":
    """Annotated against true types in and out of distribution, before and after RL."""
    import matplotlib.pyplot as plt

    types = Vocabulary.read(prepared / "vocabulary.json").types
    questions = read_json(prepared / "questions.json", "test", "ood")
    splits = {"test": "test cells", "ood": "held-out clusters"}
    figure, axes = plt.subplots(2, 3, figsize=(11.0, 8.0), sharex=True, sharey=True)
    for split_axes, (split, name) in zip(axes, splits.items(), strict=True):
        truth = [row["truth"][0] for row in questions[split] if row["task"] == "annotation"]
        for ax, (row, label) in zip(split_axes, ROWS.items(), strict=True):
            share_LM = _shares(types, truth, answers[row][f"annotation/{split}"])
            drawn = ax.imshow(share_LM, vmin=0, vmax=100, cmap="Blues")
            _numbers(ax, share_LM)
            ax.set_title(f"{label}: {name}")
            ax.grid(False)
            ax.set_xticks(range(len(types) + 1), [*types, "none"], rotation=90)
            ax.set_yticks(range(len(types)), types)
    for ax in axes[:, 0]:
        ax.set_ylabel("true type")
    for ax in axes[-1]:
        ax.set_xlabel("annotated type")
    figure.colorbar(drawn, ax=axes, label="share of the true type, %", fraction=0.02)
    return figure


def _shares(types: Sequence[str], truth: Sequence[str], found: Sequence[list[str]]) -> np.ndarray:
    """Return the share of each true type's cells, %, that get each type, or none (L x L + 1)."""
    count_LM = np.zeros((len(types), len(types) + 1))
    for true, answer in zip(truth, found, strict=True):
        column = types.index(answer[0]) if answer else len(types)
        count_LM[types.index(true), column] += 1
    return 100 * count_LM / np.maximum(count_LM.sum(1, keepdims=True), 1)


def _numbers(ax: "Axes", share_LM: np.ndarray) -> None:
    for (y, x), share in np.ndenumerate(share_LM):
        if share >= 5:
            colour = "white" if share > 50 else BLACK
            ax.text(x, y, f"{share:.0f}", ha="center", va="center", color=colour, size=6)
