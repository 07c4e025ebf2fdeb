"""Files of tensors (safetensors): written whole or not at all, refused in one line when odd.

Tensors are torch's or numpy's; torch is imported only where they are torch's. A file may carry one
note, JSON under a name of its own: one, since safetensors writes several in no fixed order.
"""

import json
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steps.shared.atomic import atomic_path
from steps.shared.errors import one_line
from steps.shared.runtime import InputError

# what reading a damaged file, or a file of something else, raises
ERRORS = (OSError, KeyError, TypeError, ValueError)


def write(
    path: str | Path, tensors: Mapping[str, Any], note: Mapping[str, str] | None = None
) -> None:
    """Write tensors by name, and `note`: {its name: its JSON}; the order of names is no matter."""
    kind = "numpy" if all(isinstance(value, np.ndarray) for value in tensors.values()) else "torch"
    save_file = import_module(f"safetensors.{kind}").save_file
    with atomic_path(path) as temporary:
        save_file({name: _dense(value) for name, value in tensors.items()}, temporary, note)


def _dense(value: Any) -> Any:
    """Return a tensor in C order: numpy's are written as they lie in memory."""
    return np.asarray(value, order="C") if isinstance(value, np.ndarray) else value.contiguous()


def read(
    path: str | Path,
    what: str,
    *,
    names: Collection[str] = (),
    framework: Literal["torch", "numpy"],
) -> dict[str, Any]:
    """Return the tensors of a file by name, `names` among them.

    A file that is missing, damaged or lacks one is an `InputError`: 'PATH: not WHAT (...)'.
    """
    from safetensors import SafetensorError

    try:
        tensors = import_module(f"safetensors.{framework}").load_file(path)
    except (*ERRORS, SafetensorError) as error:
        raise _refusal(path, what, error) from None
    if missing := sorted(set(names) - set(tensors)):
        raise _refusal(path, what, f"has no tensor {missing[0]}")
    return tensors


def read_note(
    path: str | Path, what: str, name: str, parse: Callable[[Any], Any] = lambda value: value
) -> Any:
    """Return `parse` of the note of a file; one that it refuses is an `InputError` as in `read`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            notes = file.metadata() or {}
        if name not in notes:
            raise ValueError(f"has no note {name}")
        return parse(json.loads(notes[name]))
    except (*ERRORS, SafetensorError) as error:
        raise _refusal(path, what, error) from None


def _refusal(path: str | Path, what: str, reason: Any) -> InputError:
    advice = "remove it and make it again" if Path(path).exists() else "make it first"
    return InputError(f"{path}: not {what} ({one_line(reason)}); {advice}")
