"""Train the vision transformer of each row on the images of one seed.

All rows of a seed start from the same matrices and read the same batches.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest import vit
from steps.quest.images_config import Images
from steps.quest.images_data import Chunks, ImageSet, open_images
from steps.quest.images_measure import measure
from steps.quest.row_training import fitted, train_rows
from steps.shared.fit import Fit
from steps.shared.runtime import stream

VALIDATION_BATCH = 250  # images per forward pass while training


def run(args: argparse.Namespace, config: Images) -> None:
    """Train the rows of a job and write what the workflow declares."""
    images = open_images(args.data, workers=args.threads - 1)
    train_rows(args, config, lambda row, state: train_row(row, images, config, args, state))


def train_row(
    row: str, images: ImageSet, config: Images, args: argparse.Namespace, state: Path
) -> Fit:
    """Train one row, from where an interrupted job left it; a finished row is only loaded."""
    shape = {name: images.note[name] for name in ("image_size", "channels", "classes")}
    batches = None
    drops = stream("quest", "dropout", args.seed).integers(2**62, size=config.steps).tolist()

    def batch(update: int) -> tuple[Tensor, ...]:
        """Return the images and labels of an update; the first one asked for may be any."""
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
        torch.manual_seed(drops[update - 1])  # for what the model drops; an interruption keeps it
        return found

    chunks = images.chunks("validation", seed=args.seed, batch_size=VALIDATION_BATCH)
    return fitted(
        vit.build(row, config.shape, seed=args.seed, drop_path=config.drop_path, **shape),
        config,
        args,
        row,
        state,
        batch=batch,
        loss=lambda model, pair: loss(model, pair, config.label_smoothing),
        validate=lambda model: validate(model, chunks),
    )


def loss(model: nn.Module, batch: tuple[Tensor, ...], smoothing: float) -> Tensor:
    """Return the mean cross-entropy (nats) of images and labels, or shares of the classes."""
    images, labels = batch
    return F.cross_entropy(model(images).float(), labels, label_smoothing=smoothing)


def validate(model: nn.Module, chunks: Chunks) -> dict[str, float]:
    """Return the measures of a history line."""
    found = measure(model, chunks)
    names = {"loss": "validation_loss", "accuracy": "validation_accuracy"}
    return {names.get(name, name): value for name, value in found.items()}
