"""Mirror declared output files in Weights & Biases: one run per (row, seed), cheap, never fatal.

`WANDB_MODE` is offline (default), online or disabled; runs go to `$WANDB_DIR/wandb` (default
`./wandb`), their project is `$WANDB_PROJECT` (default retable). wandb lives in a worker process
with a deadline: it can hang, crash or be missing, and the step loses one line and some seconds.

    python -m steps.shared.tracking sync    # upload the newest offline run of each id, once
"""

import argparse
import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steps.shared.errors import one_line
from steps.shared.runtime import InputError, fingerprint, is_main_process, log, run_step
from steps.shared.tracking_client import QUIET, Worker

if TYPE_CHECKING:
    from steps.shared.config import StepConfig

MODES = ("offline", "online", "disabled")


def run_id(*, scale: str, paper: str, row: str, seed: int, config: Mapping[str, Any]) -> str:
    """Return the run's id, 16 hex digits: a rerun or a resumed job is the same run."""
    return fingerprint(
        {"scale": scale, "paper": paper, "row": row, "seed": seed, "config": dict(config)}
    )


def training_run(
    args: argparse.Namespace, *, paper: str, row: str, config: "StepConfig"
) -> dict[str, Any]:
    """Return what `open_run` and `log_run` are told of a training job; `args` are its flags."""
    return {
        "scale": args.scale,
        "paper": paper,
        "phase": "train",
        "row": row,
        "seed": args.seed,
        "config": config.model_dump(),
    }


def log_run(
    *,
    scale: str,
    paper: str,
    phase: str,
    row: str,
    seed: int,
    config: Mapping[str, Any],
    history: Path | None,
    summary: Mapping[str, Any],
    tables: Mapping[str, Path] | None = None,
    figures: Mapping[str, Path] | None = None,
) -> None:
    """Write one finished run from its files; an earlier run of the same id is replaced.

    `history` is a CSV file whose first column is `step`; `tables` are CSV, `figures` SVG or image
    files, by name. Never raises: a failure is one line, and the last attempt of this process.
    """
    with _guard():
        worker = _open(_identity(scale, paper, phase, row, seed, config))
        if worker is not None:
            message = {
                "history": None if history is None else str(Path(history).resolve()),
                "summary": dict(summary),
                "tables": _absolute(tables or {}),
                "figures": _absolute(figures or {}),
            }
            worker.send({"do": "close", "exit_code": 0, **message})
            worker.keep()


@contextmanager
def live_log(run: Mapping[str, Any]) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Yield what a training loop calls with each history line; the main process alone sends it.

    `run` is what `training_run` returns.
    """
    if is_main_process():
        with open_run(**run) as live:
            yield live.log
    else:
        yield lambda step, metrics: None


class LiveRun:
    """What a training loop logs to while it runs."""

    def __init__(self, worker: Worker | None) -> None:
        """Log to `worker`, or nowhere."""
        self._worker = worker

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the metrics of one step; a step that W&B already has is ignored there."""
        if self._worker is not None and not _off:
            with _guard():
                self._worker.send({"do": "log", "step": step, "metrics": dict(metrics)})


@contextmanager
def open_run(
    *, scale: str, paper: str, phase: str, row: str, seed: int, config: Mapping[str, Any]
) -> Iterator[LiveRun]:
    """Yield a live run (online only; else its `log` does nothing); a resumed job continues it."""
    worker = None
    if os.environ.get("WANDB_MODE") == "online":
        with _guard():
            run = _identity(scale, paper, phase, row, seed, config)
            worker = _open({**run, "resume": "allow"})
    exit_code = 1
    try:
        yield LiveRun(worker)
        exit_code = 0
    finally:
        if worker is not None and not _off:
            with _guard():
                files = {"history": None, "summary": {}, "tables": {}, "figures": {}}
                worker.send({"do": "close", "exit_code": exit_code, **files})
                worker.keep()


def sync(folder: Path) -> None:
    """Upload the newest offline run of each id under `folder` that W&B's marker calls new."""
    newest: dict[str, Path] = {}
    for file in sorted(folder.glob("offline-run-*/run-*.wandb")):
        newest[file.stem] = file
    new = [file for file in newest.values() if not _uploaded(file)]
    if new:
        place = {"WANDB_MODE": "online", "WANDB_DIR": str(folder.resolve().parent)}
        os.environ.update({**QUIET, **os.environ, **place})
        _check_login()
        subprocess.run([sys.executable, "-m", "wandb", "sync", *(str(file.parent) for file in new)])
    missing = sum(not _uploaded(file) for file in new)
    print(f"{folder}: {len(new) - missing} uploaded, {len(newest) - len(new)} already there")
    if missing:
        raise InputError(f"{missing} of {len(new)} runs could not be uploaded: see above")


def _uploaded(file: Path) -> bool:
    return file.with_suffix(".wandb.synced").exists()


def _check_login() -> None:
    import wandb

    try:
        known = wandb.login(prompt=False)
    except Exception as error:
        raise InputError(f"W&B cannot be used: {one_line(error)}") from None
    if not known:
        raise InputError("no W&B key: set WANDB_API_KEY or run `wandb login`, then try again")


_worker: Worker | None = None
_off = False


@contextmanager
def _guard() -> Iterator[None]:
    """Turn any failure into one line and switch tracking off, so that a deadline counts once."""
    global _off
    try:
        yield
    except Exception as error:
        _off = True
        log(f"tracking: not mirrored in W&B, switched off for this process: {one_line(error)}")
        _close(patience=0.0)


def _close(patience: float = 1.0) -> None:
    global _worker
    worker, _worker = _worker, None
    if worker is not None:
        worker.close(patience)


def _identity(
    scale: str, paper: str, phase: str, row: str, seed: int, config: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "id": run_id(scale=scale, paper=paper, row=row, seed=seed, config=config),
        "name": f"{row}-seed{seed}",
        "group": paper,
        "job_type": phase,
        "config": {**config, "scale": scale, "paper": paper, "row": row, "seed": seed},
    }


def _absolute(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(Path(path).resolve()) for name, path in files.items()}


def _open(run: dict[str, Any]) -> Worker | None:
    """Open a run in this process's worker; None where nothing is to be written."""
    global _worker
    mode = os.environ.get("WANDB_MODE") or "offline"
    if _off or mode == "disabled":
        return None
    if mode not in MODES:
        raise InputError(f"WANDB_MODE={mode}: must be one of {', '.join(MODES)}")
    if _worker is None:
        _worker = Worker(_folder(), run["id"])
        atexit.register(_close)
    _worker.open({"mode": mode, **run})
    return _worker


def _folder() -> Path:
    return Path(os.environ.get("WANDB_DIR") or ".").resolve() / "wandb"


def main() -> None:
    """Run the command line: `sync [--dir wandb]`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    upload = commands.add_parser("sync", help="upload the newest offline run of each id, once")
    upload.add_argument("--dir", type=Path, default=_folder(), help="the folder of the runs")
    sync(parser.parse_args().dir)


if __name__ == "__main__":
    run_step(main)
