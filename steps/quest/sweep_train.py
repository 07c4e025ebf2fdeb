"""Train the sweep: for one row and seed, a small vision transformer at every learning rate at once.

The rate is constant after a linear warm-up, and gradients are not clipped: both would hide what
the sweep is about. Rows of a seed start from the same matrices and read the same batches.

Shapes: M models (one a rate), B images, K classes.
"""

import argparse
import json
from functools import partial
from pathlib import Path

import torch.nn.functional as F
from torch import Tensor

from steps.quest import vit
from steps.quest.images_data import ImageSet, open_images
from steps.quest.jobs import mirror, training_job
from steps.quest.stacked import Stack
from steps.quest.sweep_config import Sweep, column
from steps.shared import tensor_files
from steps.shared.runtime import InputError, write_csv
from steps.shared.schedules import warmup


def run(args: argparse.Namespace, config: Sweep) -> None:
    """Train the rows of a job and write what the workflow declares."""
    images = open_images(args.data, workers=0)
    if images.note["kind"] != "asset":
        raise InputError(f"{args.data}: the sweep trains on the packaged digits only")
    with training_job(args, config) as state:
        for row in args.rows:
            stack = train_row(row, images, config, args.seed, state / f"{row}.safetensors")
            write_row(stack, config, args.out / row / f"seed{args.seed}")
            mirror(args, config, row, stack.history[-1].values)


def new_stack(row: str, note: dict, config: Sweep, seed: int) -> Stack:
    """Return the untrained models of a row."""
    sizes = {name: note[name] for name in ("image_size", "channels", "classes")}
    return Stack(
        vit.build(row, config.shape, seed=seed, **sizes),
        learning_rates=config.learning_rates,
        weight_decays=[config.weight_decay] * len(config.learning_rates),
        betas=(config.beta1, config.beta2),
        multiplier=warmup(config.steps, config.warmup_share),
    )


def train_row(row: str, images: ImageSet, config: Sweep, seed: int, checkpoint: Path) -> Stack:
    """Train the models of a row; `checkpoint` keeps what an interrupted job has done."""
    batches = images.training_batches(
        batch_size=config.batch_size,
        updates=config.steps,
        max_shift=config.max_shift,
        seed=seed,
        first=1,
    )
    probes = {
        split: next(iter(images.chunks(split, seed=seed, batch_size=config.num_probe)))
        for split in ("train", "validation")
    }
    stack = new_stack(row, images.note, config, seed)
    stack.run(
        config.steps,
        loss=lambda stack, update: losses(stack, *batches(update))[0],
        measure=partial(measure, probes=probes),
        log_every=config.log_every,
        checkpoint_every=config.checkpoint_every,
        checkpoint=checkpoint,
        label=f"quest sweep {row} seed {seed}",
    )
    return stack


def losses(stack: Stack, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cross-entropy (M, nats) and the largest |logit| of the attention (M)."""
    scores_MBK, logits = stack.forward(images, explicit=True)
    count = len(scores_MBK)
    flat = F.cross_entropy(scores_MBK.flatten(0, 1), labels.repeat(count), reduction="none")
    return flat.view(count, -1).mean(1), logits.detach().abs().flatten(1).amax(1)


def measure(stack: Stack, *, probes: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """Return both losses, and the largest |logit| on validation images."""
    train_M, _ = losses(stack, *probes["train"])
    validation_M, logit_M = losses(stack, *probes["validation"])
    return {"train_loss": train_M, "validation_loss": validation_M, "max_logit": logit_M}


def write_row(stack: Stack, config: Sweep, out: Path) -> None:
    """Write history.csv (a column a rate and metric) and model.safetensors (all rates)."""
    note = {"sweep": json.dumps(config.model_dump(), sort_keys=True)}
    tensor_files.write(out / "model.safetensors", stack.state_tensors(), note)
    lines = []
    for update, values in stack.history:
        line = {"step": update}
        for metric, value_M in values.items():
            line |= {
                column(rate, metric): value
                for rate, value in zip(config.learning_rates, value_M, strict=True)
            }
        lines.append(line)
    write_csv(out / "history.csv", list(lines[0]), lines)
