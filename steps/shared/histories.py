"""CSV files of numbers: the histories of training, and the check of their cells."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from steps.shared.runtime import InputError, read_csv, remedy


def read_history(path: str | Path, *columns: str) -> list[dict[str, str]]:
    """Read the lines, at least one, of a training history: numbers, or nothing, by `step`."""
    lines = read_csv(path, "step", *columns)
    check_numbers(path, lines, ("step",))
    check_numbers(path, lines, lines[0], blank=True)
    return lines


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
