"""Seeded streams, reproducible files, the identity of a job, what a step prints."""

import json
import os
import pty
import subprocess
import sys
import termios
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.shared import runtime
from steps.shared.config import StepConfig
from steps.shared.job_state import job_key
from steps.shared.runtime import InputError, stream

ROOT = Path(__file__).resolve().parents[3]


def draws(*key) -> list[int]:
    return stream(*key).integers(2**62, size=4).tolist()


# random streams
# --------------
def test_a_stream_is_decided_by_paper_purpose_and_seed_alone():
    assert draws("wsm", "data", 0) == draws("wsm", "data", 0)
    others = [("wsn", "data", 0), ("wsm", "init", 0), ("wsm", "data", 1)]
    assert len({tuple(draws(*key)) for key in [("wsm", "data", 0), *others]}) == 4
    with pytest.raises(TypeError):
        stream("wsm", "data", 0, "row")


def test_a_stream_is_the_same_in_another_process():
    code = "from steps.shared.runtime import stream; print(stream('wsm','data',7).integers(2**62))"
    env = {**os.environ, "PYTHONHASHSEED": "123"}
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True)
    assert int(found.stdout) == stream("wsm", "data", 7).integers(2**62)


# files
# -----
def test_json_has_one_form(tmp_path):
    runtime.write_json(tmp_path / "a", {"b": [0.1, "é"], "a": 1})
    runtime.write_json(tmp_path / "b", {"a": 1, "b": [0.1, "é"]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_text("utf-8") == '{\n "a": 1,\n "b": [\n  0.1,\n  "é"\n ]\n}\n'
    assert runtime.read_json(tmp_path / "a") == {"a": 1, "b": [0.1, "é"]}
    for name, text in (("broken", "{"), ("missing", None)):
        if text:
            (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=f"{name}: not a readable JSON file"):
            runtime.read_json(tmp_path / name)


@given(value=st.floats(allow_nan=False))
def test_floats_survive_a_csv_file_exactly(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "floats.csv"
    runtime.write_csv(path, ["x", "y"], [{"x": value, "y": np.float64(value)}])
    (row,) = runtime.read_csv(path)
    assert (float(row["x"]), float(row["y"])) == (value, value)


def test_a_csv_file_has_the_given_columns_and_plain_line_ends(tmp_path):
    runtime.write_csv(tmp_path / "a", ["b", "a"], [{"a": 1, "b": None}, {"a": "x,y", "b": 0.5}])
    assert (tmp_path / "a").read_bytes() == b'b,a\n,1\n0.5,"x,y"\n'
    with pytest.raises(ValueError, match="fieldnames"):
        runtime.write_csv(tmp_path / "a", ["a"], [{"z": 1}])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "must begin with a line of column names"),
        (b"a,b\n1\n", "record 1 must have 2 cells"),
        (b"a,b\n1,2\n1,2,3\n", "record 2 must have 2 cells"),
        (b"a,b\n\xff,2\n", "not a readable CSV file"),
        (b'a,b\n"1,2\n', "not a readable CSV file"),
    ],
)
def test_a_csv_file_that_is_none_is_refused_in_one_line(tmp_path, content, said):
    if content is not None:
        (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=said) as refused:
        runtime.read_csv(tmp_path / "a.csv")
    assert "a.csv" in str(refused.value) and "\n" not in str(refused.value)


# jobs
# ----
class Config(StepConfig):
    rate: float


def key_of(path, *, module="steps.wsm.plan", rate=0.1, row="r", **flags):
    args = Namespace(**{"seed": 0, "scale": "mini", "threads": 1, **flags})
    return job_key(module, args, paper="p", row=row, config=Config(rate=rate), inputs=[path])


def test_whatever_decides_a_result_enters_the_job_key(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    keys = [
        key_of(one),
        key_of(two),
        key_of(one, rate=0.2),
        key_of(one, seed=1),
        key_of(one, scale="smoke"),
        key_of(one, threads=2),
        key_of(one, row="s"),
        key_of(one, module="steps.wsm.curves"),
    ]
    assert len({runtime.fingerprint(key) for key in keys}) == len(keys)
    two.write_bytes(b"1")  # the bytes count, not the name
    assert key_of(two) == keys[0]
    assert json.loads(json.dumps(keys[0])) == keys[0]


def test_a_fingerprint_ignores_the_order_of_keys():
    assert runtime.fingerprint({"a": 1, "b": 2}) == runtime.fingerprint({"b": 2, "a": 1})
    assert runtime.fingerprint({"a": 1, "b": 2}) != runtime.fingerprint({"a": 2, "b": 1})


# what a step prints
# ------------------
def step(body: str) -> list[str]:
    """Return the command of a step whose main is one line of code."""
    code = (
        "from steps.shared.runtime import InputError, run_step\n"
        f"def main():\n    {body}\nrun_step(main)"
    )
    return [sys.executable, "-c", code]


def run(body: str) -> subprocess.CompletedProcess:
    return subprocess.run(step(body), cwd=ROOT, capture_output=True, text=True)


def test_bad_input_is_one_line_and_exit_code_1():
    done = run("raise InputError('a.csv: no column x')")
    assert done.returncode == 1
    error, cost = done.stderr.splitlines()
    assert error == "error: a.csv: no column x"
    missing = run("open('nowhere/a.csv')")
    assert missing.returncode == 1
    assert missing.stderr.splitlines()[0] == "error: nowhere/a.csv: No such file or directory"
    assert cost.startswith("cost: ")


def test_a_defect_keeps_its_traceback_and_the_cost_is_logged():
    done = run("raise KeyError('x')")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "KeyError: 'x'" in done.stderr
    assert "cost: " in done.stderr


def test_the_cost_holds_the_work_of_children():
    burn = "t=time.process_time\nwhile t() < 0.4: pass"
    done = run(
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time;' + {burn!r}])"
    )
    assert done.returncode == 0
    _, seconds, *_, peak, unit = done.stderr.split()
    assert float(seconds) >= 0.4
    assert (float(peak) > 5, unit) == (True, "MiB")


def test_progress_logs_lines_and_passes_everything_on(monkeypatch, capsys):
    clock = iter(range(0, 1000, 3))  # three seconds an item: every second one gets a line
    monkeypatch.setattr(runtime.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    items = list(runtime.progress(iter("abcde"), total=7, label="work", start=2))
    assert items == list("abcde")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["work: 4/7, about 9 s left", "work: 6/7, about 3 s left"]


BARS = (
    "from tqdm import tqdm; from transformers.utils import logging;"
    "list(tqdm(range(3), desc='plain')); list(logging.tqdm(range(3), desc='loading'))"
)


def test_a_log_has_no_bars_of_other_packages():
    (line,) = run(BARS).stderr.splitlines()
    assert line.startswith("cost: ")


def test_a_terminal_has_them():
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 80))  # a bar of no width shows nothing
    subprocess.run(step(BARS), cwd=ROOT, stderr=end, check=True)
    os.close(end)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert "plain: 100%" in shown
    assert "loading: 100%" in shown
