"""CellDuality's phases on small tables: files, interruption, adapters, what is measured."""

import shutil
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cellduality_runs import ROWS, evaluated, merged, prepared
from job_helpers import Killed, contents
from safetensors.numpy import load_file, save_file

from steps.cellduality import evaluate, policy, questions
from steps.cellduality.plan import SPECIALISTS, Files
from steps.cellduality.prompts import dual_of
from steps.cellduality.splits import SPLITS
from steps.cellduality.vocabulary import TASKS, Vocabulary
from steps.shared.runtime import InputError, read_csv, read_json, write_csv

ROOT = Path(__file__).resolve().parents[3]


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
    history = read_csv("train/cellduality/seed0/history.csv")
    for task in TASKS:
        rewards = [float(line[f"reward_{task}"]) for line in history if line[f"reward_{task}"]]
        assert 0 < len(rewards) < 20  # a tenth is one line
        found = value["rewards", task, "train", "cellduality", "reward_last"]
        assert found == pytest.approx(100 * rewards[-1])


def test_rewards_are_means_of_the_first_and_the_last_tenth_of_the_history(tmp_path):
    """Of 30 lines every third has no rewards, as when no question of a task was in the batch."""
    columns = [f"reward_{task}" for task in TASKS]
    for shift, row in enumerate(evaluate.REWARDED):
        lines = [
            {"step": step, **dict.fromkeys(columns, (step + shift) / 100 if step % 3 else "")}
            for step in range(1, 31)
        ]
        write_csv(tmp_path / row / "seed4/history.csv", ["step", *columns], lines)
    test = SimpleNamespace(args=Namespace(trained=tmp_path, seed=4))
    lines = evaluate.Test.rewards(test)
    value = {(line["row"], line["dataset"], line["metric"]): line["value"] for line in lines}
    assert len(value) == len(lines) == 2 * 2 * len(TASKS)
    # of 20 rewards the first two are of updates 1 and 2, the last two of 28 and 29
    for shift, row in enumerate(evaluate.REWARDED):
        for task in TASKS:
            assert value[row, task, "reward_first"] == pytest.approx(1.5 + shift)
            assert value[row, task, "reward_last"] == pytest.approx(28.5 + shift)


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
