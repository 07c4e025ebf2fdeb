"""Train the language model of each row on the corpus, for one seed.

All rows of a seed start from the same matrices and read the same batches.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

from steps.quest import language_model
from steps.quest.attention import largest_logit
from steps.quest.language_config import Language
from steps.quest.row_training import fitted, train_rows
from steps.shared.fit import Fit
from steps.shared.loss import cross_entropy
from steps.shared.runtime import InputError, read_json
from steps.shared.token_files import Batch, open_tokens, random_batches, sequential_batches

VALIDATION_BATCH = 16  # sequences per forward pass while training


def run(args: argparse.Namespace, config: Language) -> None:
    """Train the rows of a job and write what the workflow declares."""
    train_rows(args, config, lambda row, state: train_row(row, config, args, state))


def token_file(manifest: Path, split: str) -> Path:
    """Return the token file of a split, beside prepare's manifest."""
    return manifest.with_name(f"{manifest.stem}_{split}.npy")


def train_row(row: str, config: Language, args: argparse.Namespace, state: Path) -> Fit:
    """Train one row, from where an interrupted job left it."""
    context = config.context
    windows = sequential_batches(
        open_tokens(token_file(args.data, "validation"), context),
        batch=VALIDATION_BATCH,
        context=context,
    )
    return fitted(
        language_model.build(
            row,
            config.shape,
            seed=args.seed,
            vocabulary=read_json(args.data)["vocabulary"],
            context=context,
        ),
        config,
        args,
        row,
        state,
        batch=random_batches(
            open_tokens(token_file(args.data, "train"), context),
            paper="quest",
            purpose="language-data",
            seed=args.seed,
            first=1,
            last=config.steps,
            batch=config.batch_size,
            context=context,
        ),
        loss=loss,
        validate=lambda model: validate(model, windows),
    )


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean next-token loss (nats) of ids (B, T) and their targets (B, T)."""
    ids_BT, targets_BT = batch
    return cross_entropy(model(ids_BT).flatten(0, 1).float(), targets_BT.flatten())


def validate(model: nn.Module, windows: list[Batch]) -> dict[str, float]:
    """Return the measures of a history line."""
    found = measure(model, windows)
    return {"validation_loss": found["loss"], "max_logit": found["max_logit"]}


@torch.no_grad()
def measure(model: nn.Module, windows: list[Batch]) -> dict[str, float]:
    """Return the mean loss (nats per token) and the largest |logit| of the attention."""
    if not windows:
        raise InputError("no window of tokens to measure on")
    model.eval()
    device = next(model.parameters()).device
    nats, count, largest = 0.0, 0, 0.0
    for ids_BT, targets_BT in windows:
        scores, logits = model(ids_BT.to(device), explicit=True)
        targets = targets_BT.flatten().to(device)
        nats += float(cross_entropy(scores.flatten(0, 1).float(), targets)) * len(targets)
        count += len(targets)
        largest = max(largest, float(largest_logit(logits)))
    return {"loss": nats / count, "max_logit": largest}
