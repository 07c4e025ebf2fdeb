"""QUEST's figures: attention with and without the pattern, logits over training, rates.

Shapes: S seeds, L history lines, N points along x.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steps.shared.plots import PALETTE, label_lines, line_with_band, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"robust": "no pattern", "biased": "spurious pattern"}
FORMS = {"minimal": "one layer", "full": "network"}


def toy_attention(maps: Sequence[Mapping[str, str]], labels: Mapping[str, str]) -> "Figure":
    """Draw the most attention that the class token pays each token, in samples of both kinds.

    `maps`: lines of toy_attention.csv of one seed; the answer token is outlined.
    """
    import matplotlib.pyplot as plt

    rows = [row for row in labels if any(line["row"] == row for line in maps)]
    figure, axes = plt.subplots(
        *(len(TITLES), len(rows)), figsize=(1.9 * len(rows), 4.2), squeeze=False
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
            line_with_band(ax, updates, np.log10(values_SL), labels[row])
        ax.set_title(f"network, learning rate {rate:g}")
        ax.set_xlabel("update")
        label_lines(ax)
    axes[0, 0].set_ylabel("largest |logit|, log10")
    return figure


def toy_rates(runs: Sequence[Mapping[str, str]], labels: Mapping[str, str]) -> "Figure":
    """Draw accuracy against learning rate, for both forms and kinds of samples."""
    import matplotlib.pyplot as plt

    forms = [form for form in FORMS if any(run["dataset"] == form for run in runs)]
    figure, axes = plt.subplots(
        *(len(forms), len(TITLES)), figsize=(10.5, 3.6 * len(forms)), squeeze=False
    )
    for axes_of_form, form in zip(axes, forms, strict=True):
        for ax, (split, title) in zip(axes_of_form, TITLES.items(), strict=True):
            names = ("toy_rate", form, split, "accuracy")
            keys = ("table", "dataset", "split", "metric")
            own = [run for run in runs if tuple(run[key] for key in keys) == names]
            x = sorted({float(run["x"]) for run in own})
            series = {label: _by_seed(own, row, x) for row, label in labels.items()}
            series = {label: values_SN for label, values_SN in series.items() if values_SN}
            sweep(ax, x, series, x_name="learning rate", y_name="accuracy, %", log_x=True)
            ax.set_title(f"{FORMS[form]}, {title}")
    return figure


def _by_seed(runs: Sequence[Mapping[str, str]], row: str, x: Sequence[float]) -> list[list[float]]:
    """Return a row's values, S x N."""
    values: dict[str, dict[float, float]] = {}
    for run in runs:
        if run["row"] == row:
            values.setdefault(run["seed"], {})[float(run["x"])] = float(run["value"])
    return [[seed[point] for point in x] for seed in values.values()]
