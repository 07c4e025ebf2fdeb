"""The figure of the sweep: final loss and largest logit against the learning rate."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.quest.figure_data import Runs, by_x, colour_rows, rows_in
from steps.shared.plots import sweep

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
        x, series = by_x(runs, "sweep_rate", split, metric, labels)
        colour_rows(ax, rows_in(runs, "sweep_rate", labels))
        if metric == "max_logit":
            series = {label: np.log10(values_SN) for label, values_SN in series.items()}
        sweep(ax, x, series, x_name="learning rate", y_name=y_name, log_x=True)
    return {"sweep_stability": figure}
