"""What is wrong with a value, as (key, value, rule): the pieces of a line about a configuration."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

Problem = tuple[str, Any, str]


def list_problems(key: str, value: Any, kind: type) -> list[Problem]:
    """Return what keeps `value` from being a non-empty list of `kind` without repetitions."""
    good = isinstance(value, list) and value and all(type(item) is kind for item in value)
    if not good:
        return [(key, value, f"must be a non-empty list of {kind.__name__}")]
    if len(set(value)) < len(value):
        return [(key, value, "must not name anything twice")]
    if kind is int and min(value) < 0:
        return [(key, value, "must be 0 or above")]
    return []


def model_problems(model: type[BaseModel], value: Any, here: str) -> list[Problem]:
    """Return what keeps `value`, found at the key `here`, from being a `model`."""
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


def _rule(item: Mapping[str, Any], model: type[BaseModel]) -> str:
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
