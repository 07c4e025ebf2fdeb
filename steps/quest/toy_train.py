"""Train the toy: for one row and seed, every form, each a stack over the whole grid.

All rows of a seed start from the same weights (apart from scales that only one row has) and read
the same batches. Shapes: M models, B samples, N tokens, C answers.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor

from steps.quest import toy, toy_models
from steps.quest.jobs import mirror, training_job
from steps.quest.stacked import Stack
from steps.quest.toy_config import Problem, Toy, column, forms_of, grid
from steps.shared import histories, tensor_files
from steps.shared.runtime import stream, torch_generator, write_csv


def run(args: argparse.Namespace, config: Toy) -> None:
    """Train the rows of a job and write what the workflow declares."""
    data = load_data(args.data, config, args.seed)
    with training_job(args, config) as state:
        for row in args.rows:
            stacks = train_row(row, data, config, seed=args.seed, state=state)
            write_row(stacks, config, args.out / row / f"seed{args.seed}")
            last = {
                f"{form}/{metric}": value_M
                for form, stack in stacks.items()
                for metric, value_M in stack.history[-1].values.items()
            }
            mirror(args, config, row, last)


class Data(NamedTuple):
    """What every row of a seed reads: training samples, and samples that history is measured on."""

    problem: Problem
    train: toy.Samples
    probe: toy.Samples


def load_data(path: Path, config: Toy, seed: int) -> Data:
    """Draw the samples of a seed, from the problem that `prepare` wrote."""
    problem, bias, _ = toy.load(path)
    updates, batch = max(config.steps.values()), config.batch_size
    train = toy.training_samples(problem, bias, seed=seed, updates=updates, batch=batch)
    rng = stream("quest", "toy-probe", seed)
    probe = toy.draw(problem, bias, rng, config.num_probe, biased_share=problem.biased_share)
    return Data(problem, train, probe)


def new_stack(form: str, row: str, problem: Problem, config: Toy, seed: int) -> Stack:
    """Return the untrained stack of one form."""
    generator = torch_generator("quest", f"toy-init-{form}", seed)
    rates, decays = map(list, zip(*grid(config), strict=True))
    return Stack(
        toy_models.build(form, row, problem, config, generator),
        learning_rates=rates,
        weight_decays=decays,
        betas=(config.beta1, config.beta2),
    )


def train_row(row: str, data: Data, config: Toy, *, seed: int, state: Path) -> dict[str, Stack]:
    """Train the stacks of a row, by form; `state` keeps what an interrupted job has done."""
    stacks = {}
    for form in forms_of(config, row):
        stacks[form] = new_stack(form, row, data.problem, config, seed)
        stacks[form].run(
            config.steps[form],
            loss=partial(_loss, samples=data.train, batch=config.batch_size),
            measure=partial(_measure, samples=data.probe),
            log_every=config.log_every,
            checkpoint_every=config.checkpoint_every,
            checkpoint=state / f"{row}-{form}.safetensors",
            label=f"quest toy {row} {form} seed {seed}",
        )
    return stacks


def _loss(stack: Stack, update: int, *, samples: toy.Samples, batch: int) -> Tensor:
    return losses(stack, samples.part((update - 1) * batch, update * batch))[0]


def losses(stack: Stack, samples: toy.Samples) -> tuple[Tensor, toy_models.Output]:
    """Return each model's mean cross-entropy (M), nats, and its whole output."""
    output = stack.forward(samples.keys_BND, samples.answers_BN)
    scores_MBC = output.log_probabilities_BC
    target_MB1 = samples.target_B[:, None].expand(len(scores_MBC), -1, -1)
    return -scores_MBC.gather(2, target_MB1).mean(dim=(1, 2)), output


def _measure(stack: Stack, *, samples: toy.Samples) -> dict[str, Tensor]:
    loss_M, output = losses(stack, samples)
    ratio_M = key_norm_ratio(output.key_norm_BN, samples)
    return {"loss": loss_M, "max_logit": output.max_logit, "key_norm_ratio": ratio_M}


def key_norm_ratio(key_norm_MBN: Tensor, samples: toy.Samples) -> Tensor:
    """Return (M) how long the answer token's key is beside the others of its sample.

    The mean over the biased samples of |k_L| / mean_{i != L} |k_i|.
    """
    norm_MBN = key_norm_MBN[:, samples.biased_B]
    place_MB1 = samples.position_B[samples.biased_B, None].expand(len(norm_MBN), -1, -1)
    answer_MB = norm_MBN.gather(2, place_MB1).squeeze(2)
    others_MB = (norm_MBN.sum(2) - answer_MB) / (norm_MBN.shape[2] - 1)
    return (answer_MB / others_MB).mean(1)


def write_row(stacks: dict[str, Stack], config: Toy, out: Path) -> None:
    """Write history.csv (a column a form, grid point and metric) and <form>.safetensors."""
    note = {"toy": json.dumps(config.model_dump(), sort_keys=True)}
    lines: dict[int, dict[str, float]] = {}
    for form, stack in stacks.items():
        tensor_files.write(out / f"{form}.safetensors", stack.state_tensors(), note)
        for update, values in stack.history:
            line = lines.setdefault(update, {"step": update})
            for metric, value_M in values.items():
                for (rate, decay), value in zip(grid(config), value_M, strict=True):
                    line[column(form, rate, decay, metric)] = value
    ordered = [lines[update] for update in sorted(lines)]
    write_csv(out / "history.csv", list(lines[0]), ordered)


def read_history(path: Path, config: Toy, form: str, metric: str) -> np.ndarray:
    """Return a metric (L, M) of one form from history.csv."""
    names = [column(form, rate, decay, metric) for rate, decay in grid(config)]
    # a shorter form ends earlier
    lines = [line for line in histories.read_history(path, *names) if line[names[0]]]
    return np.array([[float(line[name]) for name in names] for line in lines])
