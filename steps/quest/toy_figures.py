"""The toy's figures: attention with and without the pattern, logits over training, rates.

Shapes: S seeds, L history lines, N points along x.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.figure_data import COLOURS, rates, read_maps, rows_in, seeds_in
from steps.quest.toy_config import parse_column
from steps.shared.histories import History, histories
from steps.shared.plots import RED, label_lines, line_with_band
from steps.shared.runs import Runs, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"robust": "no pattern", "biased": "spurious pattern"}
FORMS = {"minimal": "one layer", "full": "network"}


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from its runs, histories and attention maps.

    Attention and logits are those of the network, or of one layer where no network was trained.
    """
    path = measured / f"toy_seed{seeds_in(runs, 'toy_rate')[0]}_maps.csv"
    maps = read_maps(path, ("dataset", "split", "row", "sample"), ("attention", "is_answer"))
    by_form = {
        form: [run for run in runs if (run["table"], run["dataset"]) == ("toy_rate", form)]
        for form in FORMS
    }
    by_form = {form: own for form, own in by_form.items() if own}
    form, own = list(by_form.items())[-1]
    updates, logits = _logits(trained, own, form, labels)
    return {
        "toy_attention": toy_attention([m for m in maps if m["dataset"] == form], labels),
        "toy_logits": toy_logits(updates, logits, labels, FORMS[form]),
        "toy_rates": toy_rates(by_form, labels),
    }


def _logits(
    trained: Path, runs: Runs, form: str, labels: Mapping[str, str]
) -> tuple[list[int], dict[float, dict[str, np.ndarray]]]:
    """Return the updates (L) and a form's largest logit: rate -> row -> S x L."""
    rows, seeds = rows_in(runs, "toy_rate", labels), seeds_in(runs, "toy_rate")
    by_row = {
        row: [_of_form(history, form) for history in own]
        for row, own in histories(trained, rows, seeds).items()
    }
    logits = {
        rate: {
            row: np.array([_largest(history, form, rate) for history in own])
            for row, own in by_row.items()
        }
        for rate in sorted({float(run["x"]) for run in runs})
    }
    return [int(line["step"]) for line in by_row[rows[0]][0]], logits


def _largest(history: History, form: str, rate: float) -> list[float]:
    """Return the largest logit by line: its geometric mean over the weight decays."""
    parsed = {name: parse_column(name) for name in history[0] if name != "step"}
    wanted = (form, rate, "max_logit")
    chosen = [name for name, (f, r, _, metric) in parsed.items() if (f, r, metric) == wanted]
    return [geometric_mean(float(line[name]) for name in chosen) for line in history]


def _of_form(history: History, form: str) -> History:
    """Return the lines that a form has values in: the other form may be longer."""
    return [line for line in history if any(line[n] for n in line if n.startswith(f"{form}/"))]


def toy_attention(maps: Runs, labels: Mapping[str, str]) -> "Figure":
    """Draw the most attention that the class token pays each token, in samples of both kinds.

    `maps`: the lines of one form in toy_seed<seed>_maps.csv; the answer token is outlined.
    """
    import matplotlib.pyplot as plt

    rows = [row for row in labels if any(line["row"] == row for line in maps)]
    figure, axes = plt.subplots(
        len(TITLES), len(rows), figsize=(1.9 * len(rows), 4.2), squeeze=False
    )
    for axes_of_split, (split, title) in zip(axes, TITLES.items(), strict=True):
        for ax, row in zip(axes_of_split, rows, strict=True):
            own = [line for line in maps if (line["row"], line["split"]) == (row, split)]
            weight, is_answer = (_image(own, name) for name in ("attention", "is_answer"))
            shown = ax.imshow(weight, vmin=0, vmax=1, cmap="Blues", aspect="auto")
            for sample, token in zip(*np.nonzero(is_answer), strict=True):
                corner = (token - 0.5, sample - 0.5)
                box = plt.Rectangle(corner, 1, 1, fill=False, edgecolor=RED, linewidth=1)
                ax.add_patch(box)
            ax.grid(False)
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_title(f"{labels[row]}\n{title}" if split == "robust" else title)
        axes_of_split[0].set_ylabel("sample")
    for ax in axes[-1]:
        ax.set_xlabel("token")
    figure.colorbar(shown, ax=axes, label="attention", fraction=0.05)
    return figure


def _image(lines: Sequence[Mapping[str, str]], name: str) -> np.ndarray:
    """Return the values of a column, samples x tokens; lines are in that order."""
    samples = len({line["sample"] for line in lines})
    return np.array([float(line[name]) for line in lines]).reshape(samples, -1)


def toy_logits(
    updates: Sequence[int],
    logits: Mapping[float, Mapping[str, np.ndarray]],
    labels: Mapping[str, str],
    form_name: str,
) -> "Figure":
    """Draw a form's largest logit over training, a panel for each learning rate.

    `logits`: rate -> row -> S x L, over the weight decays.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(logits), figsize=(4.2 * len(logits), 3.8), sharey=True, squeeze=False
    )
    for ax, (rate, by_row) in zip(axes[0], logits.items(), strict=True):
        for row, values_SL in by_row.items():
            line_with_band(ax, updates, np.log10(values_SL), labels[row], colour=COLOURS[row])
        ax.set_title(f"{form_name}, learning rate {rate:g}")
        ax.set_xlabel("update")
        label_lines(ax)
    axes[0, 0].set_ylabel("largest |logit|, log10")
    return figure


def toy_rates(by_form: Mapping[str, Runs], labels: Mapping[str, str]) -> "Figure":
    """Draw accuracy against learning rate, for the forms that were trained and both kinds."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(by_form), len(TITLES), figsize=(10.5, 3.6 * len(by_form)), squeeze=False
    )
    for axes_of_form, (form, own) in zip(axes, by_form.items(), strict=True):
        for ax, (split, title) in zip(axes_of_form, TITLES.items(), strict=True):
            x, found = series(own, labels, split=split, metric="accuracy")
            rates(ax, x, found, labels, y_name="accuracy, %")
            ax.set_title(f"{FORMS[form]}, {title}")
    return figure
