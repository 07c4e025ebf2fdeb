"""What both stages share: arguments of TRL's trainers, interruption, progress, history."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps.cellduality.config import Stage
from steps.shared.runtime import InputError, progress


@dataclass(frozen=True)
class Job:
    """Where and as what a row trains."""

    state: Path  # checkpoints
    label: str  # of the lines that say how far it is
    on_log: Callable[[int, dict[str, float]], None]  # takes each line of the history: step, values
    seed: int
    cpu: bool
    bf16: bool
    processes: int


def arguments(stage: Stage, job: Job) -> dict[str, Any]:
    """Return the training arguments of a stage, as transformers names them."""
    return {
        "output_dir": str(job.state),
        "use_cpu": job.cpu,
        "bf16": job.bf16,
        "max_steps": stage.steps,
        "learning_rate": stage.learning_rate,
        "warmup_steps": stage.warmup_share,
        "lr_scheduler_type": "linear",
        "adam_beta1": stage.beta1,
        "adam_beta2": stage.beta2,
        "weight_decay": stage.weight_decay,
        "max_grad_norm": stage.clip_norm,
        "activation_checkpointing": not job.cpu,
        "seed": job.seed,
        "data_seed": job.seed,
        "logging_steps": stage.log_every,
        "logging_nan_inf_filter": False,
        "save_steps": stage.checkpoint_every,
        "save_total_limit": 2,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
    }


def run(trainer: Any, job: Job, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Train, from the newest whole checkpoint of an interrupted job if there is one.

    Return the history: the lines that were logged, with these fields; what is not there is None.
    """
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(showing(job, fields))
    whole = sorted(job.state.glob("checkpoint-*/trainer_state.json"), key=_step)
    trainer.train(resume_from_checkpoint=str(whole[-1].parent) if whole else None)
    lines = [line for line in trainer.state.log_history if "loss" in line]
    if not lines:
        raise InputError("log_every: must be at most the number of updates")
    return [{field: line.get(field) for field in fields} for line in lines]


def _step(path: Path) -> int:
    return int(path.parent.name.rpartition("-")[2])


def probing(measure: Callable[[], dict[str, float]], every: int) -> Any:
    """Return a callback that adds a measurement to the log, at the first line and then `every`."""
    from transformers import TrainerCallback

    class Probing(TrainerCallback):
        """Measures at the first line of the log, and whenever `every` updates have passed."""

        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Add to the line that has just been logged."""
            line = state.log_history[-1]
            if "loss" in line and (
                state.global_step <= args.logging_steps or state.global_step % every == 0
            ):
                line.update(measure())

    return Probing()


def showing(job: Job, fields: Sequence[str]) -> Any:
    """Return a callback that says how far training is, and hands on these fields of each line."""
    from transformers import TrainerCallback

    class Showing(TrainerCallback):
        """Advances the progress of the shared runtime by one item an update."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Begin with the first update that is left; only the main process says anything."""
            first, last = state.global_step, state.max_steps
            left = range(first + 1, last + 1) if state.is_world_process_zero else ()
            self.updates = progress(left, total=last, label=job.label, start=first)
            next(self.updates, None)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Count an update."""
            next(self.updates, None)

        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Hand on the line that has just been logged, and measured if it was to be."""
            line = state.log_history[-1]
            if "loss" in line:
                values = {name: line[name] for name in fields if name in line and name != "step"}
                job.on_log(line["step"], values)

    return Showing()
