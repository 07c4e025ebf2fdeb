"""Train the vision transformer of each row on the images of one seed.

All rows of a seed start from the same matrices and read the same batches.
"""

import argparse
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest import vit
from steps.quest.attention import largest_logit
from steps.quest.images_config import Images
from steps.quest.images_data import Chunks, ImageSet, open_images
from steps.quest.jobs import identity, mirror, training_job
from steps.shared.fit import Fit
from steps.shared.runtime import is_main_process, write_csv
from steps.shared.tracking import open_run

VALIDATION_BATCH = 250  # images per forward pass while training


def run(args: argparse.Namespace, config: Images) -> None:
    """Train the rows of a job and write what the workflow declares."""
    images = open_images(args.data, workers=args.threads - 1)
    with training_job(args, config) as state:
        for row in args.rows:
            fit = train_row(row, images, config, args, state / row)
            if is_main_process():
                out = args.out / row / f"seed{args.seed}"
                vit.save(out / "model.safetensors", fit.bare_model)
                write_csv(out / "history.csv", list(fit.history[0]), fit.history)
                last = {name: value for name, value in fit.history[-1].items() if name != "step"}
                mirror(args, config, row, last)


def train_row(
    row: str, images: ImageSet, config: Images, args: argparse.Namespace, state: Path
) -> Fit:
    """Train one row, from where an interrupted job left it; a finished row is only loaded."""
    shape = {name: images.note[name] for name in ("image_size", "channels", "classes")}
    batches = None

    def batch(update: int) -> tuple[Tensor, ...]:
        nonlocal batches
        if batches is None:
            batches = images.training_batches(
                batch_size=config.batch_size,
                updates=config.steps,
                max_shift=config.max_shift,
                seed=args.seed,
                first=update,
            )
        found = batches(update)
        torch.manual_seed(update)  # for what the model drops, also after an interruption
        return found

    fit = Fit(
        vit.build(row, config.shape, seed=args.seed, drop_path=config.drop_path, **shape),
        config,
        batch=batch,
        loss=lambda model, pair: loss(model, pair, config.label_smoothing),
        rate=warmup_cosine(config.steps, config.warmup_share),
        state=state,
        cpu=args.device == "cpu",
    )
    fit.resume()
    chunks = images.chunks("validation", seed=args.seed, batch_size=VALIDATION_BATCH)
    live_run = open_run(**identity(args, config, row)) if is_main_process() else nullcontext()
    with live_run as live:
        fit.run(
            config.steps,
            label=f"quest images {row} seed {args.seed}",
            validate=lambda model: validate(model, chunks),
            on_log=live.log if live else lambda step, metrics: None,
        )
    fit.save_state(fit.checkpoint)  # so that a job cut in a later row need not train this one again
    return fit


def loss(model: nn.Module, batch: tuple[Tensor, ...], smoothing: float) -> Tensor:
    """Return the mean cross-entropy (nats) of images and labels, or shares of the classes."""
    images, labels = batch
    return F.cross_entropy(model(images).float(), labels, label_smoothing=smoothing)


def warmup_cosine(steps: int, warmup_share: float) -> Callable[[int], float]:
    """Return update -> multiplier of the peak rate: linear to 1, then half a cosine down to 0.

    The last update has the multiplier of half a step before the end, so that it still learns.
    """
    warmup = max(1, round(warmup_share * steps))

    def multiplier(update: int) -> float:
        if update <= warmup:
            return update / warmup
        return (1 + math.cos(math.pi * (update - warmup - 0.5) / (steps - warmup))) / 2

    return multiplier


@torch.no_grad()
def validate(model: nn.Module, chunks: Chunks) -> dict[str, float]:
    """Return the mean loss (nats), accuracy (%) and largest |logit| of the attention."""
    model.eval()
    device = next(model.parameters()).device
    nats, right, count, largest = 0.0, 0, 0, 0.0
    for images, labels in chunks:
        scores, logits = model(images.to(device), explicit=True)
        labels = labels.to(device)
        nats += float(F.cross_entropy(scores.float(), labels, reduction="sum"))
        right += int((scores.argmax(-1) == labels).sum())
        largest = max(largest, float(largest_logit(logits)))
        count += len(labels)
    return {
        "validation_loss": nats / count,
        "validation_accuracy": 100 * right / count,
        "max_logit": largest,
    }
