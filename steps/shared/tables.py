"""The result tables of a paper: from `tables.yaml` and `runs.csv` to table.csv and Markdown.

The paper's own number stands in a column of its own with its setting named; it is never
subtracted. A table with an `x_name` is a sweep: x runs across the columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steps.shared.claims import ROUNDING, collect, effect_text, key_text
from steps.shared.intervals import t_interval
from steps.shared.runtime import InputError, write_csv
from steps.shared.table_spec import Column, Table, load_tables, undeclared

__all__ = ["aggregate", "load_tables", "render_markdown", "undeclared", "write_table"]

FIELDS = (
    "table",
    "dataset",
    "split",
    "row",
    "metric",
    "unit",
    "better",
    "x_name",
    "x",
    "mean",
    "sd",
    "n",
    "ci_low",
    "ci_high",
    "paper",
    "paper_setting",
    "comparable",
)
LEGEND = (
    "Mean ± half of the 95 % t interval over seeds; ↑ higher is better, ↓ lower is better. "
    "A claim compares within each seed first, so its interval can be far narrower than the cells'."
)
ELSEWHERE = "Claims about other tables of the paper"
Row = dict[str, Any]


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


@dataclass
class Grid:
    """A table laid out for the eye; each cell is (text, whether it is the paper's)."""

    caption: str
    header: list[tuple[str, bool]]
    notes: list[str]
    lines: list[list[tuple[str, bool]]] = field(default_factory=list)


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
    grid = Grid("", header, [_setting(column) for column in table.columns if column.paper])
    grid.lines = [[(label, False)] for label in table.rows.values()]
    for column in table.columns:
        start = (column.dataset, column.split, column.metric)
        cells = [by.get((*start, name, None)) for name in table.rows]
        if any(_count(cell) for cell in cells):
            header.append((_heading(column), False))
            for line, cell in zip(grid.lines, cells, strict=True):
                line.append((_mean_text(cell, column), False))
        if column.paper:
            header.append((f"paper: {_heading(column)}", True))
            for line, cell in zip(grid.lines, cells, strict=True):
                line.append((_paper_text(cell), True))
    grid.notes += _seeds_note(by.values())
    yield grid


def _sweep(table: Table, column: Column, by: Mapping[tuple, Row]) -> Grid:
    start = (column.dataset, column.split, column.metric)
    xs = sorted({key[4] for key in by if key[:3] == start})
    header = [(f"{table.row_title} \\ {table.x_name}", False), *((f"{x:g}", False) for x in xs)]
    grid = Grid(_heading(column), header, [_setting(column)] if column.paper else [])
    for name, label in table.rows.items():
        cells = [by.get((*start, name, x)) for x in xs]
        if any(_count(cell) for cell in cells):
            grid.lines.append([(label, False), *((_mean_text(c, column), False) for c in cells)])
        if name in column.paper:
            paper = [(_paper_text(cell), True) for cell in cells]
            grid.lines.append([(f"paper: {label}", True), *paper])
    grid.notes += _seeds_note(row for key, row in by.items() if key[:3] == start)
    return grid


def _count(cell: Mapping[str, Any] | None) -> int:
    return int(cell["n"]) if cell else 0


def _seeds_note(cells: Iterable[Row]) -> list[str]:
    counts = sorted({_count(cell) for cell in cells} - {0})
    return [f"Seeds: n = {' or '.join(map(str, counts))}."] if counts else []


def _heading(column: Column) -> str:
    arrow = {"higher": " ↑", "lower": " ↓", "neither": ""}[column.better]
    return f"{column.label}{f' ({column.unit})' if column.unit else ''}{arrow}"


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
    half = ""
    if low is not None:
        width = mean - low if mean - low > ROUNDING * abs(mean) else 0.0
        half = f" ± {_rounded(width, column.digits)}"
    return f"{_rounded(mean, column.digits)}{half}"


def _rounded(value: float, digits: int) -> str:
    """Return `value` with `digits` decimals, or two significant ones if those would all be 0."""
    vanishes = 0 < abs(value) < 0.5 * 10.0**-digits
    return f"{value:.2g}" if vanishes else f"{value:.{digits}f}"


def _paper_text(cell: Mapping[str, Any] | None) -> str:
    number = _number(cell["paper"]) if cell else None
    return "–" if number is None else f"{number:g}"


def render_markdown(
    rows: Sequence[Row], spec: Sequence[Table], claims: Sequence[Row], *, title: str
) -> str:
    """Return table.md: every table, under it the claims it tests with effect and verdict.

    `rows`: of table.csv, fresh or read back; `claims`: of claims.json.
    """
    parts = [f"# {title}"]
    for table in spec:
        parts.append(f"## {table.title}")
        for grid in layout(rows, table):
            parts += [f"**{grid.caption}**"] if grid.caption else []
            lines = [[text for text, _ in line] for line in (grid.header, *grid.lines)]
            lines.insert(1, ["---", *["---:"] * (len(grid.header) - 1)])
            parts.append("\n".join(f"| {' | '.join(map(_piped, line))} |" for line in lines))
            parts += [" ".join(grid.notes)] if grid.notes else []
        listed = [_claim_line(claim) for claim in claims if claim["table"] == table.id]
        parts += ["\n".join(listed)] if listed else []
    if others := claims_elsewhere(spec, claims):
        parts += [f"## {ELSEWHERE}", "\n".join(map(_claim_line, others))]
    return "\n\n".join([*parts, LEGEND]) + "\n"


def claims_elsewhere(spec: Sequence[Table], claims: Sequence[Row]) -> list[Row]:
    """Return the claims about tables of the paper that `spec` does not have."""
    shown = {table.id for table in spec}
    return [claim for claim in claims if claim["table"] not in shown]


def _piped(text: str) -> str:
    return text.replace("|", "\\|")


def _claim_line(claim: Row) -> str:
    details = [paper_effect_text(claim), effect_text(claim) and f"ours: {effect_text(claim)}"]
    details.append(claim["note"])
    tail = "; ".join(detail for detail in details if detail)
    return f"- **{claim['verdict']}**: {claim['statement']}{f' ({tail})' if tail else ''}"


def paper_effect_text(claim: Row) -> str:
    """Return 'paper: ...' of a row of claims.json, or '' where the paper gives no number."""
    effect = claim["paper_effect"]
    if effect is None:
        return ""
    return f"paper: {effect}" if isinstance(effect, str) else f"paper: {effect:g}"
