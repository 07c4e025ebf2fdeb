"""Digits: the table is read, split without leaks, and batched alike for every row."""

import numpy as np
import pytest
import torch
from job_helpers import random_digits, write_digits

from steps.quest.digits import split_digits, to_tensors, training_batches
from steps.shared.asset_manifest import load_manifest
from steps.shared.assets import cache_root
from steps.shared.digits import Digits, read_digits
from steps.shared.runtime import InputError


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "digits.csv.gz", random_digits(200))
    return read_digits(tmp_path / "digits.csv.gz")


def split(digits: Digits, seed: int, **change) -> dict[str, Digits]:
    return split_digits(digits, **{"num_validation": 20, "num_test": 30, "seed": seed, **change})


def keys(part: Digits) -> set[bytes]:
    return {image.tobytes() for image in part.images}


def test_splits_cover_all_images_once(digits):
    parts = split(digits, 0)
    assert {name: len(part.labels) for name, part in parts.items()} == {
        "train": 150,
        "validation": 20,
        "test": 30,
    }
    assert set.union(*map(keys, parts.values())) == keys(digits)
    assert sum(len(keys(part)) for part in parts.values()) == 200


def test_a_seed_redraws_the_test_split_and_never_the_validation_split(digits):
    first, again, other = split(digits, 0), split(digits, 0), split(digits, 1)
    assert all(np.array_equal(first[name].images, again[name].images) for name in first)
    assert keys(first["validation"]) == keys(other["validation"])
    assert keys(first["test"]) != keys(other["test"])
    assert np.array_equal(np.bincount(first["validation"].labels), np.full(10, 2))


@pytest.mark.parametrize("sizes", [(0, 30), (20, 0), (100, 100)])
def test_splits_that_leave_nothing_are_refused(digits, sizes):
    with pytest.raises(InputError, match="leave some of the 200 images"):
        split(digits, 0, num_validation=sizes[0], num_test=sizes[1])


def test_pixels_are_in_the_unit_interval():
    images = np.zeros((1, 28, 28), np.uint8)
    images[0, 0, :2] = 51, 255
    pixels, labels = to_tensors(Digits(images, np.array([3])))
    assert pixels[0, 0, :3].tolist() == pytest.approx([0.2, 1.0, 0.0])
    assert pixels.dtype == torch.float32 and labels.tolist() == [3]


def test_batches_go_through_every_image_and_repeat_for_a_seed(digits):
    options = {"batch_size": 50, "updates": 6, "max_shift": 0}
    batch = training_batches(digits, seed=0, **options)
    everything, _ = to_tensors(digits)
    for updates in ((1, 2, 3, 4), (5, 6)):
        seen = torch.cat([batch(update)[0] for update in updates])
        found = (seen[:, None] == everything).flatten(2).all(-1).any(0)
        assert found.sum() == 50 * len(updates)
    images, labels = batch(3)
    same = training_batches(digits, seed=0, **options)(3)
    assert torch.equal(images, same[0]) and torch.equal(labels, same[1])
    assert not torch.equal(images, training_batches(digits, seed=1, **options)(3)[0])


def test_shifts_move_whole_images_by_up_to_the_maximum():
    dot = np.zeros((1, 28, 28), np.uint8)
    dot[0, 0, 14] = 255  # may leave through the upper edge, never come back through the lower
    one = Digits(dot, np.array([0]))
    batch = training_batches(one, batch_size=1, updates=200, max_shift=2, seed=0)
    places = [tuple(batch(update)[0][0].nonzero()[0].tolist())
              for update in range(1, 201) if batch(update)[0].any()]  # fmt: skip
    assert set(places) == {(y, x) for y in range(3) for x in range(12, 17)}


def test_a_batch_larger_than_the_data_is_refused(digits):
    with pytest.raises(InputError, match="batch_size = 201"):
        training_batches(digits, batch_size=201, updates=1, max_shift=0, seed=0)


def test_the_asset_is_what_the_module_says():
    asset = load_manifest()["mnist_5k"]
    path = cache_root() / "assets" / asset.folder / asset.members[0]
    if not path.is_file():
        pytest.skip("the asset mnist_5k is not in the cache")
    digits = read_digits(path)
    assert np.array_equal(np.bincount(digits.labels), np.full(10, 500))
    assert len(keys(digits)) == 5000
