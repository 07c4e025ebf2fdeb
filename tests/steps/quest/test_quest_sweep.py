"""The task `sweep`: a stack is each rate trained alone, and a history is judged as defined."""

import math
from pathlib import Path
from types import SimpleNamespace

import image_runs
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from image_runs import measured, prepared, trained
from job_helpers import Killed, contents

from steps.quest import sweep_evaluate, sweep_train, vit
from steps.quest.images_data import open_images
from steps.quest.stacked import Stack
from steps.quest.sweep_config import Sweep, SweepMeasures
from steps.shared.runtime import InputError, read_csv

CONFIG = Sweep(**image_runs.SWEEP)


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with prepared digits, in which jobs run."""
    monkeypatch.chdir(tmp_path)
    prepared()
    return tmp_path


@pytest.mark.parametrize("row", ["standard", "qknorm_hs", "quest"])
def test_a_stack_is_each_rate_trained_alone_by_torchs_adamw(work, row):
    images = open_images(Path("prepare/images.json"), workers=0)
    stack = sweep_train.train_row(row, images, CONFIG, 0, Path("state.safetensors"))
    read = images.training_batches(batch_size=8, updates=4, max_shift=1, seed=0, first=1)
    sizes = {"image_size": 28, "channels": 1, "classes": 10}
    for index, rate in enumerate(CONFIG.learning_rates):
        model = vit.build(row, CONFIG.shape, seed=0, **sizes)
        groups = [
            {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.05},
            {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
        for update in range(1, 5):
            pixels, labels = read(update)
            optimizer.zero_grad()
            F.cross_entropy(model(pixels), labels).backward()
            optimizer.step()  # the warm-up is the first update, at the full rate
        # outputs, not weights: a bias of the keys has no effect on `standard`, and Adam scales the
        # rounding of its gradient up to whole steps
        found = stack.forward(pixels, explicit=True)[0][index]
        torch.testing.assert_close(found, model(pixels), rtol=1e-3, atol=1e-3)


def test_the_history_has_the_loss_and_the_largest_logit_of_every_rate(work):
    folder = trained("sweep", "out", "standard", "quest")
    lines = read_csv(folder / "quest/seed0/history.csv")
    assert [line["step"] for line in lines] == ["0", "2", "4"]
    assert len(lines[0]) == 1 + 3 * 3
    images = open_images(Path("prepare/images.json"), workers=0)
    model = vit.build("quest", CONFIG.shape, seed=0, image_size=28, channels=1, classes=10)
    pixels, labels = next(iter(images.chunks("validation", seed=0, batch_size=250)))
    scores, logits = model(pixels, explicit=True)
    start = {name: float(value) for name, value in lines[0].items()}
    assert start["lr0.01/validation_loss"] == pytest.approx(
        F.cross_entropy(scores, labels).item(), rel=1e-5
    )
    assert start["lr0.01/max_logit"] == pytest.approx(logits.abs().max().item(), rel=1e-5)


def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch):
    whole = contents(trained("sweep", "whole", "standard", "quest"))
    step, done = Stack.step, []

    def killing(stack, loss):
        done.append(1)
        if len(done) == 8:
            raise Killed
        return step(stack, loss)

    monkeypatch.setattr(Stack, "step", killing)
    with pytest.raises(Killed):
        trained("sweep", "broken", "standard", "quest")
    done.clear()
    monkeypatch.setattr(Stack, "step", lambda s, loss: (done.append(1), step(s, loss))[1])
    assert contents(trained("sweep", "broken", "standard", "quest")) == whole
    assert len(done) == 2


def test_only_packaged_digits_are_swept(work, monkeypatch):
    hub = SimpleNamespace(note={"kind": "hub"})
    monkeypatch.setattr(sweep_train, "open_images", lambda *args, **options: hub)
    with pytest.raises(InputError, match="packaged digits only"):
        trained("sweep", "out", "quest")


def test_evaluate_measures_what_the_tables_declare(work):
    trained("sweep", "out", "standard", "quest")
    runs = read_csv(measured("sweep", "out", "standard", "quest") / "sweep_seed0.csv")
    keys = [(run["table"], run["row"], run["split"], run["metric"], run["x"]) for run in runs]
    assert len(set(keys)) == len(keys) == 2 * (3 + 3 * 3)
    assert all(math.isfinite(float(run["value"])) for run in runs)
    Path("out/quest/seed0/model.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match="model.safetensors: not a sweep"):
        measured("sweep", "out", "quest")


def test_the_widest_stable_rate_is_the_end_of_the_stable_stretch_around_the_best():
    rates = [1.0, 2.0, 4.0, 8.0]

    def widest(*losses: float) -> float:
        return sweep_evaluate.widest_stable(rates, np.array(losses), 2.0, 1.2)

    assert widest(0.5, 0.6, 1.0, 1.1) == 4
    assert widest(2.0, 0.5, 0.6, 0.7) == 8  # too slow at the lowest is not unstable
    assert widest(0.5, 1.1, 0.6, 0.7) == 1  # a stable rate beyond an unstable one does not count
    assert widest(2.3, 2.3, 2.3, 0.5) == 8
    assert widest(0.7, 0.7, 1.3, 0.8) == 2  # within the factor, but hardly better than guessing
    assert widest(2.3, 2.3, 2.3, 2.3) == 1  # a row that never learns is stable nowhere


def test_a_loss_that_is_not_finite_counts_as_guessing():
    history = np.array([[9.0, 9.0], [0.2, np.nan], [0.4, 7.0], [0.6, np.inf]])
    guess = math.log(10)
    final = sweep_evaluate.final_loss(history, 3, guess)
    assert final.tolist() == pytest.approx([0.4, guess])


def test_a_logit_that_is_not_finite_is_reported_as_such():
    values = {"train_loss": np.ones((2, 3)), "validation_loss": np.ones((2, 3))}
    values["max_logit"] = np.array([[1.0, 2.0, 3.0], [5.0, np.nan, np.inf]])
    measures = SweepMeasures(**image_runs.SWEEP_MEASURES)
    runs = sweep_evaluate.measure_row([0.1, 0.2, 0.4], values, measures, 2.3)
    found = [r["value"] for r in runs if (r["table"], r["metric"]) == ("sweep_rate", "max_logit")]
    assert (found[0], np.isnan(found[1]), np.isinf(found[2])) == (5, True, True)


def test_a_row_is_judged_at_the_rate_of_its_lowest_training_loss():
    values = {
        "train_loss": np.array([[0.9, 0.3, 2.0]] * 2),
        "validation_loss": np.array([[0.2, 0.5, 2.0]] * 2),
        "max_logit": np.array([[1.0, 4.0, 16.0]] * 2),
    }
    measures = SweepMeasures(**image_runs.SWEEP_MEASURES)
    runs = list(sweep_evaluate.measure_row([0.1, 0.2, 0.4], values, measures, 2.3))
    found = {(r["table"], r["split"], r["metric"]): r["value"] for r in runs if r["x"] == ""}
    assert found["sweep", "validation", "loss"] == 0.5
    assert found["sweep", "all", "widest_stable_rate"] == 0.2
    assert found["sweep", "all", "max_logit"] == pytest.approx(4)
