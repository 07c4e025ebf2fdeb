"""CellDuality's phases on small tables: files, interruption, adapters, what is measured."""

import json
import os
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from cellduality_runs import ROWS, contents, evaluated, merged, prepared, trained
from safetensors.numpy import load_file, save_file

from steps.cellduality import evaluate, policy, questions, train
from steps.cellduality.plan import ADAPTER_FILES, SPECIALISTS, Files
from steps.cellduality.prompts import dual_of
from steps.cellduality.splits import SPLITS
from steps.cellduality.vocabulary import TASKS, Vocabulary
from steps.shared import runtime
from steps.shared.runtime import InputError, read_csv, read_json

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with all phases of four rows."""
    folder = tmp_path_factory.mktemp("cellduality")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("WANDB_MODE", "disabled")
        prepared()
        trained("train")
        evaluated("train", merged("train", "merge"), "runs")
    return folder


@pytest.fixture
def work(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    return made


# prepare
# -------
def test_preparing_twice_leaves_the_same_bytes(work):
    prepared("again")
    assert contents("again") == contents("prepare/seed0")
    note = read_json("again/manifest.json")
    assert note["sources"]["perturbation"].startswith("simulated")
    assert note["lengths"] == {
        **{"annotation": 6, "generation": 6},
        **{"drug": 5, "perturbation": 11},
    }


def test_parts_are_apart_and_of_their_splits(work):
    labelled, parts = questions.read(Path("prepare/seed0/questions.json"))
    arrays = load_file("prepare/seed0/arrays.safetensors")
    parts = {"labelled": [item.case for item in labelled], **parts}
    seen: dict[str, set] = {"annotation": set(), "drug": set(), "perturbation": set()}
    for name, cases in parts.items():
        for task, before in seen.items():
            places = {case.place for case in cases if case.question.task == task}
            assert places and not places & before
            before |= places
            key = {"annotation": "cells/split_N", "drug": "drugs/split_L"}.get(task)
            codes = arrays[key or "perturbations/split_N"][[place[0] for place in places]]
            wanted = "train" if name in ("labelled", "unlabelled") else name
            assert set(codes.tolist()) == {SPLITS.index(wanted)}


def test_no_prepared_question_has_a_hidden_item_in_its_dual(work):
    vocabulary = Vocabulary.read(Path("prepare/seed0/vocabulary.json"))
    labelled, parts = questions.read(Path("prepare/seed0/questions.json"))
    cases = [item.case for item in labelled] + [case for part in parts.values() for case in part]
    for case in cases:
        dual = dual_of(case.question, case.truth, "perturbation", vocabulary)
        _, hidden = case.question.parts()
        assert not set(hidden) & set(dual.prompt.split())
        assert bool(hidden) == (case.question.task in ("annotation", "drug"))


# train
# -----
def test_phases_leave_the_files_that_the_workflow_declares(work):
    train = {"common": {}, "rows": ROWS}
    paper = {"seeds": [0], "rows": list(ROWS), "train": train}
    files = Files({"papers": {"cellduality": paper}})

    def under(names, folder):
        return sorted(n.split(f"/{folder}/")[1].replace("{seed}", "0") for n in names)

    assert under(files.trained(), "train") == sorted(contents("train"))
    assert under(files.merged(), "merge") == sorted({*contents("merge")} - {"seed0/selection.json"})
    assert sorted(contents("runs")) == ["seed0.csv", "seed0_answers.json"]
    assert not list(Path("state").glob("*"))


class Killed(Exception):
    pass


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
        patch.setattr(train, "open_run", recording)
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


# merge
# -----
def test_a_merged_model_is_its_start_plus_the_product_of_the_adapter(work):
    start = load_file("train/sft/seed0/model.safetensors")
    adapter = load_file("train/cellduality/seed0/adapter_model.safetensors")
    found = load_file("merge/cellduality/seed0/model.safetensors")
    assert set(found) == set(start)
    moved = 0
    for key, value in start.items():
        stem = f"base_model.model.{key.removesuffix('.weight')}"
        if f"{stem}.lora_A.weight" in adapter:
            down, up = (adapter[f"{stem}.lora_{side}.weight"] for side in "AB")
            value = value + 4.0 / 2 * up @ down
            moved += 1
        np.testing.assert_allclose(found[key], value, atol=1e-6)
    assert moved == 7  # all linear layers of the one block
    assert read_json("merge/seed0/selection.json")["sft"]["folder"] == "../../train/sft/seed0"
    assert read_json("train/cellduality/seed0/adapter_config.json")["base_model_name_or_path"] == (
        "../../sft/seed0"
    )


def test_an_adapter_that_lacks_a_tensor_is_refused_and_not_filled_up(work):
    own = Path("train/cellduality/seed0")
    shutil.copytree(own, "odd/cellduality/seed0")
    path = Path("odd/cellduality/seed0/adapter_model.safetensors")
    tensors = load_file(path)
    tensors.pop(next(name for name in tensors if "lora_B" in name))
    save_file(tensors, path)
    with pytest.raises(InputError, match="odd/cellduality/seed0: not an adapter.*1 tensors differ"):
        policy.merged(Path("train/sft/seed0"), path.parent)


def test_an_adapter_before_its_start_is_refused(work):
    rows = {name: ROWS[name] for name in ("cellduality", "sft")}
    with pytest.raises(InputError, match="--starts sft: cellduality has an adapter on it"):
        merged("train", "elsewhere", rows)


# evaluate
# --------
def test_every_row_is_measured_where_it_takes_part(work):
    runs = read_csv("runs/seed0.csv")
    names = [(r["table"], r["dataset"], r["split"], r["row"], r["metric"]) for r in runs]
    assert len(set(names)) == len(names)
    value = dict(zip(names, (float(r["value"]) for r in runs), strict=True))
    main = {row for table, _, _, row, _ in names if table == "main"}
    assert main == {"base", "sft", "rl_gt", "cellduality", "logistic", "knn", "mean_shift"}
    assert not any(table == "ablations" for table, *_ in names)  # this seed has not all of them
    assert value["main", "annotation", "test", "logistic", "accuracy"] > 50
    assert ("main", "annotation", "test", "mean_shift", "accuracy") not in value
    assert value["main", "perturbation", "ood", "mean_shift", "delta_pearson"] > 0.2
    for task in TASKS:
        assert value["identities", task, "test", "cellduality", "label_error"] == 0
    assert value["identities", "drug", "test", "cellduality", "leaked"] == 0
    assert value["rewards", "annotation", "train", "cellduality", "reward_last"] >= 0


def test_evaluating_twice_leaves_the_same_bytes(work):
    evaluated("train", Path("merge/seed0/selection.json"), "again_runs")
    assert contents("again_runs") == contents("runs")


@pytest.mark.parametrize("row", ["base", "cellduality"])
def test_an_evaluation_killed_after_a_row_continues_to_the_same_bytes(work, monkeypatch, row):
    inner, tested = evaluate.Test.row, []

    def killing(test, name):
        if tested and tested[-1] == row:
            raise Killed
        tested.append(name)
        return inner(test, name)

    def counting(test, name):
        tested.append(name)
        return inner(test, name)

    out = f"broken_runs_{row}"
    with monkeypatch.context() as patch:
        patch.setattr(evaluate.Test, "row", killing)
        with pytest.raises(Killed):
            evaluated("train", Path("merge/seed0/selection.json"), out)
        assert not Path(out).exists()
        patch.setattr(evaluate.Test, "row", counting)
        evaluated("train", Path("merge/seed0/selection.json"), out)
    assert tested == [*ROWS, *SPECIALISTS]  # each once
    assert contents(out) == contents("runs")
    assert not list(Path("state").glob("*"))
