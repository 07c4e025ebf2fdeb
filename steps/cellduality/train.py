"""Train the rows of one seed, one after another: the base model, SFT, GRPO from its result.

One job for all rows, since to start TRL costs as much as a small row.
"""

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steps.cellduality.config import Train
from steps.cellduality.plan import trained_files
from steps.shared.atomic import atomic_folder
from steps.shared.config import StepConfig
from steps.shared.flags import is_json, read_config, step_parser
from steps.shared.histories import write_history
from steps.shared.job_state import job_key, training_state
from steps.shared.runtime import (
    InputError,
    deterministic,
    is_main_process,
    log,
    read_json,
    run_step,
    write_json,
)
from steps.shared.tracking import live_log, log_run, training_run


class Rows(StepConfig):
    """The configuration of every row that a job trains."""

    rows: dict[str, Train]


def main(argv: list[str] | None = None) -> None:
    """Write <row>/seed<seed>/: the model or its adapter, and history.csv."""
    parser = step_parser(__doc__, "state", "threads", "device")
    parser.add_argument("--rows", nargs="+", required=True, help="in the order of training")
    parser.add_argument("--data", type=Path, required=True, help="manifest.json of the seed")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_rows(args)
    deterministic(args.threads)
    key = job_key(
        "steps.cellduality.train",
        args,
        paper="cellduality",
        row="rows",  # their names are in the configuration
        config=config,
        inputs=[args.data],
    )
    with training_state(args.state, key) as state:
        for row in args.rows:
            train_row(row, config.rows[row], args, state)
            meet(args)  # the next row starts from what the main process has written


def read_rows(args: Namespace) -> Rows:
    """Return the configuration of the rows to train."""
    if not is_json(args.config):
        raise InputError(f'--config {args.config}: must be JSON, {{"rows": {{row: its values}}}}')
    config = read_config(args, Rows)
    if missing := [row for row in args.rows if row not in config.rows]:
        raise InputError(f"--rows {missing[0]}: the configuration has no such row")
    return config


def train_row(row: str, config: Train, args: Namespace, state: Path) -> None:
    """Train one row, unless the job did before it was interrupted; write its outputs."""
    from steps.cellduality.policy import copy_files

    names = (*trained_files(config.stage, lora=has_adapter(config)), "history.csv")
    done, out = state / row / "done", args.out / row / f"seed{args.seed}"
    if not (done / "complete").exists():
        log(f"cellduality {row} seed {args.seed}: {config.stage}")
        run = training_run(args, paper="cellduality", row=row, config=config)
        with live_log(run) as on_log:
            lines = make(row, config, args, state, on_log)
        if is_main_process():
            last = write_history(done / "history.csv", lines)
            (done / "complete").touch()
            log_run(**run, history=done / "history.csv", summary=last)
    if is_main_process():
        copy_files(done, out, names)


def meet(args: Namespace) -> None:
    """Let the processes of a job wait for one another; of one alone, nothing happens."""
    if _processes() > 1:
        from accelerate import PartialState

        PartialState(cpu=args.device == "cpu").wait_for_everyone()


def _processes() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def has_adapter(config: Train) -> bool:
    """Say whether a row's stage trains an adapter."""
    return {"base": None, "sft": config.sft_lora, "grpo": config.grpo_lora}[
        config.stage
    ] is not None


def make(
    row: str,
    config: Train,
    args: Namespace,
    state: Path,
    on_log: Callable[[int, dict[str, float]], None],
) -> list[dict[str, Any]]:
    """Leave a trained model, or its adapter, in <row>/done; return the history."""
    from steps.cellduality import grpo, policy, questions, sft, trainers
    from steps.cellduality.vocabulary import Vocabulary

    done = state / row / "done"
    vocabulary = Vocabulary.read(args.data.with_name("vocabulary.json"))
    if config.stage == "base":
        if is_main_process():
            policy.make_base(config.pretrained or config.model, vocabulary, args.seed, done)
        return [{"step": 0}]
    labelled, parts = questions.read(args.data.with_name("questions.json"))
    job = trainers.Job(
        state=state / row / "run",
        label=f"cellduality {row} seed {args.seed}",
        on_log=on_log,
        seed=args.seed,
        cpu=args.device == "cpu",
        bf16=config.pretrained is not None and config.pretrained.dtype == "bfloat16",
        processes=_processes(),
    )
    start = whole_model(config.start, state)
    meet(args)
    if config.stage == "sft":
        trainer, lines = sft.train(config, labelled, vocabulary, start=start, job=job)
    else:
        trainer, lines = grpo.train(
            config,
            parts["unlabelled"],
            parts["validation"],
            vocabulary,
            start=start,
            lengths=read_json(args.data, "lengths")["lengths"],
            job=job,
        )
    trainer.accelerator.wait_for_everyone()
    if is_main_process():
        model = trainer.accelerator.unwrap_model(trainer.model)
        if config.pretrained and not has_adapter(config):
            model = policy.as_kept(model, config.pretrained)
        policy.save(model, trainer.processing_class, done)
        if has_adapter(config):
            name_start(done / "adapter_config.json", f"../../{config.start}/seed{args.seed}")
    return lines


def whole_model(row: str, state: Path) -> Path:
    """Return the folder of an earlier row's model; an adapter is first merged, here alone."""
    from steps.cellduality import policy

    done, whole = state / row / "done", state / row / "whole"
    if (done / "model.safetensors").exists():
        return done
    if is_main_process() and not whole.exists():
        base = read_json(done / "adapter_config.json")["base_model_name_or_path"]
        start = whole_model(Path(base).parts[-2], state)
        with atomic_folder(whole) as folder:
            policy.save(*policy.merged(start, done), folder)
    return whole


def name_start(path: Path, start: str) -> None:
    """Write the folder of the row that an adapter belongs on, and lists in order, into its file."""
    content = read_json(path)
    content |= {"base_model_name_or_path": start}
    content |= {key: sorted(value) for key, value in content.items() if isinstance(value, list)}
    write_json(path, content)


if __name__ == "__main__":
    run_step(main)
