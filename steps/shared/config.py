"""The configuration: one YAML file, overlays for other scales, one pydantic model a phase.

A paper's block is `papers.<paper>: {seeds, rows, prepare, train: {common, rows}, merge, evaluate}`.
Its models are `Prepare`, `Train`, `Merge` and `Evaluate` in `steps/<paper>/config.py`.
"""

import argparse
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from steps.shared.runtime import InputError

PARAMS = Path("params.yaml")
SCALES = Path("workflow/scales")
PHASES = ("prepare", "train", "merge", "evaluate")
BLOCK = ("seeds", "rows", *PHASES)


class StepConfig(BaseModel):
    """Base of every phase's configuration: no unknown keys, no coercion, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Block(NamedTuple):
    """A paper's whole block, each part valid by itself: what `check` of its config.py is given.

    `check(block)`, where a paper has one, yields (key within the block, value, rule) for whatever
    does not fit together. `train` holds each row's resolved configuration.
    """

    seeds: list[int]
    rows: list[str]
    prepare: Any
    train: dict[str, Any]
    merge: Any
    evaluate: Any


Model = TypeVar("Model", bound=StepConfig)


def load(scale: str) -> dict[str, Any]:
    """Return params.yaml with the overlay of `scale` merged in, as Snakemake merges them."""
    config = read_yaml(PARAMS)
    if scale != config.get("scale"):
        config = merge(config, read_yaml(overlay(scale)))
    return config


def overlay(scale: str) -> Path:
    """Return the overlay file of a scale; an unknown scale is an `InputError`."""
    path = SCALES / f"{scale}.yaml"
    if not path.is_file():
        known = sorted(file.stem for file in SCALES.glob("*.yaml"))
        raise InputError(f"scale {scale!r}: no {path}; known scales: mini, {', '.join(known)}")
    return path


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; anything else is an `InputError` that names the file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: must be a mapping, found {type(content).__name__}")
    return content


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings recursively; any other value of `top` (lists too) replaces that of `base`.

    As in Snakemake, an empty mapping in `top` changes nothing that is there.
    """
    merged = dict(base)
    for key, value in top.items():
        if isinstance(value, Mapping):
            below = merged.get(key, {})
            if value or isinstance(below, Mapping):
                value = merge(below if isinstance(below, Mapping) else {}, value)
            else:
                value = below
        merged[key] = value
    return merged


def resolve(
    config: Mapping[str, Any], paper: str, phase: str, row: str | None = None
) -> dict[str, Any]:
    """Return exactly the mapping that one phase (and row, for train) of a paper reads."""
    block = config["papers"][paper][phase]
    if phase == "train":
        return merge(block["common"], block["rows"][row] or {})
    return dict(block)


def validate(config: Mapping[str, Any]) -> None:
    """Check every paper's block; an error is one line: file, key, value, rule."""
    problems = []
    scale, papers = config.get("scale"), config.get("papers")
    if not isinstance(scale, str) or not scale:
        raise InputError(f"{PARAMS}: scale = {scale!r}: must be the name of a scale")
    if not isinstance(papers, Mapping) or not papers:
        raise InputError(f"{PARAMS}: papers = {papers!r}: must be a mapping of at least one paper")
    for paper, block in papers.items():
        problems += _block_problems(str(paper), block)
    if problems:
        lines = [f"{_origin(scale, key)}: {key} = {item!r}: {rule}" for key, item, rule in problems]
        raise InputError("\n".join(lines))


Problem = tuple[str, Any, str]


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
    problems += _list_problems(f"{here}.seeds", block["seeds"], int)
    problems += _list_problems(f"{here}.rows", block["rows"], str)
    for phase in ("prepare", "merge", "evaluate"):
        model = getattr(models, phase.capitalize())
        problems += _model_problems(model, block[phase], f"{here}.{phase}")
    problems += _train_problems(models.Train, block, f"{here}.train")
    if not problems and hasattr(models, "check"):
        found = models.check(_valid_block(models, block))
        problems = [(f"{here}.{key}", value, rule) for key, value, rule in found]
    return problems


