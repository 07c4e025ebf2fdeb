"""What is measured of a trained toy: the tables' cells, divergence, success."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from phase_runs import merged
from toy_runs import DATA, MEASURES, TOY, prepared, run

from steps.quest import evaluate, toy, toy_evaluate, toy_train
from steps.quest.toy_config import ToyMeasures, column, parse_column
from steps.shared.runtime import InputError, read_csv


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with prepared data, in which jobs run."""
    monkeypatch.chdir(tmp_path)
    prepared()
    return tmp_path


def test_evaluate_measures_what_the_tables_declare(work):
    run("out")
    selection = merged("out", "standard", "quest")
    config = json.dumps({"toy": MEASURES})
    flags = ["--task", "toy", "--config", config, "--data", DATA]
    evaluate.main([*flags, "--selection", str(selection), "--out", "evaluate"])
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
    history = toy_train.read_history(folder / "history.csv", config, "full", "loss")
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
    runs = toy_evaluate._main_runs("toy", found, ToyMeasures(**MEASURES))
    values = {(run["split"], run["metric"]): run["value"] for run in runs}
    assert values["robust", "success_rate"] == 50
    assert values["robust", "accuracy"] == pytest.approx(47.475)
    assert values["all", "max_logit"] == pytest.approx((2 * 2 * 4 * 8) ** 0.25)


def test_columns_of_the_history_are_read_as_they_are_named():
    assert parse_column(column("full", 0.003, 0.1, "loss")) == ("full", 0.003, 0.1, "loss")
