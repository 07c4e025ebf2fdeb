"""A training job launched as two processes: one set of outputs, the same as from one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from n2l_runs import TRAIN, prepared, trained
from safetensors.torch import load_file

from steps.shared.runtime import read_csv

ROOT = Path(__file__).resolve().parents[3]


def test_two_processes_leave_the_outputs_of_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = prepared()
    one, two = trained("one", micro_batch=4), Path("two")
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "--num_processes", "2"]
    launch += ["--main_process_port", "0", "--module", "steps.n2l.train", "--row", "digits"]
    config = json.dumps({**TRAIN, "micro_batch": 4})
    done = subprocess.run(
        [sys.executable, *launch, "--config", config, "--data", data, "--out", two],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(Path("state").iterdir()) == []
    assert sorted(path.name for path in one.iterdir()) == sorted(p.name for p in two.iterdir())
    for name in ("learn.safetensors", "test.safetensors"):
        found = load_file(two / name)
        for key, value in load_file(one / name).items():
            torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-5, msg=key)
    losses = [[float(x["train_loss"]) for x in read_csv(f / "history.csv")] for f in (one, two)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
