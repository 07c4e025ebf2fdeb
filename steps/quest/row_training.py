"""How a job trains the rows of a task one after another: schedule, interruption, files, W&B."""

import argparse
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

from steps.quest import blocks
from steps.quest.jobs import identity, mirror, training_job
from steps.quest.model_config import RowFit
from steps.shared.fit import Batch, Fit
from steps.shared.histories import write_history
from steps.shared.runtime import is_main_process
from steps.shared.schedules import warmup_cosine
from steps.shared.tracking import live_log


def train_rows(
    args: argparse.Namespace, config: RowFit, train_row: Callable[[str, Path], Fit]
) -> None:
    """Train the rows of a job by `train_row(row, state folder)`; write what the workflow declares.

    That is, model.safetensors and history.csv of every row.
    """
    with training_job(args, config) as state:
        for row in args.rows:
            fit = train_row(row, state / row)
            if is_main_process():
                out = args.out / row / f"seed{args.seed}"
                blocks.save(out / "model.safetensors", fit.bare_model)
                mirror(args, config, row, write_history(out / "history.csv", fit.history))


def fitted(
    model: nn.Module,
    config: RowFit,
    args: argparse.Namespace,
    row: str,
    state: Path,
    *,
    batch: Callable[[int], Batch],
    loss: Callable[[nn.Module, Batch], Tensor],
    validate: Callable[[nn.Module], dict[str, float]],
) -> Fit:
    """Train one row, from where an interrupted job left it; a finished row is only loaded."""
    fit = Fit(
        model,
        config,
        batch=batch,
        loss=loss,
        rate=warmup_cosine(config.steps, config.warmup_share),
        state=state,
        cpu=args.device == "cpu",
    )
    fit.resume()
    with live_log(identity(args, config, row)) as on_log:
        fit.run(
            config.steps,
            label=f"quest {args.task} {row} seed {args.seed}",
            validate=validate,
            on_log=on_log,
        )
    fit.save_state(fit.checkpoint)  # so that a job cut in a later row need not train this one again
    return fit
