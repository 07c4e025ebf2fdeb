"""The lines of runs.csv that a task's evaluation writes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steps.shared.runtime import write_csv

COLUMNS = ["table", "dataset", "split", "row", "metric", "seed", "x", "value"]
Run = dict[str, Any]


def run_of(table: str, split: str, metric: str, value: float, x: float | str = "") -> Run:
    """Return what was measured, `value` of a column at `x`; the caller adds data set, row, seed."""
    return {"table": table, "split": split, "metric": metric, "value": float(value), "x": x}


def write_runs(path: Path, runs: Iterable[Run], *, seed: int) -> None:
    """Write the runs of one seed."""
    write_csv(path, COLUMNS, [{**run, "seed": seed} for run in runs])
