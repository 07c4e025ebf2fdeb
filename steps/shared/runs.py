"""The lines of runs.csv: one number of one row and seed, as tables, claims and figures read it.

Shapes: S seeds, N points along x.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steps.shared.runtime import write_csv

if TYPE_CHECKING:
    from numpy import ndarray

# x: the place on a curve, such as a learning rate; empty for a number that has none
COLUMNS = ("table", "dataset", "split", "row", "metric", "seed", "x", "value")
Run = dict[str, Any]
Runs = Sequence[Mapping[str, str]]  # as they are read


def run_of(table: str, split: str, metric: str, value: float, x: float | str = "") -> Run:
    """Return what was measured, `value` of a column at `x`; the caller adds data set, row, seed."""
    return {"table": table, "split": split, "metric": metric, "value": float(value), "x": x}


def write_runs(path: Path, runs: Iterable[Run], *, seed: int) -> None:
    """Write the runs of one seed; an `x` that is not given is empty."""
    write_csv(path, COLUMNS, [{"x": "", **run, "seed": seed} for run in runs])


def series(
    runs: Runs, rows: Iterable[str], **cell: str
) -> tuple[list[float | None], dict[str, "ndarray"]]:
    """Return x (N) and, by row, the values (S x N) of the runs of a cell, such as table="main".

    Rows that have such runs, in the order of `rows`; seeds ascend, and so does x: [None] for a
    number that is on no curve. A value that is missing at some x is nan.
    """
    import numpy as np

    found: dict[str, dict[int, dict[float | None, float]]] = {row: {} for row in rows}
    for run in runs:
        if run["row"] in found and all(run[name] == wanted for name, wanted in cell.items()):
            x = float(run["x"]) if run["x"] != "" else None
            found[run["row"]].setdefault(int(run["seed"]), {})[x] = float(run["value"])
    present = {row: [own[seed] for seed in sorted(own)] for row, own in found.items() if own}
    places = {x for own in present.values() for points in own for x in points}
    x_N = sorted(places, key=lambda x: x or 0.0)
    return x_N, {
        row: np.array([[points.get(x, np.nan) for x in x_N] for points in own])
        for row, own in present.items()
    }
