"""What the figures of several tasks read alike: runs of a cell, histories of rows and seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from steps.shared.runtime import read_csv

Runs = Sequence[Mapping[str, str]]


def rows_in(runs: Runs, table: str, labels: Mapping[str, str]) -> list[str]:
    """Return the rows that a table has runs of, in the order of `labels`."""
    found = {run["row"] for run in runs if run["table"] == table}
    return [row for row in labels if row in found]


def by_x(
    runs: Runs, table: str, split: str, metric: str, labels: Mapping[str, str]
) -> tuple[list[float], dict[str, np.ndarray]]:
    """Return the x of a sweep's column and, by row label, its values over seeds and x (S x N)."""
    own = [
        run for run in runs if (run["table"], run["split"], run["metric"]) == (table, split, metric)
    ]
    x = sorted({float(run["x"]) for run in own})
    series = {}
    for row in rows_in(own, table, labels):
        values: dict[str, dict[float, float]] = {}
        for run in own:
            if run["row"] == row:
                values.setdefault(run["seed"], {})[float(run["x"])] = float(run["value"])
        series[labels[row]] = np.array([[seed[point] for point in x] for seed in values.values()])
    return x, series


def histories(folder: Path, row: str) -> list[list[dict[str, str]]]:
    """Return the histories of a row, one a seed, in the order of the seeds."""
    paths = sorted(
        (folder / row).glob("seed*/history.csv"), key=lambda path: int(path.parent.name[4:])
    )
    return [read_csv(path) for path in paths]
