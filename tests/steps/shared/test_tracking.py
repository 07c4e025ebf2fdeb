"""W&B as a mirror: what a run holds, that reruns replace it, and that no failure reaches a job."""

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from tracked_runs import CONFIG, KEY, RUN, folders, log

from steps.shared import tracking, tracking_worker
from steps.shared.config import StepConfig

pytestmark = pytest.mark.usefixtures("own_wandb")
ROOT = Path(__file__).resolve().parents[3]
# A job as a step would be, run from the checkout's root; argv: rows of history, runs.
JOB = """
import sys
from pathlib import Path
from steps.shared.tracking import log_run
rows, runs = map(int, sys.argv[1:])
history = Path("HISTORY")
history.write_text("step,loss\\n" + "".join(f"{i},{i / 7!r}\\n" for i in range(rows)))
for seed in range(runs):
    log_run(scale="mini", paper="wsm", phase="train", row="alpha", seed=seed, config={},
            history=history, summary={})
print("job done")
"""


def read_offline_run(folder: Path) -> dict[str, Any]:
    """Return what a .wandb file holds, by wandb's own record definitions."""
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = folder.glob("*.wandb")
    found: dict[str, Any] = {"history": [], "summary": {}, "exit": None}
    for data in tracking_worker.read_records(file):
        record = Record.FromString(data)
        if record.HasField("run"):
            run = record.run
            found |= {"id": run.run_id, "name": run.display_name, "group": run.run_group}
            found |= {"job_type": run.job_type, "host": run.host, "project": run.project}
            found["config"] = _values(run.config.update)
        elif record.HasField("history"):
            found["history"].append(_values(record.history.item))
        elif record.HasField("summary"):
            found["summary"] |= _values(record.summary.update)
        elif record.HasField("exit"):
            found["exit"] = record.exit.exit_code
    return found


def _values(items: Any) -> dict[str, Any]:
    keyed = {(item.key or ".".join(item.nested_key)): json.loads(item.value_json) for item in items}
    step = {"step": keyed["_step"]} if "_step" in keyed else {}
    return step | {key: value for key, value in keyed.items() if not key.startswith("_")}


