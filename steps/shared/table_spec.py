"""What `tables.yaml` may say: a table, its columns, and the paper's numbers."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from steps.shared.claim_spec import Claim, Declared, read_declared


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
    better: Literal["higher", "lower", "neither"]
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
    """Return what claims read that no table declares, one line each: typos, in short."""
    known = {
        (table.id, column.dataset, column.split, row, column.metric)
        for table in tables
        for column in table.columns
        for row in table.rows
    }
    read = [(claim.id, cell) for claim in claims for side in claim.sides() for cell, _ in side]
    return [f"claim {name} reads {'/'.join(cell)}" for name, cell in read if cell not in known]
