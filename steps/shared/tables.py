"""The result tables of a paper: from `tables.yaml` and `runs.csv` to table.csv, Markdown and HTML.

The paper's own number stands in a column of its own with its setting named; it is never
subtracted. A table with an `x_name` is a sweep: x runs across the columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from steps.shared.claim_spec import Claim, Declared, read_declared
from steps.shared.claims import collect, effect_text, key_text
from steps.shared.intervals import t_interval
from steps.shared.runtime import InputError, write_csv

FIELDS = (
    *("table", "dataset", "split", "row", "metric", "unit", "better", "x_name", "x"),
    *("mean", "sd", "n", "ci_low", "ci_high", "paper", "paper_setting", "comparable"),
)
Row = dict[str, Any]


def _yes_no(value: Any) -> Any:
    """Undo YAML, which reads a bare yes or no as a truth value."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


class Column(Declared):
    """One measured quantity; `paper` gives the paper's number by row, in a sweep by row and x."""

    label: str
    dataset: str
    split: str
    metric: str
    unit: str
    better: Literal["higher", "lower"]
    digits: int = Field(ge=0, le=9)
    paper: dict[str, float | dict[float, float]] = {}
    paper_setting: str = ""
    comparable: Annotated[Literal["yes", "no"], BeforeValidator(_yes_no)] = "no"

    @model_validator(mode="after")
    def _setting(self) -> "Column":
        if self.paper and not self.paper_setting:
            raise ValueError("the paper's numbers need their paper_setting")
        return self


class Table(Declared):
    """One table: its rows in order (name in runs.csv -> label) and its columns."""

    id: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    title: str
    row_title: str
    x_name: str = ""
    rows: dict[str, str] = Field(min_length=1)
    columns: list[Column] = Field(min_length=1)

    @model_validator(mode="after")
    def _known(self) -> "Table":
        for column in self.columns:
            if unknown := set(column.paper) - set(self.rows):
                raise ValueError(f"paper numbers for undeclared rows {sorted(unknown)}")
            if any(isinstance(v, dict) != bool(self.x_name) for v in column.paper.values()):
                raise ValueError("paper numbers go by row, and by x exactly where x_name is set")
        names = [(c.dataset, c.split, c.metric) for c in self.columns]
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same dataset, split and metric")
        return self


def load_tables(path: str | Path) -> list[Table]:
    """Read a paper's `tables.yaml`."""
    return read_declared(path, Table)


def undeclared(claims: Iterable[Claim], tables: Sequence[Table]) -> list[str]:
    """Return what claims read and no table declares, one line each: a guard against typos."""
    known = {
        (table.id, column.dataset, column.split, column.metric, row)
        for table in tables
        for column in table.columns
        for row in table.rows
    }
    lines = []
    for claim in claims:
        for key in claim.reads():
            if key not in known:
                lines.append(f"claim {claim.id} reads {'/'.join(key)}, which no table declares")
    return lines


def aggregate(runs: Iterable[Mapping[str, Any]], spec: Sequence[Table]) -> list[Row]:
    """Return the rows of table.csv in declared order; a run that no table declares is an error.

    A cell that was not run appears only where the paper has a number for it.
    """
    cells = collect(runs)
    rows = []
    for table in spec:
        for column in table.columns:
            for name in table.rows:
                start = (table.id, column.dataset, column.split, name, column.metric)
                paper = _paper_numbers(column, name)
                xs = {key[5] for key in cells if key[:5] == start} | set(paper)
                for x in sorted(xs, key=lambda x: x or 0.0):
                    values = cells.pop((*start, x), {})
                    if (x is None) == bool(table.x_name):
                        raise InputError(f"runs: {key_text((*start, x))}: x goes with x_name only")
                    rows.append(_cell(table, column, name, x, values, paper.get(x)))
    if cells:
        raise InputError(f"runs: no table declares {key_text(next(iter(cells)))}")
    return rows


def _paper_numbers(column: Column, row: str) -> dict[float | None, float]:
    number = column.paper.get(row, {})
    return dict(number) if isinstance(number, dict) else {None: number}