def job(
    tmp_path: Path, *, rows: int = 3, runs: int = 2, before: str = "", **env: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run JOB and return how it ended and its wall seconds."""
    code = before + JOB.replace("HISTORY", str(tmp_path / "history.csv"))
    command = [sys.executable, "-c", code, str(rows), str(runs)]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )
    return done, time.monotonic() - start


def assert_harmless(done: subprocess.CompletedProcess[str], seconds: float, reason: str) -> None:
    """Check that the job ended well within 20 s and said once why W&B has nothing."""
    assert (done.returncode, done.stdout) == (0, "job done\n")
    assert seconds < 20
    (line,) = done.stderr.splitlines()
    assert line.startswith("tracking: not mirrored in W&B") and reason in line


def test_id_is_of_the_run_and_not_of_its_phase_or_key_order() -> None:
    base = tracking.run_id(**RUN, config=CONFIG)
    assert len(base) == 16 and int(base, 16) >= 0
    assert tracking.run_id(**RUN, config=dict(reversed(CONFIG.items()))) == base
    changes = [{"scale": "paper"}, {"paper": "x"}, {"row": "beta"}, {"seed": 4}, {"config": {}}]
    ids = {tracking.run_id(**{**RUN, "config": CONFIG, **change}) for change in changes}
    assert len(ids | {base}) == 6


def test_offline_run_holds_the_files_and_a_rerun_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    name = tracking.run_id(**RUN, config=CONFIG)
    (tmp_path / "wandb" / f".staging-{name}" / "left by a killed job").mkdir(parents=True)
    history, table, figure = (tmp_path / file for file in ("history.csv", "t.csv", "f.svg"))
    table.write_text("row,x,mean\nalpha,,1.5\n7,2,\n")
    figure.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    history.write_text("step,loss\n0,9.0\n")
    log(history=history)
    (first,) = folders(tmp_path)[1:]  # beside the open staging folder
    history.write_text("step,loss,acc\n0,2.5,\n10,1.25,0.5\n20,0.1,\n")
    log(history=history, summary={"best": 0.3}, tables={"t": table}, figures={"f": figure})
    log(seed=4)
    tracking._close()

    assert capfd.readouterr().err == ""
    assert len(folders(tmp_path)) == 2
    assert not list((tmp_path / "temporary").iterdir())  # wandb's own would stay there
    (folder,) = (tmp_path / "wandb").glob(f"offline-run-*-{name}")
    run = read_offline_run(folder)
    media = {key: run["history"][-1].pop(key) for key in list(run["history"][-1]) if "." in key}
    assert run["history"] == [
        {"step": 0, "loss": 2.5},
        {"step": 10, "loss": 1.25, "acc": 0.5},
        {"step": 20, "loss": 0.1},
    ]
    assert run["config"] == CONFIG | RUN
    assert run["summary"]["best"] == 0.3 and run["summary"]["loss"] == 0.1
    assert (run["id"], run["name"], run["group"]) == (name, "alpha-seed3", "wsm")
    assert (run["job_type"], run["project"], run["exit"]) == ("train", "retable", 0)
    assert run["host"] == ""
    content = json.loads((folder / "files" / media["t.path"]).read_text())
    assert content["columns"] == ["row", "x", "mean"]
    assert content["data"] == [["alpha", None, 1.5], [7.0, 2.0, None]]
    assert (folder / "files" / media["f.path"]).read_text() == figure.read_text()
    assert first.endswith(name)


def test_disabled_never_imports_wandb(tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text("open(__file__ + '.seen', 'w'); raise ImportError('none')")
    seen = tmp_path / "wandb.py.seen"
    done, _ = job(tmp_path, WANDB_MODE="disabled", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "job done\n", "")
    assert not seen.exists() and not (tmp_path / "wandb").exists()

    # The same trap does spring offline, where a wandb that cannot be imported is one line.
    done, seconds = job(tmp_path, WANDB_MODE="offline", PYTHONPATH=str(tmp_path))
    assert seen.exists()
    assert_harmless(done, seconds, "ImportError: none")


def test_unreachable_server_costs_one_line(tmp_path: Path) -> None:
    env = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": KEY, "WANDB_MODE": "online"}
    assert_harmless(*job(tmp_path, **env), "connection refused")
    assert folders(tmp_path) == []


def test_missing_key_costs_one_line(tmp_path: Path) -> None:
    assert_harmless(*job(tmp_path, WANDB_MODE="online"), "No API key")


def test_unknown_mode_costs_one_line(tmp_path: Path) -> None:
    assert_harmless(*job(tmp_path, WANDB_MODE="ofline"), "must be one of offline, online")


def test_a_run_that_cannot_be_written_whole_is_not_kept(tmp_path: Path) -> None:
    # A limit on file sizes fails wandb's writes half-way, as a full disk does.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))\n"
    assert_harmless(*job(tmp_path, rows=1000, before=limit, WANDB_MODE="offline"), "disk full")
    assert folders(tmp_path) == []


def test_a_file_in_place_of_the_folder_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "wandb").write_text("")
    assert_harmless(*job(tmp_path, WANDB_MODE="offline"), "Not a directory")


def test_an_error_of_the_job_is_not_swallowed_by_a_live_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(ZeroDivisionError), tracking.open_run(**RUN, phase="t", config={}) as live:
        live.log(0, {"loss": 1.0})
        raise ZeroDivisionError
    assert tracking._worker is None  # offline, live logging is nothing


def test_history_must_start_with_step(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text("epoch,loss\n1,0.5\n")
    with pytest.raises(ValueError, match="first column is 'epoch'"):
        list(tracking_worker.read_history(str(tmp_path / "history.csv")))


def test_a_training_job_is_named_by_its_flags_and_configuration():
    class Config(StepConfig):
        rate: float

    flags = Namespace(scale="mini", seed=3, threads=2)
    run = tracking.training_run(flags, paper="wsm", row="alpha", config=Config(rate=0.1))
    assert run == {**RUN, "phase": "train", "config": {"rate": 0.1}}
