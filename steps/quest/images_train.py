"""Train the vision transformer of each row on the images of one seed.

All rows of a seed start from the same matrices and read the same batches.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest import vit
from steps.quest.attention import largest_logit
from steps.quest.images_config import Images
from steps.quest.images_data import Chunks, ImageSet, open_images
from steps.quest.row_training import fitted, train_rows
from steps.shared.fit import Fit

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
        torch.manual_seed(update)  # for what the model drops, also after an interruption
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