def _cell(
    table: Table,
    column: Column,
    name: str,
    x: float | None,
    values: Mapping[int, float],
    paper: float | None,
) -> Row:
    row: Row = dict.fromkeys(FIELDS)
    row |= {"table": table.id, "row": name, "x_name": table.x_name, "n": len(values)}
    row |= {key: getattr(column, key) for key in ("dataset", "split", "metric", "unit", "better")}
    row |= {"x": x, "paper": paper}
    if paper is not None:
        row |= {"paper_setting": column.paper_setting, "comparable": column.comparable}
    if values:
        statistics = t_interval([values[seed] for seed in sorted(values)])
        known = (None if value != value else float(value) for value in statistics)
        row |= dict(zip(("mean", "sd", "ci_low", "ci_high"), known, strict=True))
    return row


def write_table(path: str | Path, rows: Iterable[Row]) -> None:
    """Write table.csv: the same rows give the same bytes."""
    write_csv(path, FIELDS, rows)


class Grid:
    """A table laid out for the eye: a header and lines of (text, is it the paper's)."""

    def __init__(self, caption: str, header: list[tuple[str, bool]], notes: list[str]) -> None:
        """Start an empty grid; `notes` name the settings of the paper's numbers."""
        self.caption, self.header, self.notes = caption, header, notes
        self.lines: list[list[tuple[str, bool]]] = []


def layout(rows: Sequence[Row], table: Table) -> Iterator[Grid]:
    """Yield one grid for a plain table, one per column for a sweep, from rows of table.csv."""
    by = {}
    for r in rows:
        if r["table"] == table.id:
            by[r["dataset"], r["split"], r["metric"], r["row"], _number(r["x"])] = r
    if table.x_name:
        for column in table.columns:
            yield _sweep(table, column, by)
        return
    header = [(table.row_title, False)]
    for column in table.columns:
        header.append((_heading(column), False))
        header += [(f"paper: {column.label}", True)] if column.paper else []
    grid = Grid("", header, list(dict.fromkeys(_setting(c) for c in table.columns if c.paper)))
    for name, label in table.rows.items():
        line = [(label, False)]
        for column in table.columns:
            cell = by.get((column.dataset, column.split, column.metric, name, None))
            line.append((_mean_text(cell, column), False))
            line += [(_paper_text(cell, column), True)] if column.paper else []
        grid.lines.append(line)
    yield grid


def _sweep(table: Table, column: Column, by: Mapping[tuple, Row]) -> Grid:
    start = (column.dataset, column.split, column.metric)
    xs = sorted({key[4] for key in by if key[:3] == start})
    header = [(f"{table.row_title} \\ {table.x_name}", False), *((f"{x:g}", False) for x in xs)]
    grid = Grid(_heading(column), header, [_setting(column)] if column.paper else [])
    for name, label in table.rows.items():
        cells = [by.get((*start, name, x)) for x in xs]
        if any(cell and cell["n"] not in (0, "0") for cell in cells):
            texts = [(_mean_text(cell, column), False) for cell in cells]
            grid.lines.append([(label, False), *texts])
        if name in column.paper:
            texts = [(_paper_text(cell, column), True) for cell in cells]
            grid.lines.append([(f"paper: {label}", True), *texts])
    return grid


def _heading(column: Column) -> str:
    arrow = "↑" if column.better == "higher" else "↓"
    return f"{column.label}{f' ({column.unit})' if column.unit else ''} {arrow}"


def _setting(column: Column) -> str:
    differs = "" if column.comparable == "yes" else "; another setting, not comparable with ours"
    return f"The paper's {column.label}: {column.paper_setting}{differs}."


def _number(value: Any) -> float | None:
    return None if value in ("", None) else float(value)


def _mean_text(cell: Mapping[str, Any] | None, column: Column) -> str:
    mean = _number(cell["mean"]) if cell else None
    if mean is None:
        return "–"
    low = _number(cell["ci_low"])
    half = "" if low is None else f" ± {mean - low:.{column.digits}f}"
    return f"{mean:.{column.digits}f}{half}"


def _paper_text(cell: Mapping[str, Any] | None, column: Column) -> str:
    number = _number(cell["paper"]) if cell else None
    return "–" if number is None else f"{number:g}"
