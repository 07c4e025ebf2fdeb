"""Judge a sweep by its histories: final loss and largest logit by rate, and the widest stable rate.

A history says all: the models are measured on validation images while they train, and no test
image is needed. Shapes: L history lines, M models (one a rate).
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from steps.quest.sweep_config import Sweep, SweepMeasures, column
from steps.shared import selection, tensor_files
from steps.shared.histories import read_history
from steps.shared.runs import Run, run_of, write_runs
from steps.shared.runtime import read_json


def run(args: argparse.Namespace, config: SweepMeasures) -> None:
    """Write the runs of one seed."""
    guess = math.log(read_json(args.data, "classes")["classes"])
    runs = []
    for row, chosen in selection.read(args.selection).items():
        model = chosen.folder / "model.safetensors"
        sweep = tensor_files.read_note(
            model, "a sweep as train writes it", "sweep", Sweep.model_validate
        )
        values = read_metrics(chosen.folder / "history.csv", sweep.learning_rates)
        for found in measure_row(sweep.learning_rates, values, config, guess):
            runs.append({"dataset": "images", **found, "row": row})
    write_runs(args.out / f"sweep_seed{args.seed}.csv", runs, seed=args.seed)


def read_metrics(path: Path, rates: list[float]) -> dict[str, np.ndarray]:
    """Return each metric of a history, L x M."""
    names = ("train_loss", "validation_loss", "max_logit")
    lines = read_history(path, *(column(rate, name) for name in names for rate in rates))
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
    logit_M = values["max_logit"].max(0)  # what is not finite stays so
    widest = widest_stable(rates, train_M, config.stable_factor, config.learned_share * guess)
    yield run_of("sweep", "all", "widest_stable_rate", widest)
    best = int(train_M.argmin())
    yield run_of("sweep", "validation", "loss", validation_M[best])
    yield run_of("sweep", "all", "max_logit", np.exp(np.log(logit_M).mean()))
    for rate, train, validation, logit in zip(rates, train_M, validation_M, logit_M, strict=True):
        yield run_of("sweep_rate", "train", "loss", train, rate)
        yield run_of("sweep_rate", "validation", "loss", validation, rate)
        yield run_of("sweep_rate", "all", "max_logit", logit, rate)


def final_loss(loss_LM: np.ndarray, lines: int, guess: float) -> np.ndarray:
    """Return the mean of the last lines (M), at most `guess`, which is also what not finite is."""
    return np.minimum(np.nan_to_num(loss_LM[-lines:], nan=guess, posinf=guess), guess).mean(0)


def widest_stable(rates: list[float], train_M: np.ndarray, factor: float, learned: float) -> float:
    """Return the highest rate up to which every rate, from the best on, is stable.

    Stable is a final training loss of at most `factor` times the lowest of the row, and of at most
    `learned`: a row that never learns gets the lowest rate.
    """
    best = int(train_M.argmin())
    if train_M[best] > learned:
        return rates[0]
    stable = train_M <= min(factor * train_M[best], learned)
    last = best
    while last + 1 < len(rates) and stable[last + 1]:
        last += 1
    return rates[last]
