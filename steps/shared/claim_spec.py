"""What `claims.yaml` may say: the models of a claim and of the measure that tests it."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from steps.shared.runtime import InputError, reading

Cell = tuple[tuple[str, str, str, str, str], list[float] | None]


class Declared(BaseModel):
    """A block of a committed YAML file: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_points(value: Any) -> Any:
    return {"rows": value} if isinstance(value, str | list) else value


Names = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
Numbers = Annotated[list[float], BeforeValidator(_listed), Field(min_length=1)]


class Points(Declared):
    """One side of a measure: every cell in datasets x rows x x; what is absent is the measure's."""

    rows: Names
    table: str | None = None
    dataset: Names | None = None
    split: str | None = None
    metric: str | None = None
    x: Numbers | None = None


Side = Annotated[Points, BeforeValidator(_as_points)]


class Measure(Declared):
    """How one seed's runs become one scalar; `a` and `b` are rows, lists of rows, or points."""

    function: Literal[
        "paired_difference", "ratio", "spread_difference", "rank_correlation", "max_error"
    ]
    table: str | None = None
    dataset: Names
    split: str
    metric: str
    x: Numbers | None = None
    a: Side
    b: Side | None = None
    against: dict[str, float] | None = None

    @model_validator(mode="after")
    def _sides(self) -> "Measure":
        two_sided = self.function in ("paired_difference", "ratio", "spread_difference")
        if two_sided != (self.b is not None):
            raise ValueError(f"{self.function} {'needs' if two_sided else 'takes no'} b")
        if self.against is not None and self.function != "rank_correlation":
            raise ValueError("against belongs to rank_correlation")
        if self.against is not None and not set(self.a.rows) <= set(self.against):
            raise ValueError("against must give a number for each row of a")
        return self


class Claim(Declared):
    """One claim of a paper. `delta` is the smallest difference that matters, in `unit`."""

    id: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    statement: str
    kind: Literal["identity", "direction", "size"]
    side: Literal["above", "below", "at_least", "at_most", "equal"] | None = None
    delta: float = Field(ge=0)
    unit: str
    paper_effect: str | float | None
    table: str
    measure: Measure | None = None
    items: str | None = None
    not_tested: str | None = None
    test: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> "Claim":
        if self.measure is None and self.not_tested is None:
            raise ValueError("a claim needs a measure, or not_tested with the reason")
        identity = self.kind == "identity"
        if identity != (self.test is not None) or identity != (self.side is None):
            raise ValueError("an identity names its test and has no side; others the reverse")
        if self.measure and identity != (self.measure.function == "max_error"):
            raise ValueError("max_error is the measure of identities, and of nothing else")
        if self.kind == "size" and self.side not in ("above", "below"):
            raise ValueError("the side of a size is above or below")
        if self.side in ("equal", "at_least", "at_most") and self.delta == 0:
            raise ValueError(f"side {self.side} needs a delta above 0")
        return self

    def sides(self) -> list[list["Cell"]]:
        """Return the cells that a and b read: datasets x rows, each with the x it asks for."""
        measure = self.measure
        given = [side for side in (measure.a, measure.b) if side] if measure else []
        return [[*self._cells(side)] for side in given]

    def _cells(self, side: Points) -> Iterator["Cell"]:
        measure = self.measure
        table = side.table or measure.table or self.table
        split, metric = side.split or measure.split, side.metric or measure.metric
        for dataset, row in product(side.dataset or measure.dataset, side.rows):
            yield (table, dataset, split, row, metric), side.x or measure.x


def read_declared(path: str | Path, model: type[Declared]) -> list[Any]:
    """Read a YAML list of `model` with unique ids; one line says what is wrong otherwise."""
    import yaml

    with reading(path, "readable"):
        blocks = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    if not isinstance(blocks, list):
        raise InputError(f"{path}: must be a list of {model.__name__.lower()}s")
    declared: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        name = block.get("id", number) if isinstance(block, dict) else number
        try:
            item = model.model_validate(block)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in (name, *first["loc"]))
            given = f", not {first['input']!r:.80}" if first["loc"] else ""
            raise InputError(f"{path}: {where}: {first['msg']}{given}") from None
        if item.id in declared:
            raise InputError(f"{path}: id {item.id} appears twice; ids are unique")
        declared[item.id] = item
    return list(declared.values())


def load_claims(path: str | Path) -> list[Claim]:
    """Read a paper's `claims.yaml`."""
    return read_declared(path, Claim)
