"""The flags of every step, and the configuration that they name."""

import argparse
import json
from pathlib import Path
from typing import Any, TypeVar

from steps.shared.config import PHASES, StepConfig, part, resolve, validate
from steps.shared.config_files import PARAMS, load
from steps.shared.config_problems import model_problems
from steps.shared.runtime import InputError

Model = TypeVar("Model", bound=StepConfig)


def step_parser(description: str | None, *more: str) -> argparse.ArgumentParser:
    """Return a parser with --config, --scale, --row, --seed, and those of MORE that are named."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--config", required=True, help="JSON text, or params.yaml:papers.<paper>.<phase>"
    )
    parser.add_argument("--scale", default="mini", help="mini (default), smoke, paper, ...")
    parser.add_argument("--row", help="the row (method variant)")
    parser.add_argument("--seed", type=whole_number, default=0, help="a whole number from 0 on")
    for name in more:
        parser.add_argument(f"--{name}", **MORE[name])
    return parser


MORE: dict[str, dict[str, Any]] = {
    "state": {"type": Path, "default": Path("state"), "help": "folder of interrupted jobs"},
    "threads": {"type": int, "default": 1, "help": "threads on the CPU"},
    "device": {"choices": ["cpu", "auto"], "default": "cpu", "help": "auto: a GPU if there is one"},
}


def whole_number(text: str) -> int:
    """Return the number that a flag gives; the parser says what is wrong with another text."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 0 on")
    return int(text)


def read_config(args: argparse.Namespace, model: type[Model]) -> Model:
    """Return the validated configuration that the step's flags name."""
    text: str = args.config
    if is_json(text):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise InputError(f"--config: not valid JSON ({error})") from None
    else:
        value = _by_key(text, args.scale, getattr(args, "row", None))
    problems = model_problems(model, value, "")
    if problems:
        lines = [f"--config: {key} = {item!r}: {rule}" for key, item, rule in problems]
        raise InputError("; ".join(lines))
    return model.model_validate(value)


def read_part(args: argparse.Namespace, phase: type[StepConfig], name: str) -> Any:
    """Return one field of a phase: rules pass it alone as JSON, params.yaml holds the whole."""
    read = read_config(args, part(phase, name) if is_json(args.config) else phase)
    return getattr(read, name)


def is_json(text: str) -> bool:
    """Say whether --config is JSON text, not a key of params.yaml."""
    return text.lstrip().startswith("{")


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
