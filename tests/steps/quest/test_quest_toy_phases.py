"""The phases of the toy on a tiny grid: files, the same bytes, interruption, measures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from steps.quest import evaluate, merge, prepare, toy, toy_evaluate, toy_train, train
from steps.quest.plan import Files
from steps.quest.stacked import Stack
from steps.quest.toy_config import Toy, ToyMeasures, column, grid, parse_column
from steps.shared.runtime import InputError, read_csv, read_json, sha256_file

ROWS = ["standard", "qknorm_hs", "qknorm_ds", "quest"]
PROBLEM = {
    **{"num_tokens": 4, "dim": 3, "num_answers": 5, "answer_sd": 3.0, "bias_norm": 3.0},
    **{"bias_variance": 0.1, "biased_share": 0.5, "num_test": 30},
}
TOY = {
    **{
        "num_seeds": 1,
        "rows": {"minimal": ROWS, "full": ROWS},
        "width": 4,
        "layers": 2,
        "heads": 2,
    },
    **{"learning_rates": [0.01, 0.1], "weight_decays": [0.0, 0.1], "beta1": 0.9, "beta2": 0.99},
    **{
        "steps": {"minimal": 4, "full": 4},
        "batch_size": 8,
        "num_probe": 16,
        "log_every": 2,
        "checkpoint_every": 2,
    },
}
MEASURES = {"success_accuracy": 0.5, "num_maps": 2}
DATA = "prepare/toy.json"


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with prepared data, in which jobs run."""
    monkeypatch.chdir(tmp_path)
    config = json.dumps({"toy": PROBLEM})
    prepare.main(["--task", "toy", "--config", config, "--out", "prepare"])
    return tmp_path


def run(out: str, *rows: str, seed: int = 0, **changes) -> Path:
    config = json.dumps({"toy": {**TOY, **changes}})
    flags = ["--task", "toy", "--config", config, "--data", DATA, "--seed", str(seed)]
    train.main([*flags, "--rows", *(rows or ("standard", "quest")), "--out", out])
    return Path(out)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# prepare and train
# -----------------
def test_preparing_twice_leaves_the_same_bytes(work):
    first = contents(work / "prepare")
    prepare.main(["--task", "toy", "--config", json.dumps({"toy": PROBLEM}), "--out", "again"])
    assert contents(work / "again") == first
    problem, bias, tests = toy.load(Path(DATA))
    assert problem.model_dump() == PROBLEM
    assert np.linalg.norm(bias) == pytest.approx(3)
    assert tests["biased"].biased_B.all() and not tests["robust"].biased_B.any()
    assert read_json(DATA)["sha256"] == sha256_file("prepare/toy.safetensors")


def test_a_job_leaves_the_files_that_the_workflow_declares_for_each_row(work):
    folder = run("out")
    rows = {"standard": {"tasks": ["toy"]}, "quest": {"tasks": ["toy"]}}
    block = {"rows": [*rows], "train": {"common": {"toy": TOY}, "rows": rows}}
    declared = Files({"scale": "mini", "papers": {"quest": block}}).trained("toy")
    names = [name.format(scale="mini", seed=0) for name in declared]
    names = [name.removeprefix("results/mini/quest/train/toy/") for name in names]
    assert sorted(contents(folder)) == sorted(names)
    assert len(declared) == 6
    for row in ("standard", "quest"):
        lines = read_csv(folder / row / "seed0" / "history.csv")
        assert [line["step"] for line in lines] == ["0", "2", "4"]
        # 2 forms x 4 grid points x 3 metrics
        assert len(lines[0]) == 1 + 24
        for form in ("minimal", "full"):
            losses = [float(lines[-1][column(form, *point, "loss")]) for point in grid(Toy(**TOY))]
            assert len(set(losses)) == 4
    assert list(Path("state").iterdir()) == []