def _valid_block(models: Any, block: Mapping[str, Any]) -> Block:
    train = block["train"]
    return Block(
        seeds=block["seeds"],
        rows=block["rows"],
        prepare=models.Prepare.model_validate(block["prepare"]),
        train={
            row: models.Train.model_validate(merge(train["common"], train["rows"][row] or {}))
            for row in block["rows"]
        },
        merge=models.Merge.model_validate(block["merge"]),
        evaluate=models.Evaluate.model_validate(block["evaluate"]),
    )


def _list_problems(key: str, value: Any, kind: type) -> list[Problem]:
    good = isinstance(value, list) and value and all(type(item) is kind for item in value)
    if not good:
        return [(key, value, f"must be a non-empty list of {kind.__name__}")]
    if len(set(value)) < len(value):
        return [(key, value, "must not name anything twice")]
    if kind is int and min(value) < 0:
        return [(key, value, "must be 0 or above")]
    return []


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
        found = _model_problems(model, merge(common, own or {}), "")
        for key, value, rule in found:
            place = f"rows.{row}" if key.split(".")[0] in (own or {}) else "common"
            problem = (f"{here}.{place}.{key}".rstrip("."), value, rule)
            if problem not in problems:
                problems.append(problem)
    return problems


def _model_problems(model: type[StepConfig], value: Any, here: str) -> list[Problem]:
    if not isinstance(value, Mapping):
        return [(here, value, "must be a mapping")]
    try:
        model.model_validate(value)
    except ValidationError as error:
        return [
            (
                ".".join([here, *map(str, item["loc"])]).strip("."),
                _shown(item),
                _rule(item, model),
            )
            for item in error.errors()
        ]
    return []


def _shown(item: Mapping[str, Any]) -> Any:
    if item["type"] == "missing":
        return None
    # the input of a rule between several keys is the whole mapping: the rule names the values
    return "..." if item["type"] == "value_error" else item["input"]


def _rule(item: Mapping[str, Any], model: type[StepConfig]) -> str:
    if item["type"] == "missing":
        return "is missing"
    if item["type"] == "extra_forbidden":
        return f"unknown key; allowed: {', '.join(_fields(model, item['loc'][:-1]))}"
    text = str(item["msg"]).removeprefix("Value error, ")
    return text.replace("Input should be", "must be")


def _fields(model: Any, place: tuple[int | str, ...]) -> list[str]:
    """Return the fields of the model at `place` inside `model`."""
    for part in place:
        fields = getattr(model, "model_fields", {})
        model = fields[part].annotation if part in fields else get_args(model)[-1]
    return list(model.model_fields)


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


def step_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the flags of every step: --config, --scale, --row, --seed."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--config", required=True, help="JSON text, or params.yaml:papers.<paper>.<phase>"
    )
    parser.add_argument("--scale", default="mini", help="mini (default), smoke or paper")
    parser.add_argument("--row", help="the row (method variant) to train")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def read_config(args: argparse.Namespace, model: type[Model]) -> Model:
    """Return the validated configuration that the step's flags name."""
    text: str = args.config
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise InputError(f"--config: not valid JSON ({error})") from None
    else:
        value = _by_key(text, args.scale, args.row)
    problems = _model_problems(model, value, "")
    if problems:
        lines = [f"--config: {key} = {item!r}: {rule}" for key, item, rule in problems]
        raise InputError("; ".join(lines))
    return model.model_validate(value)


def _by_key(text: str, scale: str, row: str | None) -> Any:
    file, _, dotted = text.partition(":")
    parts = dotted.split(".")
    if Path(file) != PARAMS or len(parts) != 3 or parts[0] != "papers" or parts[2] not in PHASES:
        raise InputError(f"--config {text}: expected JSON or params.yaml:papers.<paper>.<phase>")
    config = load(scale)
    validate(config)
    papers, (_, paper, phase) = config["papers"], parts
    if paper not in papers:
        raise InputError(f"--config {text}: no paper {paper!r}; known: {', '.join(papers)}")
    rows = papers[paper]["train"]["rows"]
    if phase == "train" and row not in rows:
        raise InputError(f"--row {row}: not a row of {paper}; known: {', '.join(rows)}")
    return resolve(config, paper, phase, row)
