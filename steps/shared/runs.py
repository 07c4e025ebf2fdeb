"""The lines of runs.csv: one number of one row and seed, as tables and claims read it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steps.shared.runtime import write_csv

# x: the place on a curve, such as a learning rate; empty for a number that has none
COLUMNS = ("table", "dataset", "split", "row", "metric", "seed", "x", "value")
Run = dict[str, Any]


def run_of(table: str, split: str, metric: str, value: float, x: float | str = "") -> Run:
    """Return what was measured, `value` of a column at `x`; the caller adds data set, row, seed."""
    return {"table": table, "split": split, "metric": metric, "value": float(value), "x": x}


def write_runs(path: Path, runs: Iterable[Run], *, seed: int) -> None:
    """Write the runs of one seed; an `x` that is not given is empty."""
    write_csv(path, COLUMNS, [{"x": "", **run, "seed": seed} for run in runs])
