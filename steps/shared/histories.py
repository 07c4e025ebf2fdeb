"""CSV files of numbers: the histories of training, and the check of their cells.

Shapes: S seeds, L lines of a history.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from steps.shared.runtime import InputError, read_csv, remedy, write_csv

History = list[dict[str, str]]


def read_history(path: str | Path, *columns: str) -> History:
    """Read the lines, at least one, of a training history: numbers, or nothing, by `step`."""
    lines = read_csv(path, "step", *columns)
    check_numbers(path, lines, ("step",))
    check_numbers(path, lines, lines[0], blank=True)
    return lines


def write_history(path: Path, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Write the lines, at least one, of a training; return the values of the last, as W&B's."""
    write_csv(path, list(lines[0]), lines)
    return {key: value for key, value in lines[-1].items() if key != "step" and value is not None}


def histories(
    folder: Path, rows: Iterable[str], seeds: Sequence[int], *columns: str
) -> dict[str, list[History]]:
    """Return by row the histories of its seeds, which have these columns, below `folder`."""
    return {
        row: [
            read_history(folder / row / f"seed{seed}" / "history.csv", *columns) for seed in seeds
        ]
        for row in rows
    }


def curve(own: Sequence[History], column: str) -> tuple[list[int], list[list[float]]]:
    """Return the steps (L) at which a column has numbers, and those of each seed (S x L)."""
    steps = [int(line["step"]) for line in own[0] if line[column]]
    return steps, [[float(line[column]) for line in lines if line[column]] for lines in own]


def check_numbers(
    path: str | Path,
    lines: Sequence[Mapping[str, str]],
    columns: Iterable[str],
    *,
    blank: bool = False,
) -> None:
    """Refuse no lines at all, and a cell of these columns without a number; `blank` ones may be."""
    if not lines:
        raise InputError(f"{path}: has no line below its header{remedy(path)}")
    for name in columns:
        for number, line in enumerate(lines, 1):
            try:
                float(line[name] or ("nan" if blank else ""))
            except ValueError:
                raise InputError(
                    f"{path}: record {number}: {name} = {line[name]!r}: must be a number"
                    f"{remedy(path)}"
                ) from None
