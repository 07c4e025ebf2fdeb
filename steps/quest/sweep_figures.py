"""The figure of the sweep: final loss and largest logit against the learning rate."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.figure_data import rates
from steps.shared.runs import Runs, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = [
    ("train", "loss", "final training loss, nats"),
    ("validation", "loss", "final validation loss, nats"),
    ("all", "max_logit", "largest |logit|, log10"),
]


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from its runs."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PANELS), figsize=(4.6 * len(PANELS), 4.0))
    for ax, (split, metric, y_name) in zip(axes, PANELS, strict=True):
        x, found = series(runs, labels, table="sweep_rate", split=split, metric=metric)
        if metric == "max_logit":
            found = {row: np.log10(values_SN) for row, values_SN in found.items()}
        rates(ax, x, found, labels, y_name=y_name)
    return {"sweep_stability": figure}
