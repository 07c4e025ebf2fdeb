"""Select what is evaluated: nothing is averaged, every model is taken as it was trained."""

import argparse
import os
from pathlib import Path

from steps.shared.runtime import InputError, run_step, sha256_file, write_json


def main(argv: list[str] | None = None) -> None:
    """Write selection.json of one seed: row -> folder (relative to it) and hashes of its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="folder of the task's rows")
    parser.add_argument("--rows", nargs="+", required=True, help="the trained rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder for selection.json")
    args = parser.parse_args(argv)
    selection = {}
    for row in args.rows:
        folder = args.runs / row / f"seed{args.seed}"
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise InputError(f"{folder}: holds no trained model (*.safetensors)")
        selection[row] = {
            "folder": os.path.relpath(folder, args.out),
            "sha256": {path.name: sha256_file(path) for path in files},
        }
    write_json(args.out / "selection.json", selection)


if __name__ == "__main__":
    run_step(main)
