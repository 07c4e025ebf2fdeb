"""Measure trained toy grids: success, accuracy on both kinds, largest logit, key norms.

Shapes: M models of a grid, B samples, N tokens.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kernels.quest import quest_attention
from steps.quest import rows, toy, toy_train
from steps.quest.stacked import Stack
from steps.quest.toy_config import SPLITS, TABLES, Problem, Toy, ToyMeasures, grid
from steps.shared import selection, tensor_files
from steps.shared.runs import Run, run_of, write_runs
from steps.shared.runtime import deterministic, progress, write_csv

MAP = ["dataset", "split", "row", "sample", "token", "is_answer", "attention"]


def run(args: argparse.Namespace, config: ToyMeasures) -> None:
    """Write the runs of one seed and the attention in a few samples."""
    deterministic(args.threads)
    runs, maps = [], []
    models = selection.read(args.selection)
    label = f"quest evaluate toy seed {args.seed}"
    for row, chosen in progress(models.items(), total=len(models), label=label):
        for found, lines in measure_row(row, chosen.files, args.data, config):
            runs += found
            maps += lines
    write_runs(args.out / f"toy_seed{args.seed}.csv", runs, seed=args.seed)
    write_csv(args.out / f"toy_seed{args.seed}_maps.csv", MAP, maps)


class Measured(NamedTuple):
    """What one grid gives, by split: accuracy (M), largest |logit| (M), attention (M, B, N)."""

    accuracy: dict[str, np.ndarray]
    max_logit: dict[str, np.ndarray]
    attention: dict[str, Tensor]


def load_stack(path: Path, form: str, row: str, problem: Problem) -> tuple[Stack, Toy]:
    """Return a trained stack and the configuration that made it."""
    what = "a toy grid as train writes it"
    config = tensor_files.read_note(path, what, "toy", Toy.model_validate)
    stack = toy_train.new_stack(form, row, problem, config, seed=0)
    stack.load_weights(tensor_files.read(path, what, names=stack.shapes, framework="torch"))
    return stack, config


@torch.no_grad()
def measure(stack: Stack, tests: dict[str, toy.Samples]) -> Measured:
    """Run a grid on the test samples; an output that is not finite is a wrong answer."""
    accuracy, max_logit, attention = {}, {}, {}
    for split, samples in tests.items():
        output = stack.forward(samples.keys_BND, samples.answers_BN)
        scores_MBC = output.log_probabilities_BC
        right_MB = (scores_MBC.argmax(2) == samples.target_B) & scores_MBC.isfinite().all(2)
        accuracy[split] = 100 * right_MB.double().mean(1).numpy()
        max_logit[split] = output.max_logit.double().numpy()
        attention[split] = output.attention_BN
    return Measured(accuracy, max_logit, attention)


def measure_row(
    row: str, paths: Sequence[Path], data: Path, config: ToyMeasures
) -> Iterator[tuple[list[Run], list[Run]]]:
    """Yield, for each form that the row was trained in, its runs and its lines of attention."""
    problem, _, tests = toy.load(data)
    for path in paths:
        form = path.stem
        stack, trained = load_stack(path, form, row, problem)
        found = measure(stack, tests)
        table, start = TABLES[form], {"dataset": form, "row": row}
        runs = [*_main_runs(table, found, config), *_rate_runs(found, trained)]
        runs += _key_norm_runs(table, path.with_name("history.csv"), trained, form)
        if (form, row) == ("minimal", "quest"):
            runs.append(run_of(table, "all", "identity_error", identity_error(stack, tests)))
        maps = _maps(found, tests, trained, config.num_maps)
        yield [start | run for run in runs], [start | line for line in maps]


def _geometric_mean(values: np.ndarray) -> float:
    return math.exp(np.log(values).mean())


def _main_runs(table: str, found: Measured, config: ToyMeasures) -> Iterator[Run]:
    """Yield what the whole grid gives: nothing in it is chosen."""
    robust_M = found.accuracy["robust"]
    success_M = robust_M >= 100 * config.success_accuracy
    yield run_of(table, "robust", "success_rate", 100 * success_M.mean())
    for split in SPLITS:
        yield run_of(table, split, "accuracy", found.accuracy[split].mean())
    largest_M = np.maximum(*(found.max_logit[split] for split in SPLITS))
    yield run_of(table, "all", "max_logit", _geometric_mean(largest_M))


def _rate_runs(found: Measured, config: Toy) -> Iterator[Run]:
    """Yield accuracy and largest logit by learning rate, over the weight decays."""
    rate_M = np.array([rate for rate, _ in grid(config)])
    for rate in config.learning_rates:
        own = rate_M == rate
        for split in SPLITS:
            yield run_of("toy_rate", split, "accuracy", found.accuracy[split][own].mean(), rate)
        largest_M = np.maximum(*(found.max_logit[split][own] for split in SPLITS))
        yield run_of("toy_rate", "all", "max_logit", _geometric_mean(largest_M), rate)


def _key_norm_runs(table: str, history: Path, config: Toy, form: str) -> Iterator[Run]:
    """Yield the key-norm ratio of biased answer tokens before and after training."""
    ratio_LM = toy_train.read_history(history, config, form, "key_norm_ratio")
    yield run_of(table, "biased", "key_norm_ratio_start", _geometric_mean(ratio_LM[0]))
    yield run_of(table, "biased", "key_norm_ratio", _geometric_mean(ratio_LM[-1]))


@torch.no_grad()
def identity_error(stack: Stack, tests: dict[str, toy.Samples]) -> float:
    """Return how far the QUEST row is from `kernels.quest` on trained keys of the minimal form.

    The largest difference of an output over the grid and the test samples; tokens are the values.
    """
    worst = 0.0
    for samples in tests.values():
        x_BHND = samples.keys_BND[:, None].double()  # rounding aside
        for weight in stack.parameters()["key"].double():
            k_BHND = x_BHND @ weight.mT
            own = rows.logits("quest", x_BHND, k_BHND, {}).softmax(-1) @ x_BHND
            kernel = quest_attention(x_BHND, k_BHND, x_BHND, backend="torch")
            worst = max(worst, float((own - kernel).abs().max()))
    return worst


def _maps(found: Measured, tests: dict[str, toy.Samples], config: Toy, count: int) -> Iterator[Run]:
    """Yield the attention of the first samples at the middle rate and the first decay."""
    chosen = (len(config.learning_rates) // 2) * len(config.weight_decays)
    for split, samples in tests.items():
        for sample, weights_N in enumerate(found.attention[split][chosen, :count].tolist()):
            place = int(samples.position_B[sample])
            for token, weight in enumerate(weights_N):
                line = {"split": split, "sample": sample, "token": token, "attention": weight}
                yield line | {"is_answer": int(token == place)}
