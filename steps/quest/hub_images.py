"""Images of a hub data set, by id or local folder, prepared as DeiT prepares ImageNet.

Columns `image` and `label`; splits `train` and `validation` (or `test`). Validation images are
taken from `train`, evenly spaced. Training crops, flips, RandAugment, erases, mixes (mixup 0.8 or
cutmix 1.0). Each sample and each update has random numbers of its own, so nothing depends on the
number of workers, and a run can be cut anywhere.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import InterpolationMode, v2

from steps.quest.images_config import ImageData
from steps.shared.errors import one_line
from steps.shared.runtime import InputError, stream

CROP = 0.875  # share of a resized image's side that a test image keeps
BICUBIC = InterpolationMode.BICUBIC
TO_FLOAT = [v2.RGB(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]


def open_split(name: str, split: str) -> Any:
    """Return a split of a data set of the hub or of a folder."""
    from datasets import load_dataset

    try:
        rows = load_dataset(name, split=split)
    except (OSError, ValueError) as error:
        raise InputError(
            f"data set {name}, split {split}: cannot be read ({one_line(error)})"
        ) from None
    if not {"image", "label"} <= set(rows.column_names):
        raise InputError(f"images {name}: columns {rows.column_names}: must have image and label")
    return rows


def describe(config: ImageData) -> dict[str, Any]:
    """Return what the manifest says of a data set: its classes, its splits' sizes."""
    from datasets import get_dataset_split_names

    rows = open_split(config.name, "train")
    names = get_dataset_split_names(config.name)
    test = next((split for split in ("validation", "test") if split in names), None)
    if test is None:
        raise InputError(f"images {config.name}: splits {names}: must have validation or test")
    if config.num_validation >= len(rows):
        raise InputError(
            f"num_validation = {config.num_validation}: must leave some of the {len(rows)} images"
        )
    count = min(config.num_test, len(open_split(config.name, test)))
    return {
        "classes": rows.features["label"].num_classes,
        "test_split": test,
        "images": {
            "train": len(rows) - config.num_validation,
            "test": count,
            "validation": config.num_validation,
        },
    }


def _number(seed: int, place: int) -> int:
    """Return a number that no other seed and place has."""
    return (seed << 40) + place


class Decoded(Dataset):
    """Samples of a data set by (index, seed of the random numbers that its transform draws)."""

    def __init__(self, rows: Any, transform: v2.Transform) -> None:
        self.rows, self.transform = rows, transform

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, int]:
        """Return (image (3, Y, X) in [0, 1], label)."""
        index, seed = key
        torch.manual_seed(seed)
        row = self.rows[int(index)]
        return self.transform(row["image"]), row["label"]


class Share:
    """The part of a batch that a process holds, which `Fit` slices as if it had the whole."""

    def __init__(self, part: Tensor, begin: int, whole: int) -> None:
        self.part, self.begin, self.whole = part, begin, whole

    def __len__(self) -> int:
        return self.whole

    def __getitem__(self, piece: slice) -> Tensor:
        return self.part[piece.start - self.begin : piece.stop - self.begin]


class HubImages:
    """An `ImageSet` (images_data.py) whose images are decoded as they are needed."""

    def __init__(self, note: dict[str, Any], workers: int) -> None:
        """Take a manifest that `prepare` wrote."""
        self.note, self.workers = note, workers
        size = note["image_size"]
        self.train_transform = v2.Compose(
            [
                v2.RandomResizedCrop(size, interpolation=BICUBIC),
                v2.RandomHorizontalFlip(),
                v2.RGB(),
                v2.RandAugment(num_ops=2, magnitude=9),
                *TO_FLOAT,
                v2.RandomErasing(p=0.25),
            ]
        )
        resized = round(size / CROP)
        self.test_transform = v2.Compose(
            [v2.Resize(resized, interpolation=BICUBIC), v2.CenterCrop(size), *TO_FLOAT]
        )
        self.rows = open_split(note["name"], "train")
        count, kept = len(self.rows), note["num_validation"]
        self.validation = np.arange(kept) * count // kept
        self.training = np.setdiff1d(np.arange(count), self.validation)

    def training_batches(
        self, *, batch_size: int, updates: int, max_shift: int, seed: int, first: int
    ) -> Callable[[int], tuple[Share, ...]]:
        """See `ImageSet`; updates must be asked for in order. Labels are shares of the classes."""
        rank, processes = (int(os.environ.get(k, d)) for k, d in (("RANK", 0), ("WORLD_SIZE", 1)))
        local = batch_size // processes
        begin, classes = rank * local, self.note["classes"]
        mix = v2.RandomChoice(
            [
                v2.MixUp(alpha=0.8, num_classes=classes),
                v2.CutMix(alpha=1.0, num_classes=classes),
            ]
        )
        wanted = (
            keys[begin : begin + local] for keys in self._keys(seed, first, updates, batch_size)
        )
        samples = iter(self._loader(self.rows, self.train_transform, wanted))

        def read(update: int) -> tuple[Share, ...]:
            images, labels = next(samples)
            torch.manual_seed(-_number(seed, update * processes + rank))
            return tuple(Share(part, begin, batch_size) for part in mix(images, labels))

        return read

    def _keys(
        self, seed: int, first: int, updates: int, batch_size: int
    ) -> Iterator[list[tuple[int, int]]]:
        """Yield, for each update from `first` on, its (index, seed of the transform) pairs."""
        count, epoch, order = len(self.training), -1, None
        for update in range(first, updates + 1):
            keys = []
            for place in range((update - 1) * batch_size, update * batch_size):
                if place // count != epoch:
                    epoch = place // count
                    order = stream("quest", f"data epoch {epoch}", seed).permutation(self.training)
                keys.append((int(order[place % count]), _number(seed, place)))
            yield keys

    def chunks(self, split: str, *, seed: int, batch_size: int) -> Iterable[tuple[Tensor, Tensor]]:
        """See `ImageSet`; the same images for every seed."""
        if split == "validation":
            return self._chunks(self.rows, self.validation, batch_size)
        rows = open_split(self.note["name"], self.note["test_split"])
        return self._chunks(rows, np.arange(self.note["images"]["test"]), batch_size)

    def corrupted(
        self, source: str, name: str, *, severity: int, seed: int, batch_size: int
    ) -> Iterable[tuple[Tensor, Tensor]]:
        """See `ImageSet`; `source` names a folder (one per class inside) or id."""
        place = source.format(corruption=name, severity=severity)
        rows = open_split(place, "train")  # what a folder without splits is called
        return self._chunks(rows, np.arange(len(rows)), batch_size)

    def _chunks(
        self, rows: Any, indexes: np.ndarray, batch_size: int
    ) -> Iterable[tuple[Tensor, Tensor]]:
        keys = [(int(index), 0) for index in indexes]
        pieces = [keys[begin : begin + batch_size] for begin in range(0, len(keys), batch_size)]
        return self._loader(rows, self.test_transform, pieces)

    def _loader(
        self, rows: Any, transform: v2.Transform, batches: Iterable[list[tuple[int, int]]]
    ) -> DataLoader:
        dataset = Decoded(rows, transform)
        return DataLoader(dataset, batch_sampler=batches, num_workers=self.workers)
