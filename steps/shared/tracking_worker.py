"""The process in which wandb runs for `steps.shared.tracking`: one JSON message a line on stdin.

open {id, name, ...}, log {step, metrics}, close {history, summary, ...}; `close` answers with the
run's folder, and any failure answers {"error": ...} and ends the process.
"""

import csv
import gc
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLUSH_SECONDS = 2.0
HANG_SECONDS = 25  # beyond the caller's deadline: for a caller that was itself killed
BLOCK_BYTES, HEADER_BYTES = 32768, 7  # of the transaction log, in LevelDB's format


def open_run(*, dir: str, id: str, mode: str, **identity: Any) -> Any:
    """Start a run that records what it is told and nothing about this machine."""
    import wandb

    settings = wandb.Settings(
        silent=True,
        console="off",
        host="",
        save_code=False,
        disable_code=True,
        disable_git=True,
        init_timeout=15.0,
        finish_timeout=15.0,
        finish_timeout_raises=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    project = os.environ.get("WANDB_PROJECT") or "retable"
    return wandb.init(id=id, mode=mode, dir=dir, project=project, settings=settings, **identity)


def close_run(
    run: Any,
    *,
    exit_code: int,
    history: str | None,
    summary: dict[str, Any],
    tables: dict[str, str],
    figures: dict[str, str],
) -> str:
    """Write everything that is known at the end, finish, and return the run's folder."""
    folder, offline = Path(run.dir).parent, run.settings.mode == "offline"
    last = 0
    for last, metrics in read_history(history) if history else ():
        run.log(metrics, step=last)
    media = {name: _table(path) for name, path in tables.items()}
    for name, table in media.items():
        # Else it becomes an artifact as well, which is recorded by an absolute temporary path.
        table.bind_to_run(run, name, last)
    media |= {name: _figure(path) for name, path in figures.items()}
    if media:
        run.log(media, step=last)
    run.summary.update(summary)
    run.finish(exit_code=exit_code)
    if offline:
        await_end(folder / f"run-{run.id}.wandb")
    return str(folder)


def read_history(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (step, metrics) of a history.csv; empty cells are left out."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        first, *names = next(rows)
        if first != "step":
            raise ValueError(f"{path}: first column is {first!r}: must be step")
        for step, *cells in rows:
            pairs = zip(names, cells, strict=True)
            yield int(step), {name: _value(cell) for name, cell in pairs if cell}


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def _table(path: str) -> Any:
    import wandb

    with open(path, encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    data = [[_value(cell) if cell else None for cell in row] for row in rows]
    return wandb.Table(columns=columns, data=data, allow_mixed_types=True)


def _figure(path: str) -> Any:
    import wandb

    if path.endswith(".svg"):
        return wandb.Html(Path(path).read_text(encoding="utf-8"), inject=False)
    return wandb.Image(path)


def read_records(path: Path) -> Iterator[bytes]:
    """Yield the serialized records of a .wandb file; a truncated last one is left out."""
    data, record, at = path.read_bytes(), b"", HEADER_BYTES
    while at + HEADER_BYTES <= len(data):
        room = BLOCK_BYTES - at % BLOCK_BYTES
        if room < HEADER_BYTES:
            at += room
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        at += HEADER_BYTES + size
        record += data[at - size : at]
        if kind in (1, 4) and at <= len(data):  # a whole record, or the last part of one
            yield record
            record = b""


def await_end(path: Path) -> None:
    """Return when a .wandb file holds the record that ends a run; an `OSError` after 2 s.

    wandb's finish() can be ahead of its own writer, and a full disk is told to wandb's log only.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    limit = time.monotonic() + FLUSH_SECONDS
    while time.monotonic() < limit:
        last = list(read_records(path))[-3:]
        if "exit" in (Record.FromString(data).WhichOneof("record_type") for data in last):
            return
        time.sleep(0.02)
    raise OSError(f"the run's file stayed incomplete; is the disk full? ({path.parents[3]})")


def main() -> None:
    """Serve messages until stdin closes."""
    # wandb looks for inputs of W&B Launch and does without them: a fifth of an offline run's cost.
    sys.modules["wandb.sdk.launch"] = None  # type: ignore[assignment]
    gc.disable()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    run = None
    try:
        for line in sys.stdin:
            signal.alarm(HANG_SECONDS)
            message = json.loads(line)
            do = message.pop("do")
            if do == "open":
                if run is not None:
                    raise RuntimeError("a live run is still open")
                run = open_run(**message)
            elif do == "log":
                run.log(message["metrics"], step=message["step"])
            else:
                answers.write(json.dumps({"folder": close_run(run, **message)}) + "\n")
                run = None
            signal.alarm(0)
    except BaseException as error:
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        os._exit(1)
    if run is None and "wandb" in sys.modules:
        sys.modules["wandb"].teardown()
    os._exit(0)  # an open run's caller is gone: it stays unfinished


if __name__ == "__main__":
    main()
