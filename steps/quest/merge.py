"""Select what is evaluated: nothing is averaged, every model is taken as it was trained."""

import argparse
import os
from pathlib import Path

from steps.shared.runtime import InputError, run_step, sha256_file, write_json


def main(argv: list[str] | None = None) -> None:
    """Write selection.json of one seed: row -> folder (relative to it) and hashes of its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=Path, nargs="+", required=True, help="<row>/seed<seed>/<name>, of one seed"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for selection.json")
    args = parser.parse_args(argv)
    selection: dict[str, dict] = {}
    for path in args.models:
        if not path.is_file():
            raise InputError(f"--models {path}: no such file")
        folder = os.path.relpath(path.parent, args.out)
        entry = selection.setdefault(path.parent.parent.name, {"folder": folder, "sha256": {}})
        entry["sha256"][path.name] = sha256_file(path)
    write_json(args.out / "selection.json", selection)


if __name__ == "__main__":
    run_step(main)
