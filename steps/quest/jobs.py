"""What the jobs of every task share: their parameters, their state folder, their W&B run."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from steps.shared.config import StepConfig
from steps.shared.flags import read_part
from steps.shared.job_state import job_key, training_state
from steps.shared.runtime import InputError
from steps.shared.tracking import log_run, training_run


def task_function(task: str, phase: str) -> Callable[..., None]:
    """Return what a task does in a phase: `run` of steps/quest/<task>_<phase>.py."""
    name = f"steps.quest.{task}_{phase}"
    if not task.isidentifier() or find_spec(name) is None:
        raise InputError(f"--task {task}: no such task, since there is no module {name}")
    return import_module(name).run


def read_task(args: argparse.Namespace, phase: str) -> Any:
    """Return what a task (`args.task`) reads of a phase ('Prepare', 'Train', 'Evaluate').

    The rules pass just that as JSON; params.yaml holds the whole phase. The models are imported by
    name, so that another task's parameters are no part of this one's code.
    """
    config = import_module("steps.quest.config")
    whole: type[StepConfig] = getattr(config, phase)
    if args.task not in whole.model_fields:
        raise InputError(f"--task {args.task}: reads nothing in this phase")
    return read_part(args, whole, args.task)


@contextmanager
def training_job(args: argparse.Namespace, config: StepConfig) -> Iterator[Path]:
    """Hold the state folder of the job that trains `args.rows` of a task for one seed."""
    key = job_key(
        f"steps.quest.{args.task}_train",
        args,
        paper="quest",
        row="-".join([args.task, *args.rows]),
        config=config,
        inputs=[args.data],
    )
    with training_state(args.state, key) as state:
        yield state


def identity(args: argparse.Namespace, config: StepConfig, row: str) -> dict[str, Any]:
    """Return what names the W&B run of one row and seed."""
    return training_run(args, paper="quest", row=f"{args.task}-{row}", config=config)


def mirror(args: argparse.Namespace, config: StepConfig, row: str, summary: dict[str, Any]) -> None:
    """Send a trained row's history to W&B."""
    history = args.out / row / f"seed{args.seed}" / "history.csv"
    log_run(**identity(args, config, row), history=history, summary=summary)
