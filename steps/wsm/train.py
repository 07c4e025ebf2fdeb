"""Train the trunk (constant rate, general corpus) or a branch of it (annealing corpus).

Without --trunk the job trains the trunk and writes its training state; with it the job resumes that
state, optimizer included, and anneals: at the constant rate, or along a decay curve. Every branch
of a seed sees the same batches.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from steps.shared.atomic import atomic_folder
from steps.shared.flags import read_config, step_parser
from steps.shared.histories import write_history
from steps.shared.job_state import job_key, training_state
from steps.shared.runtime import (
    InputError,
    deterministic,
    is_main_process,
    read_json,
    reading,
    run_step,
)
from steps.shared.tracking import live_log, log_run, training_run
from steps.wsm.config import Train, Trunk
from steps.wsm.plan import checkpoint_name, saved_updates

if TYPE_CHECKING:
    from steps.shared.fit import Fit


def main(argv: list[str] | None = None) -> None:
    """Run one training job; see the module's docstring."""
    parser = step_parser(__doc__, "state", "threads", "device")
    parser.add_argument("--tokens", type=Path, required=True, help="training tokens (.npy)")
    parser.add_argument("--validation", type=Path, required=True, help="validation tokens (.npy)")
    parser.add_argument("--data", type=Path, required=True, help="manifest.json of prepare")
    parser.add_argument("--trunk", type=Path, help="training state that a branch resumes")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Train if args.trunk else Trunk)
    row = args.row or "trunk"
    inputs = [args.tokens, args.validation, args.data, *([args.trunk] if args.trunk else [])]
    key = job_key("steps.wsm.train", args, paper="wsm", row=row, config=config, inputs=inputs)
    deterministic(args.threads)
    with training_state(args.state, key) as state:
        fit = _train(args, config, row, state)
        if is_main_process():
            _write(fit, args, config, state)


def _train(args, config: Trunk, row: str, state: Path) -> "Fit":
    from steps.shared.fit import Fit
    from steps.shared.token_files import open_tokens, random_batches, sequential_batches
    from steps.wsm import model as models

    note = read_json(args.data, "vocabulary")
    with reading(args.data, "prepare's manifest"):
        vocabulary = int(note["vocabulary"])
    first, last = 1, config.stable_steps
    if args.trunk:
        first, last = last + 1, last + config.anneal_steps
    fit = Fit(
        models.build(config, vocabulary, args.seed),
        config,
        batch=random_batches(
            open_tokens(args.tokens, config.context, vocabulary),
            paper="wsm",
            purpose="anneal-data" if args.trunk else "data",
            seed=args.seed,
            first=first,
            last=last,
            batch=config.batch_size,
            context=config.context,
        ),
        loss=models.next_token_loss,
        rate=rate(config),
        state=state,
        cpu=args.device == "cpu",
    )
    if args.trunk:
        fit.start_from(args.trunk)
        if fit.update != config.stable_steps:
            raise InputError(
                f"{args.trunk}: ends at update {fit.update}, not at {config.stable_steps}"
            )
    fit.resume()
    kept = saved_updates(config.model_dump()) if args.trunk else []
    held_out = sequential_batches(
        open_tokens(args.validation, config.context, vocabulary), batch=64, context=config.context
    )
    run = training_run(args, paper="wsm", row=row, config=config)
    with live_log(run) as on_log:
        fit.run(
            last,
            label=f"wsm {row} seed {args.seed}",
            save=lambda update, model: models.save(state / checkpoint_name(update), model),
            save_at=frozenset(kept),
            validate=lambda model: {
                "validation_loss": models.token_statistics(model, held_out)["nats"]
            },
            on_log=on_log,
        )
    return fit


def _write(fit: "Fit", args, config: Trunk, state: Path) -> None:
    """Write the checkpoints or the training state, and the history, also to W&B."""
    if args.trunk:
        _move_checkpoints(state, args.out, saved_updates(config.model_dump()))
    else:
        fit.save_state(args.out / "state.safetensors")
    history = args.out / "history.csv"
    last = write_history(history, fit.history)
    run = training_run(args, paper="wsm", row=args.row or "trunk", config=config)
    log_run(**run, history=history, summary=last)


def rate(config: Trunk):
    """Return update -> multiplier of the peak rate: linear warm-up, constant, then the decay.

    The decay runs over the annealing updates on the grid of the merge map, so that the paper's
    Theorem 3.1 pairs the two: update stable + i has f(i / (anneal + 1)).
    """
    from steps.wsm.curves import parse_curve

    decay = getattr(config, "decay", "constant")
    curve = None if decay == "constant" else parse_curve(decay)

    def multiplier(update: int) -> float:
        if update <= config.stable_steps or curve is None:
            return min(1.0, update / config.warmup_steps)
        return float(curve((update - config.stable_steps) / (config.anneal_steps + 1)))

    return multiplier


def _move_checkpoints(state: Path, out: Path, updates: list[int]) -> None:
    for update in updates:
        name = checkpoint_name(update)
        with atomic_folder(out / name) as folder:
            shutil.copytree(state / name, folder, dirs_exist_ok=True)


if __name__ == "__main__":
    run_step(main)
