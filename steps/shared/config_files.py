"""The files of the configuration: params.yaml, and the overlays that other scales put on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from steps.shared.runtime import InputError

PARAMS = Path("params.yaml")
SCALES = Path("workflow/scales")


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


class _Unrepeated(yaml.SafeLoader):
    """YAML whose mappings name every key once: else the last one would win, unsaid."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping of a node; a key that it names twice is an error with its place."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := [key for key in keys if keys.count(key) > 1]:
            place = node.start_mark
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} twice", place)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; anything else is an `InputError` that names the file."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Unrepeated)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: must be UTF-8, has another byte at {error.start}") from None
    except (yaml.YAMLError, ValueError) as error:
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
