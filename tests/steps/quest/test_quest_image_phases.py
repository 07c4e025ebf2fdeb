"""The task `images` on a few random digits: files, interruption, pairing, what is measured."""

import math
from pathlib import Path

import image_runs
import pytest
import torch
from image_runs import measured, prepared, trained
from job_helpers import Killed, contents

from steps.quest import blocks, images_evaluate, tune, vit
from steps.quest.images_config import ImageMeasures
from steps.quest.images_data import first_images, open_images
from steps.quest.images_measure import accuracy, measure
from steps.quest.plan import Files
from steps.shared.fit import Fit
from steps.shared.runtime import InputError, read_csv, read_json, sha256_file


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with prepared digits, in which jobs run."""
    monkeypatch.chdir(tmp_path)
    prepared()
    return tmp_path


# prepare and train
# -----------------
def test_preparing_twice_leaves_the_same_bytes_and_counts_the_splits(work):
    first = contents(work / "prepare")
    prepared("again")
    assert contents(work / "again") == first
    note = read_json("prepare/images.json")
    assert note["images"] == {"train": 70, "validation": 20, "test": 30}
    assert note["sha256"] == sha256_file("prepare/images.safetensors")


@pytest.mark.parametrize(
    ("change", "told"),
    [({"image_size": 32}, "image_size = 32"), ({"num_test": 100}, "num_test = 100")],
)
def test_data_that_does_not_fit_is_refused(work, change, told):
    with pytest.raises(InputError, match=told):
        prepared(**change)


def test_a_job_leaves_the_files_that_the_workflow_declares_for_each_row(work):
    folder = trained("images", "out", "standard", "quest")
    rows = {"standard": {"tasks": ["images"]}, "quest": {"tasks": ["images"]}}
    block = {"rows": [*rows], "train": {"common": {"images": image_runs.IMAGES}, "rows": rows}}
    declared = Files({"scale": "mini", "papers": {"quest": block}}).trained("images")
    names = [name.format(scale="mini", seed=0) for name in declared]
    names = [name.removeprefix("results/mini/quest/train/images/") for name in names]
    assert sorted(contents(folder)) == sorted(names)
    lines = read_csv(folder / "quest/seed0/history.csv")
    assert [line["step"] for line in lines] == ["2", "4"]
    assert all(math.isfinite(float(value)) for line in lines for value in line.values())
    assert list(Path("state").iterdir()) == []


def test_a_row_trains_alike_whatever_rows_share_its_job(work):
    together = contents(trained("images", "one", "standard", "quest"))
    alone = contents(trained("images", "two", "quest"))
    assert alone == {name: data for name, data in together.items() if name.startswith("quest")}


@pytest.mark.parametrize("count", [3, 4, 7])
def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch, count):
    """Stochastic depth draws random numbers, which must be those of an undisturbed run."""
    rows, change = ("standard", "qknorm_ds"), {"drop_path": 0.5}
    whole = contents(trained("images", "whole", *rows, **change))
    step, done = Fit._step, []

    def killing(fit, update):
        done.append(update)
        if len(done) == count:
            raise Killed
        return step(fit, update)

    monkeypatch.setattr(Fit, "_step", killing)
    with pytest.raises(Killed):
        trained("images", "broken", *rows, **change)
    done.clear()
    monkeypatch.setattr(Fit, "_step", lambda f, u: (done.append(u), step(f, u))[1])
    assert contents(trained("images", "broken", *rows, **change)) == whole
    # two rows of four updates, of which those since the last checkpoint are repeated
    assert len(done) == 8 - (count - 1) // 2 * 2


def test_rows_of_a_seed_see_the_same_images(work, monkeypatch):
    seen: dict[str, list] = {}
    forward = vit.VisionTransformer.forward

    def spied(model, images, **options):
        if model.training:
            seen.setdefault(model.settings["row"], []).append(images.clone())
        return forward(model, images, **options)

    monkeypatch.setattr(vit.VisionTransformer, "forward", spied)
    trained("images", "out", "standard", "elliptical_quest")
    first, second = seen.values()
    assert len(first) == 4
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    seen.clear()
    trained("images", "other", "standard", seed=1)
    assert not torch.equal(seen["standard"][0], first[0])


# evaluate
# --------
def test_evaluate_measures_what_the_tables_declare(work):
    trained("images", "out", "standard", "quest")
    folder = measured("images", "out", "standard", "quest")
    runs = read_csv(folder / "images_seed0.csv")
    value = {
        (r["table"], r["row"], r["split"], r["metric"], r["x"]): float(r["value"]) for r in runs
    }
    assert len(value) == len(runs)
    assert {key[1] for key in value} == {"standard", "quest"}
    for row in ("standard", "quest"):
        by_severity = [
            value["images_corruption", row, name, "accuracy", severity]
            for name in ("blur", "contrast")
            for severity in ("1", "3")
        ]
        mean = value["images", row, "corrupted", "accuracy", ""]
        assert mean == pytest.approx(sum(by_severity) / 4)
        by_radius = [value["images_attack", row, "pgd", "accuracy", x] for x in ("0.05", "0.1")]
        assert value["images", row, "pgd", "accuracy", ""] == pytest.approx(sum(by_radius) / 2)
    maps = read_csv(folder / "images_seed0_maps.csv")
    assert len(maps) == 2 * (2 * 4 + 28 * 28)  # splits, rows, patches; the image
    pattern = [m for m in maps if (m["row"], m["split"]) == ("image", "pattern")]
    assert all(
        float(m["value"]) == 1 for m in pattern if int(m["place"]) % 28 < 14 > int(m["place"]) // 28
    )


def test_an_accuracy_and_a_loss_are_those_of_the_whole_set_whatever_the_chunks(work):
    folder = trained("images", "out", "quest")
    model = vit.load(folder / "quest/seed0/model.safetensors")
    images = open_images(Path("prepare/images.json"), workers=0)
    few, many = (measure(model, images.chunks("test", seed=0, batch_size=size)) for size in (7, 30))
    assert few == pytest.approx(many, rel=1e-5)
    whole, labels = first_images(images.chunks("test", seed=0, batch_size=4), 30)
    right = (model(whole).argmax(-1) == labels).float().mean().item()
    assert few["accuracy"] == pytest.approx(100 * right)
    logits = model(whole, explicit=True)[1]
    assert few["max_logit"] == pytest.approx(logits.abs().max().item(), rel=1e-5)


def test_a_model_that_diverged_answers_wrongly_and_shows_it(work):
    folder = trained("images", "out", "quest")
    model = vit.load(folder / "quest/seed0/model.safetensors")
    chunks = open_images(Path("prepare/images.json"), workers=0).chunks(
        "test", seed=0, batch_size=16
    )
    with torch.no_grad():
        model.head.bias[0] = torch.nan  # which argmax would take for the answer 0
    assert measure(model, chunks)["accuracy"] == accuracy(model, chunks) == 0
    with torch.no_grad():
        model.blocks[0].attention.qkv.weight[0, 0] = torch.nan
    assert math.isnan(measure(model, chunks)["max_logit"])


def test_attacks_start_from_the_same_draws_in_every_row(work, monkeypatch):
    starts = []
    monkeypatch.setattr(
        images_evaluate, "pgd", lambda model, images, labels, *, generator, **options: (
            starts.append(torch.rand(3, generator=generator).tolist()), images)[1]
    )  # fmt: skip
    trained("images", "out", "standard", "quest")
    measured("images", "out", "standard", "quest")
    assert starts[0] == starts[2] and starts[1] == starts[3]


def test_a_pattern_is_white_in_one_corner_only():
    images = torch.zeros(2, 5, 5)
    found = images_evaluate.with_pattern(images, 2)
    assert found[:, :2, :2].min() == 1 and found.sum() == 8 and not images.any()


def test_digits_have_no_corrupted_folder(work):
    images = open_images(Path("prepare/images.json"), workers=0)
    config = ImageMeasures(**{**image_runs.MEASURES, "corrupted": "somewhere/{corruption}"})
    with pytest.raises(InputError, match="the digits have only 'digits'"):
        images_evaluate.test_images(images, config, 0)


def test_a_model_comes_back_as_it_was_saved_and_a_broken_one_is_named(tmp_path):
    from steps.quest.images_config import Shape

    sizes = {"image_size": 28, "channels": 1, "classes": 10}
    model = vit.build("qknorm_hs", Shape(**image_runs.SHAPE), seed=0, **sizes)
    path = tmp_path / "model.safetensors"
    blocks.save(path, model)
    images = torch.rand(3, 28, 28, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(vit.load(path)(images), model(images))
    path.write_bytes(b"no")
    with pytest.raises(InputError, match="model.safetensors: not a vision transformer"):
        vit.load(path)


def test_tuning_reports_the_validation_loss_of_every_row_and_rate(work, monkeypatch):
    rows = {row: {"tasks": ["images"]} for row in ("standard", "quest")}
    train = {"common": {"images": image_runs.IMAGES}, "rows": rows}
    config = {"scale": "mini", "papers": {"quest": {"rows": [*rows], "train": train}}}
    monkeypatch.setattr(tune, "load", lambda scale: config)
    monkeypatch.setattr(tune, "SEEDS", (7, 8))
    flags = ["--task", "images", "--data", "prepare/images.json", "--out", "rates.csv"]
    tune.main([*flags, "--rates", "0.02", "0.005"])
    found = {(r["row"], r["rate"]): float(r["validation_loss"]) for r in read_csv("rates.csv")}
    assert list(found) == [(row, rate) for rate in ("0.02", "0.005") for row in rows]
    last = [
        float(
            read_csv(
                trained("images", f"out{seed}", "quest", seed=seed, learning_rate=0.02) / path
            )[-1][name]
        )
        for seed, path in ((7, "quest/seed7/history.csv"), (8, "quest/seed8/history.csv"))
        for name in ["validation_loss"]
    ]
    assert found["quest", "0.02"] == pytest.approx(sum(last) / 2)
