"""Select what is evaluated: nothing is averaged, every model is taken as it was trained."""

import argparse
from pathlib import Path

from steps.shared import selection
from steps.shared.runtime import run_step


def main(argv: list[str] | None = None) -> None:
    """Write selection.json of one seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=Path, nargs="+", required=True, help="<row>/seed<seed>/<name>, of one seed"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for selection.json")
    args = parser.parse_args(argv)
    models: dict[str, list[Path]] = {}
    for path in args.models:
        models.setdefault(path.parent.parent.name, []).append(path)
    selection.write(args.out, models)


if __name__ == "__main__":
    run_step(main)
