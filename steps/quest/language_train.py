"""Train the language model of each row on the corpus, for one seed.

All rows of a seed start from the same matrices and read the same batches.
"""

import argparse
from pathlib import Path

from torch import Tensor, nn

from steps.quest import language_model
from steps.quest.language_config import Language
from steps.quest.language_measure import measure, token_file
from steps.quest.row_training import fitted, train_rows
from steps.shared.fit import Fit
from steps.shared.loss import cross_entropy
from steps.shared.runtime import read_json
from steps.shared.token_files import Batch, open_tokens, random_batches, sequential_batches

VALIDATION_BATCH = 16  # sequences per forward pass while training


def run(args: argparse.Namespace, config: Language) -> None:
    """Train the rows of a job and write what the workflow declares."""
    train_rows(args, config, lambda row, state: train_row(row, config, args, state))


def train_row(row: str, config: Language, args: argparse.Namespace, state: Path) -> Fit:
    """Train one row, from where an interrupted job left it."""
    context, vocabulary = config.context, read_json(args.data, "vocabulary")["vocabulary"]
    windows = sequential_batches(
        open_tokens(token_file(args.data, "validation"), context, vocabulary),
        batch=VALIDATION_BATCH,
        context=context,
    )
    return fitted(
        language_model.build(
            row,
            config.shape,
            seed=args.seed,
            vocabulary=vocabulary,
            context=context,
        ),
        config,
        args,
        row,
        state,
        batch=random_batches(
            open_tokens(token_file(args.data, "train"), context, vocabulary),
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
