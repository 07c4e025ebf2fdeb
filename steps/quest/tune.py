"""Measure peak learning rates of a task's rows on validation data of tuning seeds.

    python -m steps.quest.tune --task images --data results/mini/quest/prepare/images.json \
        --rates 1.5e-3 3e-3 6e-3 1.2e-2 --out rates.csv

Run by hand; params.yaml has what was chosen, one rate for all rows: that of the lowest loss in the
mean over rows. Tuning seeds are never reported, and no test data are read.
"""

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from steps.quest import train
from steps.quest.plan import Files
from steps.shared.config_files import load
from steps.shared.runtime import read_csv, run_step, write_csv

SEEDS = (100, 101, 102)


def main(argv: list[str] | None = None) -> None:
    """Write a line for each row and rate: the last validation loss (nats), the mean over seeds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", choices=["images", "language"], required=True)
    parser.add_argument("--data", type=Path, required=True, help="the task's manifest of prepare")
    parser.add_argument("--rates", type=float, nargs="+", required=True)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--out", type=Path, required=True, help="CSV")
    args = parser.parse_args(argv)
    os.environ["WANDB_MODE"] = "disabled"
    files = Files(load(args.scale))
    rows = files.rows(args.task)
    config = files.train[rows[0]][args.task]
    lines = []
    for rate in args.rates:
        tried = {**config, "learning_rate": rate}
        by_seed = [losses(args.task, args.data, rows, tried, seed) for seed in SEEDS]
        lines += [
            {"row": row, "rate": rate, "validation_loss": fmean(found[row] for found in by_seed)}
            for row in rows
        ]
    write_csv(args.out, list(lines[0]), lines)


def losses(
    task: str, data: Path, rows: list[str], config: Mapping[str, Any], seed: int
) -> dict[str, float]:
    """Train all rows of one seed; return the last validation loss (nats) of each."""
    with TemporaryDirectory() as folder:
        flags = ["--task", task, "--config", json.dumps({task: config}), "--data", str(data)]
        places = ["--out", f"{folder}/out", "--state", f"{folder}/state"]
        train.main([*flags, *places, "--rows", *rows, "--seed", str(seed)])
        histories = {row: Path(folder) / "out" / row / f"seed{seed}/history.csv" for row in rows}
        return {
            row: float(read_csv(path)[-1]["validation_loss"]) for row, path in histories.items()
        }


if __name__ == "__main__":
    run_step(main)