def test_a_row_trains_in_the_forms_that_name_it(work):
    folder = run("out", rows={"minimal": ["quest", "standard"], "full": ["standard"]})
    assert not (folder / "quest/seed0/full.safetensors").exists()
    assert (folder / "standard/seed0/full.safetensors").exists()
    assert len(read_csv(folder / "quest/seed0/history.csv")[0]) == 1 + 12


def test_a_form_may_be_shorter_than_the_other(work):
    folder = run("out", "quest", steps={"minimal": 2, "full": 6}) / "quest/seed0"
    config = Toy(**TOY)
    found = {
        f: toy_train.read_history(folder / "history.csv", config, f, "loss") for f in TOY["rows"]
    }
    assert {form: updates.tolist() for form, (updates, _) in found.items()} == {
        "minimal": [0, 2],
        "full": [0, 2, 4, 6],
    }


def test_the_same_job_leaves_the_same_bytes_whatever_rows_share_it(work):
    together, alone = contents(run("one")), contents(run("two", "quest"))
    assert alone == {name: data for name, data in together.items() if name.startswith("quest")}


def test_rows_of_a_seed_see_the_same_samples(work, monkeypatch):
    seen: dict[tuple, list] = {}
    step = Stack.step

    def spied(stack, loss):
        def recorded(own):
            forward = own.forward

            def spied_forward(*inputs):
                seen.setdefault(key, []).append([part.tolist() for part in inputs])
                return forward(*inputs)

            monkeypatch.setattr(own, "forward", spied_forward)
            value = loss(own)
            monkeypatch.setattr(own, "forward", forward)
            return value

        part = getattr(stack.model, "blocks", [stack.model])[0]
        key = (type(stack.model).__name__, part.row)
        return step(stack, recorded)

    monkeypatch.setattr(Stack, "step", spied)
    run("out", "standard", "qknorm_ds", "quest")
    first = seen["Full", "standard"]
    assert len(seen) == 6 and len(first) == 4
    assert all(batches == first for batches in seen.values())
    assert first[0] != first[1]
    seen.clear()
    run("other", "quest", seed=1)
    assert seen["Full", "quest"][0] != first[0]


class Killed(Exception):
    pass


@pytest.mark.parametrize("count", [3, 6, 15])
def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch, count):
    whole = contents(run("whole"))
    step, done = Stack.step, []

    def killing(stack, loss):
        done.append(1)
        if len(done) == count:
            raise Killed
        return step(stack, loss)

    monkeypatch.setattr(Stack, "step", killing)
    with pytest.raises(Killed):
        run("broken")
    before = len(done) - 1
    done.clear()
    monkeypatch.setattr(Stack, "step", lambda s, loss: (done.append(1), step(s, loss))[1])
    assert contents(run("broken")) == whole
    # 2 rows x 2 forms x 4 updates, of which only those since the last checkpoint are repeated
    assert len(done) == 16 - before // 2 * 2
    assert list(Path("state").iterdir()) == []


# merge and evaluate
# ------------------
def test_merge_selects_every_row_by_hash_and_names_one_that_is_missing(work):
    run("out")
    merge.main(["--runs", "out", "--rows", "standard", "quest", "--out", "merge/seed0"])
    selection = read_json("merge/seed0/selection.json")
    assert list(selection) == ["quest", "standard"]
    entry = selection["quest"]
    folder = Path("merge/seed0") / entry["folder"]
    assert entry["sha256"]["full.safetensors"] == sha256_file(folder / "full.safetensors")
    with pytest.raises(InputError, match="out/qnorm/seed0: holds no trained model"):
        merge.main(["--runs", "out", "--rows", "qnorm", "--out", "merge/seed0"])


