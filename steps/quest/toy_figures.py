"""The toy's figures: attention with and without the pattern, logits over training, rates.

Shapes: S seeds, L history lines, N points along x.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.figure_data import (
    COLOURS,
    Runs,
    by_x,
    colour_rows,
    histories,
    read_maps,
    rows_in,
    seeds_in,
)
from steps.quest.toy_config import parse_column
from steps.shared.plots import PALETTE, label_lines, line_with_band, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"robust": "no pattern", "biased": "spurious pattern"}
FORMS = {"minimal": "one layer", "full": "network"}


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from its runs, histories and attention maps."""
    path = measured / f"toy_seed{seeds_in(runs, 'toy_rate')[0]}_maps.csv"
    maps = read_maps(path, ("dataset", "split", "row", "sample"), ("attention", "is_answer"))
    network = [line for line in maps if line["dataset"] == "full"]
    own = [run for run in runs if run["table"] == "toy_rate"]
    updates, logits = _logits(trained, own, labels)
    return {
        "toy_attention": toy_attention(network, labels),
        "toy_logits": toy_logits(updates, logits, labels),
        "toy_rates": toy_rates(own, labels),
    }


def _logits(
    trained: Path, runs: Runs, labels: Mapping[str, str]
) -> tuple[np.ndarray, dict[float, dict[str, np.ndarray]]]:
    """Return the updates (L) and the network's largest logit: rate -> row -> S x L."""
    logits: dict[float, dict[str, np.ndarray]] = {}
    network = [run for run in runs if run["dataset"] == "full"]
    for row in rows_in(network, "toy_rate", labels):
        by_seed = histories(trained, row, seeds_in(network, "toy_rate"))
        for rate in sorted({float(run["x"]) for run in network}):
            values_SL = [_network_logits(history, rate) for history in by_seed]
            logits.setdefault(rate, {})[row] = np.array(values_SL)
    return np.array([int(line["step"]) for line in _of_network(by_seed[0])]), logits


def _network_logits(history: list[dict[str, str]], rate: float) -> list[float]:
    """Return the largest logit by line: its geometric mean over the weight decays."""
    lines = _of_network(history)
    parsed = {name: parse_column(name) for name in lines[0] if name != "step"}
    wanted = ("full", rate, "max_logit")
    chosen = [name for name, (f, r, _, metric) in parsed.items() if (f, r, metric) == wanted]
    return [geometric_mean(float(line[name]) for name in chosen) for line in lines]


def _of_network(history: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the lines that the network has values in: the other form may be longer."""
    return [line for line in history if any(line[n] for n in line if n.startswith("full/"))]


def toy_attention(maps: Runs, labels: Mapping[str, str]) -> "Figure":
    """Draw the most attention that the class token pays each token, in samples of both kinds.

    `maps`: the lines of the network in toy_seed<seed>_maps.csv; the answer token is outlined.
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
                box = plt.Rectangle(corner, 1, 1, fill=False, edgecolor=PALETTE[1], linewidth=1)
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
    updates: np.ndarray,
    logits: Mapping[float, Mapping[str, np.ndarray]],
    labels: Mapping[str, str],
) -> "Figure":
    """Draw the network's largest logit over training, a panel for each learning rate.

    `logits`: rate -> row -> S x L, over the weight decays.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(logits), figsize=(4.2 * len(logits), 3.8), sharey=True, squeeze=False
    )
    for ax, (rate, by_row) in zip(axes[0], logits.items(), strict=True):
        for row, values_SL in by_row.items():
            line_with_band(ax, updates, np.log10(values_SL), labels[row], colour=COLOURS[row])
        ax.set_title(f"network, learning rate {rate:g}")
        ax.set_xlabel("update")
        label_lines(ax)
    axes[0, 0].set_ylabel("largest |logit|, log10")
    return figure


def toy_rates(runs: Runs, labels: Mapping[str, str]) -> "Figure":
    """Draw accuracy against learning rate, for both forms and kinds of samples."""
    import matplotlib.pyplot as plt

    forms = [form for form in FORMS if any(run["dataset"] == form for run in runs)]
    figure, axes = plt.subplots(
        len(forms), len(TITLES), figsize=(10.5, 3.6 * len(forms)), squeeze=False
    )
    for axes_of_form, form in zip(axes, forms, strict=True):
        own = [run for run in runs if run["dataset"] == form]
        for ax, (split, title) in zip(axes_of_form, TITLES.items(), strict=True):
            colour_rows(ax, rows_in(own, "toy_rate", labels))
            x, series = by_x(own, "toy_rate", split, "accuracy", labels)
            sweep(ax, x, series, x_name="learning rate", y_name="accuracy, %", log_x=True)
            ax.set_title(f"{FORMS[form]}, {title}")
    return figure
