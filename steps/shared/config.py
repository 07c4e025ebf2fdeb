"""The configuration: one YAML file, overlays for other scales, one pydantic model a phase.

A paper's block is `papers.<paper>: {seeds, rows, prepare, train: {common, rows}, merge, evaluate}`.
Its models are `Prepare`, `Train`, `Merge` and `Evaluate` in `steps/<paper>/config.py`.

Rules between phases are in a function `check(block)` beside the models, if a paper has any. It is
given a `Block` whose phases are valid and yields (key, value, rule) for each mistake, the key
without `papers.<paper>.`. A key `train.rows.<row>.<field>` is shown where the row's value is set.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

from steps.shared.config_files import PARAMS, SCALES, merge, read_yaml
from steps.shared.config_problems import Problem, list_problems, model_problems
from steps.shared.runtime import InputError

PHASES = ("prepare", "train", "merge", "evaluate")
BLOCK = ("seeds", "rows", *PHASES)


class StepConfig(BaseModel):
    """Base of every phase's configuration: no unknown keys, no coercion, finite, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Block:
    """A paper's whole block, as its `check` sees it; each phase is the paper's own model.

    `train` holds the resolved configuration of every row that is declared, also of those that
    `rows` does not select.
    """

    seeds: list[int]
    rows: list[str]
    prepare: Any
    train: dict[str, Any]
    merge: Any
    evaluate: Any


def resolve(
    config: Mapping[str, Any], paper: str, phase: str, row: str | None = None
) -> dict[str, Any]:
    """Return exactly the mapping that one phase (and row, for train) of a paper reads."""
    block = config["papers"][paper][phase]
    if phase == "train":
        return merge(block["common"] or {}, block["rows"][row] or {})
    return dict(block)


@cache
def part(phase: type[StepConfig], name: str) -> type[StepConfig]:
    """Return the model of what a job reads that reads one field of a phase: that field, alone.

    So a change of one data set or task does not rerun another.
    """
    field = phase.model_fields[name]
    return create_model(
        f"{phase.__name__}_{name}", __base__=StepConfig, **{name: (field.annotation, field)}
    )


def validate(config: Mapping[str, Any]) -> None:
    """Check every paper's block; an error is one line: file, key, value, rule."""
    problems = []
    scale, papers = config.get("scale"), config.get("papers")
    if not isinstance(scale, str) or not scale:
        raise InputError(f"{PARAMS}: scale = {scale!r}: must be the name of a scale")
    if not isinstance(papers, Mapping) or not papers:
        raise InputError(f"{PARAMS}: papers = {papers!r}: must be a mapping of at least one paper")
    problems += [
        (str(key), "...", "unknown key; allowed: scale, papers")
        for key in config
        if key not in ("scale", "papers")
    ]
    for paper, block in papers.items():
        problems += _block_problems(str(paper), block)
    if problems:
        lines = [f"{_origin(scale, key)}: {key} = {item!r}: {rule}" for key, item, rule in problems]
        raise InputError("\n".join(lines))


def _block_problems(paper: str, block: Any) -> list[Problem]:
    here = f"papers.{paper}"
    if not isinstance(block, Mapping):
        return [(here, block, f"must be a mapping with the keys {', '.join(BLOCK)}")]
    problems = [(f"{here}.{key}", None, "is missing") for key in BLOCK if key not in block]
    problems += [
        (f"{here}.{key}", block[key], f"unknown key; allowed: {', '.join(BLOCK)}")
        for key in block
        if key not in BLOCK
    ]
    if problems:
        return problems
    try:
        models = importlib.import_module(f"steps.{paper}.config")
        known = [hasattr(models, phase.capitalize()) for phase in PHASES]
    except ModuleNotFoundError:
        known = [False]
    if not all(known):
        rule = f"no such paper: no steps/{paper}/config.py with a model for every phase"
        return [(here, "...", rule)]
    problems += list_problems(f"{here}.seeds", block["seeds"], int)
    problems += list_problems(f"{here}.rows", block["rows"], str)
    for phase in ("prepare", "merge", "evaluate"):
        model = getattr(models, phase.capitalize())
        problems += model_problems(model, block[phase], f"{here}.{phase}")
    problems += _train_problems(models.Train, block, f"{here}.train")
    if not problems and hasattr(models, "check"):
        problems += _check_problems(models, paper, block)
    return problems


def _train_problems(model: type[StepConfig], block: Mapping[str, Any], here: str) -> list[Problem]:
    train = block["train"]
    if not isinstance(train, Mapping) or set(train) != {"common", "rows"}:
        return [(here, train, "must have exactly the keys common, rows")]
    common, rows = train["common"] or {}, train["rows"] or {}
    for key, value in (("common", common), ("rows", rows)):
        if not isinstance(value, Mapping):
            return [(f"{here}.{key}", value, "must be a mapping")]
    named = block["rows"] if isinstance(block["rows"], list) else []
    missing = [row for row in named if isinstance(row, str) and row not in rows]
    present = sorted(map(str, rows))
    problems: list[Problem] = [
        (f"{here}.rows", present, f"has no entry {row!r}, which rows names") for row in missing
    ]
    for row, own in rows.items():
        if own is not None and not isinstance(own, Mapping):
            problems.append((f"{here}.rows.{row}", own, "must be a mapping"))
            continue
        found = model_problems(model, merge(common, own or {}), "")
        for key, value, rule in found:
            problem = (f"{here}.{_place(row, own, key)}.{key}".rstrip("."), value, rule)
            if problem not in problems:
                problems.append(problem)
    return problems


def _place(row: str, own: Mapping[str, Any] | None, key: str) -> str:
    """Return the part of `train` that sets `key` for a row: its own, or the common one."""
    return f"rows.{row}" if key.split(".")[0] in (own or {}) else "common"


def _check_problems(models: ModuleType, paper: str, block: Mapping[str, Any]) -> list[Problem]:
    """Return what the paper's own `check` says of a block whose phases are valid."""

    def model(phase: str, row: str | None = None) -> Any:
        value = resolve({"papers": {paper: block}}, paper, phase, row)
        return getattr(models, phase.capitalize()).model_validate(value)

    rows = block["train"]["rows"]
    checked = Block(
        seeds=block["seeds"],
        rows=block["rows"],
        prepare=model("prepare"),
        train={row: model("train", row) for row in rows},
        merge=model("merge"),
        evaluate=model("evaluate"),
    )
    problems: list[Problem] = []
    for key, value, rule in models.check(checked):
        parts = key.split(".", 3)
        if parts[:2] == ["train", "rows"] and len(parts) == 4 and parts[2] in rows:
            _, _, row, field = parts
            key = f"train.{_place(row, rows[row], field)}.{field}"
        problem = (f"papers.{paper}.{key}", value, rule)
        if problem not in problems:  # one common value is wrong for many rows at once
            problems.append(problem)
    return problems


def _origin(scale: str, key: str) -> Path:
    """Return the file that set `key` last: the overlay or params.yaml."""
    path = SCALES / f"{scale}.yaml"
    node: Any = read_yaml(path) if path.is_file() else {}
    for part in key.split("."):
        if not isinstance(node, Mapping):
            return path  # inside a list that the overlay replaced
        if part not in node:
            return PARAMS
        node = node[part]
    return path
