"""What identifies a training job, and the folder that holds its checkpoints until it is done."""

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from steps.shared.runtime import InputError, fingerprint, is_main_process, sha256_file


def job_key(
    module: str, args: Any, *, paper: str, row: str, config: Any, inputs: Sequence[Path]
) -> dict[str, Any]:
    """Return everything that decides the result of a training job.

    `args` holds the step's flags (scale, seed, threads), `config` is its pydantic model. A changed
    job finds a fresh state folder, an interrupted one finds its own.
    """
    from importlib.metadata import version

    from steps.shared.codedigest import code_digest

    return {
        "paper": paper,
        "row": row,
        "seed": args.seed,
        "scale": args.scale,
        "threads": args.threads,
        "config": config.model_dump(),
        "code": code_digest(module),
        "inputs": [sha256_file(path) for path in inputs],
        "torch": version("torch"),
    }


@contextmanager
def training_state(root: str | Path, key: dict[str, Any]) -> Iterator[Path]:
    """Hold the state folder of one training job; it is removed when the job has succeeded.

    Two runs of one job would spoil each other's checkpoints: the second is refused. Of the
    processes of one run the main one holds the folder for all.
    """
    label = "-".join(str(key[name]) for name in ("paper", "row", "seed"))
    folder = Path(root) / f"{label}-{fingerprint(key)}"
    if not is_main_process():
        yield folder
        return
    with _lock(folder):
        try:
            yield folder
        except InputError:
            if os.listdir(folder) == ["lock"]:
                _remove_state(folder)  # there is nothing to resume
            raise
        _remove_state(folder)


def _lock(folder: Path) -> IO[str]:
    """Make the folder and return its lock file, open and locked; a locked one is an error."""
    path = folder / "lock"
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = open(path, "w")  # noqa: SIM115, the caller closes it
        except FileNotFoundError:
            continue  # the job that held the folder has just removed it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError:
            locked = False
        current = _is_open_file(lock, path)  # else it was removed since, and guards nothing
        if locked and current:
            return lock
        lock.close()
        if current:
            raise InputError(
                f"{folder}: another process is working on this job; wait for it or stop it"
            )


def _is_open_file(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _remove_state(folder: Path) -> None:
    """Remove a state folder whose lock is held.

    It is renamed first: whoever comes next finds either the lock or no folder, never half of one.
    """
    prefix = f".{folder.name}."
    aside = tempfile.mkdtemp(dir=folder.parent, prefix=prefix, suffix=".tmp")
    os.rename(folder, aside)
    # its own, and those of processes that were killed at this point
    for remains in folder.parent.glob(f"{glob.escape(prefix)}*.tmp"):
        shutil.rmtree(remains, ignore_errors=True)
