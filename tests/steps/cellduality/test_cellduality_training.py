"""CellDuality's training: interruption, what decides it, processes, what it shows."""

import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from contextlib import contextmanager
from pathlib import Path

import pytest
from cellduality_runs import ROWS, trained
from job_helpers import Killed, contents
from safetensors.numpy import load_file

from steps.cellduality.plan import ADAPTER_FILES
from steps.cellduality.vocabulary import TASKS
from steps.shared import runtime, tracking
from steps.shared.runtime import read_csv

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("row", "step"), [("sft", 3), ("cellduality", 3)])
def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch, row, step):
    from transformers import Trainer

    inner, done = Trainer.training_step, []

    def killing(trainer, *args, **kwargs):
        if Path(trainer.args.output_dir).parent.name == row and trainer.state.global_step == step:
            raise Killed
        return inner(trainer, *args, **kwargs)

    def counting(trainer, *args, **kwargs):
        done.append((Path(trainer.args.output_dir).parent.name, trainer.state.global_step))
        return inner(trainer, *args, **kwargs)

    rows = {name: ROWS[name] for name in ("base", "sft", "cellduality")}
    out = f"broken_{row}"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "training_step", killing)
        with pytest.raises(Killed):
            trained(out, rows)
        patch.setattr(Trainer, "training_step", counting)
        trained(out, rows)
    assert min(update for name, update in done if name == row) == 2  # the checkpoint
    for name in rows:
        assert contents(Path(out) / name) == contents(Path("train") / name), name


def test_rows_of_a_seed_start_from_the_same_model_and_move(work):
    base = load_file("train/base/seed0/model.safetensors")
    sft = load_file("train/sft/seed0/model.safetensors")
    assert any((base[key] != sft[key]).any() for key in base)
    one, two = (
        load_file(f"train/{row}/seed0/adapter_model.safetensors")
        for row in ("rl_gt", "cellduality")
    )
    assert set(one) == set(two)
    for key in one:
        assert one[key].shape == two[key].shape
    assert any((one[key] != two[key]).any() for key in one)  # other rewards
    first = [read_csv(f"train/{row}/seed0/history.csv")[0] for row in ("rl_gt", "cellduality")]
    for name in ("completions/mean_length", "completions/clipped_ratio"):
        assert first[0][name] == first[1][name]  # both have drawn the same from the same model


@pytest.mark.parametrize("key", ["beta1", "beta2"])
def test_a_declared_beta_decides_what_is_trained(work, key):
    other = {**ROWS["sft"], "sft": {**ROWS["sft"]["sft"], "steps": 3, key: 0.5}}
    usual = {**ROWS["sft"], "sft": {**ROWS["sft"]["sft"], "steps": 3}}
    trained(key, {"base": ROWS["base"], "usual": usual, "other": other})
    one, two = (load_file(f"{key}/{row}/seed0/model.safetensors") for row in ("usual", "other"))
    assert any((one[name] != two[name]).any() for name in one)


def test_a_frozen_dual_stays_that_of_sft_and_the_policy_s_own_does_not(work):
    rows = {name: ROWS[name] for name in ("base", "sft")}
    trained("frozen", {**rows, "frozen_dual": {**ROWS["cellduality"], "dual": "frozen"}})
    frozen, current = (
        read_csv(f"{path}/seed0/history.csv")
        for path in ("frozen/frozen_dual", "train/cellduality")
    )
    assert frozen[0]["reward"] == current[0]["reward"]  # before the first update
    for name, stays in ((frozen, True), (current, False)):
        tested = [[line[f"dual_{task}"] for task in TASKS] for line in name if line["dual_drug"]]
        assert len(tested) == 3 and (tested[0] == tested[-1]) is stays


def test_two_processes_train_every_stage(work):
    rows = {name: ROWS[name] for name in ("base", "sft", "cellduality")}
    adapted = {**rows["sft"], "sft_lora": {"rank": 2, "alpha": 4.0}}
    rows |= {"adapted": adapted, "from_its_merge": {**rows["cellduality"], "start": "adapted"}}
    launch = ["--cpu", "--num_processes", "2", "--num_machines", "1", "--main_process_port", "0"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "--module"]
    step = ["steps.cellduality.train", "--config", json.dumps({"rows": rows}), "--rows", *rows]
    step += ["--data", "prepare/seed0/manifest.json", "--out", "two"]
    done = subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", *launch, *step],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        **{"capture_output": True, "text": True, "timeout": 300},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(Path("state").glob("*"))
    for row in ("adapted", "from_its_merge", "cellduality"):
        assert set(contents(f"two/{row}/seed0")) == {*ADAPTER_FILES, "history.csv"}
    for row in ("adapted", "cellduality"):
        adapter = load_file(f"two/{row}/seed0/adapter_model.safetensors")
        moved = [value for name, value in adapter.items() if "lora_B" in name]
        assert moved and all(value.any() for value in moved)
    assert contents("two/base/seed0") == contents("train/base/seed0")


def test_history_has_the_reward_its_parts_and_the_dual_on_real_cells(work):
    lines = read_csv("train/cellduality/seed0/history.csv")
    assert [int(line["step"]) for line in lines] == [1, 2, 3, 4]
    for task in TASKS:
        assert any(line[f"reward_{task}"] for line in lines)
    assert [bool(line["dual_generation"]) for line in lines] == [True, True, False, True]
    rewards = [float(line["reward"]) for line in lines if line["reward"]]
    assert len(rewards) == 2 and all(0 <= reward <= 1 for reward in rewards)  # a batch, two updates


def test_training_says_how_far_it_is_and_logs_its_history_live(work, monkeypatch, capfd):
    logged: dict[str, list] = {}

    @contextmanager
    def recording(row, **run):
        logged[row] = []
        yield Namespace(log=lambda step, metrics: logged[row].append({"step": step, **metrics}))

    rows = {name: ROWS[name] for name in ("base", "sft", "cellduality")}
    with monkeypatch.context() as patch:
        patch.setattr(tracking, "open_run", recording)
        patch.setattr(runtime, "LOG_EVERY_SECONDS", 0.0)
        trained("shown", rows)
    shown = re.findall(
        r"^cellduality (\w+) seed 0: (\d+)/(\d+), about", capfd.readouterr().err, re.M
    )
    sft, grpo = [str(i) for i in range(1, 41)], [str(i) for i in range(1, 5)]
    assert shown == [("sft", i, "40") for i in sft] + [("cellduality", i, "4") for i in grpo]
    assert logged.pop("base") == []
    for row, live in logged.items():
        history = read_csv(f"shown/{row}/seed0/history.csv")
        assert [{k: v for k, v in line.items() if v} for line in history] == [
            {k: str(v) for k, v in line.items()} for line in live
        ]
        assert contents(f"shown/{row}") == contents(f"train/{row}")
