"""A training job launched as two processes: one set of outputs, the same as from one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import wsm_runs

from steps.shared.checkpoints import load_model
from steps.shared.runtime import read_csv
from steps.wsm.plan import checkpoint_name

ROOT = Path(__file__).resolve().parents[3]
TRUNK = {**wsm_runs.TRUNK, "micro_batch": 2}
BRANCH = {**wsm_runs.BRANCH, **TRUNK, "decay": "linear"}


@pytest.fixture
def work(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("general", "anneal", "validation"):
        np.save(tmp_path / f"{name}.npy", rng.integers(0, 16, 300).astype(np.uint16))
    (tmp_path / "manifest.json").write_text('{"vocabulary": 16}')
    return tmp_path


def run(work: Path, out: str, processes: int, config: dict, *flags: str) -> None:
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "--module"]
    if processes > 1:
        launch += ["--num_processes", str(processes), "--main_process_port", "0"]
    command = ["steps.wsm.train", "--config", json.dumps(config), "--data", "manifest.json"]
    command += ["--validation", "validation.npy", "--out", out, "--scale", "smoke", *flags]
    done = subprocess.run(
        [sys.executable, *launch, *command],
        cwd=work,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "WANDB_MODE": "disabled",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_two_processes_leave_the_outputs_of_one(work):
    for processes in (1, 2):
        run(work, f"trunk{processes}", processes, TRUNK, "--tokens", "general.npy")
        start = ["--row", "wsd_linear", "--trunk", f"trunk{processes}/state.safetensors"]
        run(work, f"row{processes}", processes, BRANCH, "--tokens", "anneal.npy", *start)
    one, two = (work / f"row{processes}" for processes in (1, 2))
    assert sorted(path.name for path in one.iterdir()) == sorted(p.name for p in two.iterdir())
    assert list((work / "state").iterdir()) == []
    for update in (8, 10):
        models = [load_model(folder / checkpoint_name(update)) for folder in (one, two)]
        for name, value in models[0].items():
            torch.testing.assert_close(models[1][name], value, rtol=1e-4, atol=1e-6, msg=name)
    losses = [[float(r["train_loss"]) for r in read_csv(f / "history.csv")] for f in (one, two)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
