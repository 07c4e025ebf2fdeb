"""Judge a sweep by its histories: final loss and largest logit by rate, and the widest stable rate.

A history says all: the models are measured on validation images while they train, and no test
image is needed. Shapes: L history lines, M models (one a rate).
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from steps.quest.jobs import RUN
from steps.quest.sweep_config import Sweep, SweepMeasures, column
from steps.shared.runtime import InputError, read_csv, read_json, write_csv

Run = dict[str, Any]


def run(args: argparse.Namespace, config: SweepMeasures) -> None:
    """Write the runs of one seed."""
    guess = math.log(read_json(args.data)["classes"])
    runs = []
    for row, entry in read_json(args.selection).items():
        folder = args.selection.parent / entry["folder"]
        sweep = _sweep(folder / "model.safetensors")
        values = read_history(folder / "history.csv", sweep.learning_rates)
        for found in measure_row(sweep.learning_rates, values, config, guess):
            runs.append({"dataset": "images", "x": "", **found, "row": row, "seed": args.seed})
    write_csv(args.out / f"sweep_seed{args.seed}.csv", RUN, runs)


def _sweep(path: Path) -> Sweep:
    try:
        with safe_open(path, framework="np") as file:
            return Sweep.model_validate(json.loads(file.metadata()["sweep"]))
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise InputError(f"{path}: not a sweep as train writes it ({error})") from None


def read_history(path: Path, rates: list[float]) -> dict[str, np.ndarray]:
    """Return each metric of a history, L x M."""
    lines = read_csv(path)
    names = ("train_loss", "validation_loss", "max_logit")
    return {
        name: np.array([[float(line[column(rate, name)]) for rate in rates] for line in lines])
        for name in names
    }


def measure_row(
    rates: list[float], values: dict[str, np.ndarray], config: SweepMeasures, guess: float
) -> Iterator[Run]:
    """Yield the runs of one row; `guess` is the loss of guessing, the most that a loss counts."""
    train_M, validation_M = (
        final_loss(values[name], config.final_lines, guess)
        for name in ("train_loss", "validation_loss")
    )
    logit_M = largest(values["max_logit"])
    widest = widest_stable(rates, train_M, config.stable_factor)
    yield _run("sweep", "all", "widest_stable_rate", widest)
    best = int(train_M.argmin())
    yield _run("sweep", "validation", "loss", validation_M[best])
    yield _run("sweep", "all", "max_logit", np.exp(np.log(logit_M).mean()))
    for rate, train, validation, logit in zip(rates, train_M, validation_M, logit_M, strict=True):
        yield _run("sweep_rate", "train", "loss", train, rate)
        yield _run("sweep_rate", "validation", "loss", validation, rate)
        yield _run("sweep_rate", "all", "max_logit", logit, rate)


def _run(table: str, split: str, metric: str, value: float, x: float | str = "") -> Run:
    return {"table": table, "split": split, "metric": metric, "value": float(value), "x": x}


def final_loss(loss_LM: np.ndarray, lines: int, guess: float) -> np.ndarray:
    """Return the mean of the last lines (M), at most `guess`, which is also what not finite is."""
    return np.minimum(np.nan_to_num(loss_LM[-lines:], nan=guess, posinf=guess), guess).mean(0)


def largest(logit_LM: np.ndarray) -> np.ndarray:
    """Return the largest finite |logit| of a training run (M)."""
    return np.where(np.isfinite(logit_LM), logit_LM, 0).max(0)


def widest_stable(rates: list[float], train_M: np.ndarray, factor: float) -> float:
    """Return the highest rate up to which every rate, from the best on, is stable.

    Stable is a final training loss of at most `factor` times the lowest of the row.
    """
    best = int(train_M.argmin())
    stable = train_M <= factor * train_M[best]
    last = best
    while last + 1 < len(rates) and stable[last + 1]:
        last += 1
    return rates[last]
