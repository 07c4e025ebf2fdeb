"""The figure of the language model: loss and largest logit over training."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from steps.quest.figure_data import training
from steps.shared.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    runs: Runs, labels: Mapping[str, str], *, trained: Path, measured: Path
) -> dict[str, "Figure"]:
    """Return the task's figures by name, from the histories below `trained`."""
    return {"language_training": training(runs, "language", labels, trained)}
