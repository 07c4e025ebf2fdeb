"""The paper's scale in miniature: a folder of images as a data set, from prepare to evaluate."""

import json
import os
import subprocess
import sys
from pathlib import Path

import image_runs
import numpy as np
import pytest
import torch
from image_runs import measured, prepared, trained
from job_helpers import contents
from PIL import Image

from steps.quest import vit
from steps.quest.hub_images import Share
from steps.quest.images_data import open_images
from steps.shared.runtime import InputError, read_csv, read_json

ROOT = Path(__file__).resolve().parents[3]
HUB = {"kind": "hub", "name": "photos", "image_size": 16, "num_validation": 4, "num_test": 100}
SHAPE = {"shape": {**image_runs.SHAPE, "patch": 8}}
DEIT = {**SHAPE, "drop_path": 0.1, "label_smoothing": 0.1, "micro_batch": 4}


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with a data set of two classes, 10 training and 3 test images each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    places = [(f"photos/{split}", n) for split, n in (("train", 10), ("validation", 3))]
    places += [(f"broken/{name}/{severity}", 3) for name in ("fog", "snow") for severity in (1, 2)]
    for place, count in places:
        for name, base in (("ant", 0), ("bee", 128)):
            folder = Path(place) / name
            folder.mkdir(parents=True)
            for index in range(count):
                pixels = base + rng.integers(0, 100, size=(24, 20, 3))
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{index}.png")
    prepared(**HUB)
    return tmp_path


def batches(first: int, seed: int = 0, workers: int = 0) -> list[tuple[torch.Tensor, ...]]:
    images = open_images(Path("prepare/images.json"), workers=workers)
    read = images.training_batches(batch_size=8, updates=6, max_shift=0, seed=seed, first=first)
    return [tuple(part[0:8] for part in read(update)) for update in range(first, 7)]


def same(one: list, two: list) -> bool:
    pairs = zip(one, two, strict=True)
    return all(torch.equal(a, b) for left, right in pairs for a, b in zip(left, right, strict=True))


def test_the_manifest_counts_classes_and_splits(work):
    note = read_json("prepare/images.json")
    assert (note["classes"], note["test_split"], note["channels"]) == (2, "validation", 3)
    assert note["images"] == {"train": 16, "validation": 4, "test": 6}
    assert sorted(path.name for path in Path("prepare").iterdir()) == ["images.json"]


def test_batches_depend_on_the_seed_only_and_can_be_taken_up_anywhere(work):
    whole = batches(1)
    images, labels = whole[0]
    assert images.shape == (8, 3, 16, 16) and images.min() >= 0 and images.max() <= 1.01
    assert labels.shape == (8, 2)
    torch.testing.assert_close(labels.sum(1), torch.ones(8))
    assert same(batches(4), whole[3:])
    assert same(batches(1, workers=1), whole)
    assert not same(batches(1, seed=1), whole)


def test_processes_together_read_what_one_reads(work, monkeypatch):
    images = open_images(Path("prepare/images.json"), workers=0)
    keys = list(images._keys(0, 1, 6, 8))
    assert [len(batch) for batch in keys] == [8] * 6
    # an epoch is 16 images: each index once in two batches, none of them a validation image
    first = [index for batch in keys[:2] for index, _ in batch]
    assert sorted(first) == images.training.tolist()
    assert not set(first) & set(images.validation.tolist())
    whole = Share(torch.arange(4), 4, 8)
    assert len(whole) == 8 and whole[4:6].tolist() == [0, 1] and whole[6:8].tolist() == [2, 3]
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    read = images.training_batches(batch_size=8, updates=6, max_shift=0, seed=0, first=1)
    pixels, _ = read(1)
    assert pixels.begin == 4 and len(pixels.part) == 4 and len(pixels) == 8


def test_a_row_trains_merges_and_is_measured_on_a_folder_of_images(work):
    trained("images", "out", "quest", **DEIT)
    change = {"corrupted": "broken/{corruption}/{severity}", "corruptions": ["fog", "snow"]}
    folder = measured("images", "out", "quest", **change, severities=[1, 2], pattern_size=8)
    runs = read_csv(folder / "images_seed0.csv")
    found = {(run["table"], run["split"], run["x"]) for run in runs}
    assert ("images", "corrupted", "") in found and ("images_corruption", "corrupted", "2") in found
    assert not any(split == "fog" for _, split, _ in found)  # the tables do not name it
    assert len(read_csv(folder / "images_seed0_maps.csv")) == 2 * (4 + 16 * 16)
    assert contents(trained("images", "again", "quest", **DEIT)) == contents(Path("out"))


def launched(out: str, config: dict) -> Path:
    """Train one row as two processes, as the paper scale's launcher does."""
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "--num_processes", "2"]
    launch += ["--main_process_port", "0", "--module", "steps.quest.train", "--task", "images"]
    launch += ["--config", json.dumps({"images": {**image_runs.IMAGES, **config}})]
    launch += ["--data", "prepare/images.json", "--rows", "quest", "--out", out]
    setting = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"}
    done = subprocess.run(
        [sys.executable, *launch], env={**os.environ, **setting}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Path(out) / "quest/seed0"


def test_two_processes_train_on_a_folder_of_images(work):
    folder = launched("out", DEIT)
    assert sorted(path.name for path in folder.iterdir()) == ["history.csv", "model.safetensors"]
    lines = read_csv(folder / "history.csv")
    assert [line["step"] for line in lines] == ["2", "4"]
    assert all(np.isfinite(float(line["train_loss"])) for line in lines)
    assert list(Path("state").iterdir()) == []


def test_two_processes_leave_the_digits_model_of_one(work):
    prepared()
    one = vit.load(trained("images", "one", "quest") / "quest/seed0/model.safetensors")
    two = vit.load(launched("two", {}) / "model.safetensors")
    for (name, value), other in zip(one.named_parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(other, value, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "nowhere"}, "data set nowhere, split train: cannot be read"),
        ({"num_validation": 20}, "num_validation = 20: must leave some of the 20 images"),
    ],
)
def test_a_data_set_that_does_not_fit_is_named(work, change, told):
    with pytest.raises(InputError, match=told):
        prepared(**{**HUB, **change})


def test_a_data_set_without_labels_or_test_images_is_named(work):
    Path("plain").mkdir()
    Path("plain/train.jsonl").write_text(json.dumps({"text": "x"}) + "\n")
    with pytest.raises(InputError, match="must have image and label"):
        prepared(**{**HUB, "name": "plain"})
    with pytest.raises(InputError, match="must have validation or test"):
        prepared(**{**HUB, "name": "broken/fog/1", "num_validation": 1})
