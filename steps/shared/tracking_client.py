"""The client of `steps.shared.tracking_worker`: starts it, bounds the waiting, keeps its runs."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DEADLINE_SECONDS = 18.0  # of waiting for W&B in one call; with the clean-up below 20
# No error reports to third parties; an unreachable server is given up after seconds, not days.
QUIET = {"WANDB_ERROR_REPORTING": "false", "WANDB_X_GRAPHQL_RETRY_MAX": "2"}
ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """The process that imports wandb; `left` is what waiting for it may still cost, in seconds."""

    def __init__(self, folder: Path, first_id: str) -> None:
        """Start it; `folder` receives the runs."""
        self.folder = folder
        # Named after its first run: what a killed job leaves is cleared when the job is rerun.
        self.staging = folder / f".staging-{first_id}"
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging.mkdir(parents=True)
        # TMPDIR: wandb leaves two temporary folders behind by every process
        places = dict.fromkeys(("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "TMPDIR"), str(self.staging))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "steps.shared.tracking_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env={**QUIET, **os.environ, **places},
            start_new_session=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        self.left = DEADLINE_SECONDS

    def open(self, run: dict[str, Any]) -> None:
        """Start a run, with the whole deadline before it."""
        self.left = DEADLINE_SECONDS
        self.send({"do": "open", "dir": str(self.staging), **run})

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; if the worker has ended, raise what it ended with."""
        data = json.dumps(message, default=str).encode() + b"\n"
        try:
            while data:
                self._wait([], [self.stdin])
                data = data[os.write(self.stdin.fileno(), data) :]
        except BrokenPipeError:
            self._receive()

    def keep(self) -> None:
        """Take the finished run out of the staging folder, then remove older ones of its id."""
        made = Path(self._receive())
        if made.name.startswith("offline-run-"):
            for scratch in ("logs", "tmp"):
                shutil.rmtree(made / scratch, ignore_errors=True)
            target = self.folder / made.name
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)
            for other in self.folder.glob(f"offline-run-*-{made.name.rsplit('-', 1)[1]}"):
                if other != target:
                    shutil.rmtree(other, ignore_errors=True)
        shutil.rmtree(self.staging / "wandb", ignore_errors=True)

    def close(self, patience: float) -> None:
        """End the worker, by force after `patience` seconds, and remove its staging folder."""
        self.stdin.close()
        self.stdout.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.staging, ignore_errors=True)

    def _receive(self) -> str:
        answer = b""
        while not answer.endswith(b"\n"):
            self._wait([self.stdout], [])
            part = os.read(self.stdout.fileno(), 65536)
            if not part:
                raise RuntimeError(f"wandb ended with status {self.process.wait(1.0)}")
            answer += part
        reply = json.loads(answer)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return str(reply["folder"])

    def _wait(self, reads: list[Any], writes: list[Any]) -> None:
        start = time.monotonic()
        ready = select.select(reads, writes, [], max(self.left, 0.0))
        self.left -= time.monotonic() - start
        if not any(ready):
            raise TimeoutError(f"no answer within {DEADLINE_SECONDS:.0f} s")
