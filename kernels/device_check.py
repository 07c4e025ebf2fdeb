"""Checks and times the Triton kernels on the GPU of this machine, in under 10 minutes.

    python -m kernels.device_check [--out DIR] [op ...]

Every operator with a device.py takes part: its `checks()` yields one dict a comparison with the
reference, with the keys `error` and `limit`, and its `timings()` one dict a race. Without a GPU it
says so and exits 0; an error beyond its limit is printed and makes it exit 1.
"""

import argparse
import csv
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

Row = dict[str, str | int | float]
KERNELS = Path(__file__).resolve().parent


def run(rows: Iterable[Row], out: Path | None) -> list[Row]:
    """Print each row as it comes, write them all to `out`, return those beyond their limit."""
    done = []
    for row in rows:
        done.append(row)
        print(*(f"{key}={value}" for key, value in row.items()), flush=True)
    if out is not None and done:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(done[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(done)
    # NaN is within no limit
    return [row for row in done if "limit" in row and not row["error"] <= row["limit"]]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the checks, then the timings, of the operators named, or of all."""
    known = sorted(file.parent.name for file in KERNELS.glob("*/device.py"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", nargs="*", metavar="op", help=f"of {', '.join(known)}; default all")
    parser.add_argument("--out", type=Path, help="an existing folder for <op>_checks.csv, ...")
    options = parser.parse_args(argv)
    if unknown := set(options.ops) - set(known):
        parser.error(f"no such operator: {', '.join(sorted(unknown))} (there are {known})")
    if not torch.cuda.is_available():
        print("no GPU here: the kernels were not run")
        return
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    failed = []
    for op in options.ops or known:
        device = importlib.import_module(f"kernels.{op}.device")
        for name, rows in (("checks", device.checks()), ("timings", device.timings())):
            failed += run(rows, options.out and options.out / f"{op}_{name}.csv")
    for row in failed:
        print("BEYOND ITS LIMIT:", *(f"{key}={value}" for key, value in row.items()))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