def test_evaluate_measures_what_the_tables_declare(work):
    run("out")
    merge.main(["--runs", "out", "--rows", "standard", "quest", "--out", "merge"])
    config = json.dumps({"toy": MEASURES})
    flags = ["--task", "toy", "--config", config, "--data", DATA]
    evaluate.main([*flags, "--selection", "merge/selection.json", "--out", "evaluate"])
    runs = read_csv("evaluate/toy_seed0.csv")
    cells = {(run["table"], run["row"]) for run in runs}
    tables = ("toy", "toy_network", "toy_rate")
    assert cells == {(table, row) for table in tables for row in ("standard", "quest")}
    assert all(math.isfinite(float(run["value"])) for run in runs)
    value = {(r["table"], r["dataset"], r["row"], r["split"], r["metric"], r["x"]): r for r in runs}
    assert len(value) == len(runs)
    errors = [float(run["value"]) for run in runs if run["metric"] == "identity_error"]
    assert len(errors) == 1 and errors[0] < 1e-5
    # the mean over rates is the mean over the grid
    key = ("full", "quest", "robust", "accuracy")
    by_rate = [float(value["toy_rate", *key, str(rate)]["value"]) for rate in (0.01, 0.1)]
    assert float(value["toy_network", *key, ""]["value"]) == pytest.approx(sum(by_rate) / 2)
    maps = read_csv("evaluate/toy_seed0_maps.csv")
    assert len(maps) == 2 * 2 * 2 * 2 * 4  # rows, forms, kinds, samples, tokens
    assert sum(int(line["is_answer"]) for line in maps) == 16


def test_a_trained_stack_comes_back(work):
    folder = run("out", "qknorm_hs") / "qknorm_hs" / "seed0"
    problem, _, tests = toy.load(Path(DATA))
    stack, config = toy_evaluate.load_stack(
        folder / "full.safetensors", "full", "qknorm_hs", problem
    )
    assert config.model_dump() == TOY
    data = toy_train.load_data(Path(DATA), config, 0)
    loss = toy_train.losses(stack, data.probe)[0].tolist()
    _, history = toy_train.read_history(folder / "history.csv", config, "full", "loss")
    assert loss == pytest.approx(history[-1].tolist(), rel=1e-6)
    (folder / "full.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match="full.safetensors: not a toy grid"):
        toy_evaluate.load_stack(folder / "full.safetensors", "full", "qknorm_hs", problem)


def test_a_model_that_diverged_answers_wrongly_and_spoils_no_other(work):
    folder = run("out", "quest") / "quest" / "seed0"
    problem, _, tests = toy.load(Path(DATA))
    stack, _ = toy_evaluate.load_stack(folder / "minimal.safetensors", "minimal", "quest", problem)
    before = toy_evaluate.measure(stack, tests)
    with torch.no_grad():
        stack.weights_MP[1] = torch.nan
    after = toy_evaluate.measure(stack, tests)
    for split in tests:
        assert after.accuracy[split][1] == 0
        assert (
            np.delete(after.accuracy[split], 1).tolist()
            == np.delete(before.accuracy[split], 1).tolist()
        )
        assert np.isnan(after.max_logit[split]).tolist() == [False, True, False, False]


def test_success_is_the_share_of_the_grid_that_answers_enough_robust_samples():
    accuracy = {"robust": np.array([49.9, 50.0, 80.0, 10.0]), "biased": np.full(4, 90.0)}
    logits = {"robust": np.array([1.0, 2, 4, 8]), "biased": np.array([2.0, 1, 4, 4])}
    found = toy_evaluate.Measured(accuracy, logits, {})
    runs = toy_evaluate._main_runs(found, ToyMeasures(**MEASURES))
    values = {(run["split"], run["metric"]): run["value"] for run in runs}
    assert values["robust", "success_rate"] == 50
    assert values["robust", "accuracy"] == pytest.approx(47.475)
    assert values["all", "max_logit"] == pytest.approx((2 * 2 * 4 * 8) ** 0.25)


def test_columns_of_the_history_are_read_as_they_are_named():
    assert parse_column(column("full", 0.003, 0.1, "loss")) == ("full", 0.003, 0.1, "loss")
