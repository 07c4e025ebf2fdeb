"""The figure of the language model: loss and largest logit over training."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from steps.quest.figure_data import TRAINING, Runs, histories, rows_in, seeds_in, training

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from the histories below `trained`."""
    rows = rows_in(runs, "language", labels)
    seeds = seeds_in(runs, "language")
    by_row = {row: histories(trained, row, seeds, *TRAINING) for row in rows}
    return {"language_training": training(by_row, labels)}
