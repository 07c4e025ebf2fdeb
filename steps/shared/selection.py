"""selection.json of a seed: which model each row is evaluated by, as merge leaves it.

{row: {"folder": relative to the file, "sha256": {file name: hash}, ... what else is noted}}
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steps.shared.runtime import InputError, read_json, reading, sha256_file, write_json

NAME = "selection.json"


class Selected(NamedTuple):
    """A row's model: its folder, its files, sorted by name, and what else merge noted of it."""

    folder: Path
    files: list[Path]
    notes: dict[str, Any]


def write(
    folder: Path,
    models: Mapping[str, Sequence[Path]],
    notes: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write selection.json into `folder`; `models`: the files of each row, all in one folder.

    A file that is not there is an `InputError`.
    """
    entries: dict[str, dict[str, Any]] = {}
    for row, files in models.items():
        if missing := [file for file in files if not file.is_file()]:
            raise InputError(f"{missing[0]}: no such file, the model of row {row}; train it first")
        entries[row] = {
            **(notes or {}).get(row, {}),
            "folder": os.path.relpath(files[0].parent, folder),
            "sha256": {file.name: sha256_file(file) for file in files},
        }
    write_json(folder / NAME, entries)


def read(path: Path) -> dict[str, Selected]:
    """Return what is selected, by row; a missing file or one of another form is an `InputError`."""
    found, content = {}, read_json(path)
    with reading(path, f"a {NAME} as merge writes it"):
        for row, entry in content.items():
            notes = dict(entry)
            folder = Path(os.path.normpath(path.parent / notes.pop("folder")))
            files = [folder / name for name in sorted(notes.pop("sha256").keys())]
            found[row] = Selected(folder, files, notes)
        if not found:
            raise ValueError("names no row")
    return found
