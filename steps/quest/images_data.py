"""The images of a manifest, digits or hub data set, in one form for training and evaluation.

Shapes: B images of a chunk or batch; digits are (B, Y, X), colour images (B, 3, Y, X).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from steps.quest import digits
from steps.quest.corruptions import corrupt
from steps.shared import tensor_files
from steps.shared.digits import Digits
from steps.shared.runtime import InputError, read_json

SIZES = ("num_validation", "num_test")
Chunks = Iterable[tuple[Tensor, Tensor]]


class ImageSet(Protocol):
    """What training and evaluation read; chunks are (images in [0, 1], labels)."""

    note: dict[str, Any]  # the manifest

    def training_batches(
        self, *, batch_size: int, updates: int, max_shift: int, seed: int, first: int
    ) -> Callable[[int], tuple[Tensor, ...]]:
        """Return update -> (images, labels), to be called for updates from `first` on."""

    def chunks(self, split: str, *, seed: int, batch_size: int) -> Chunks:
        """Return the images of 'validation' or 'test', which may be gone through repeatedly."""

    def corrupted(
        self, source: str, name: str, *, severity: int, seed: int, batch_size: int
    ) -> Chunks:
        """Return the corrupted test images; `source` as `corrupted` in the configuration."""


class PackagedDigits:
    """The digits that `prepare` wrote; a seed has its own training and test images."""

    def __init__(self, note: dict[str, Any], path: Path) -> None:
        """Read the tensors beside the manifest."""
        what, names = "digits as prepare writes them", Digits._fields
        self.note = note
        self.table = Digits(**tensor_files.read(path, what, names=names, framework="numpy"))

    def split(self, seed: int) -> dict[str, Digits]:
        """Return the digits of a seed by split."""
        sizes = {name: self.note[name] for name in SIZES}
        return digits.split_digits(self.table, **sizes, seed=seed)

    def training_batches(
        self, *, batch_size: int, updates: int, max_shift: int, seed: int, first: int
    ) -> Callable[[int], tuple[Tensor, ...]]:
        """See `ImageSet`; any update may be asked for."""
        return digits.training_batches(
            self.split(seed)["train"],
            batch_size=batch_size,
            updates=updates,
            max_shift=max_shift,
            seed=seed,
        )

    def chunks(self, split: str, *, seed: int, batch_size: int) -> Chunks:
        """See `ImageSet`; 'train' too."""
        images, labels = digits.to_tensors(self.split(seed)[split])
        return _chunks(images, labels, batch_size)

    def corrupted(
        self, source: str, name: str, *, severity: int, seed: int, batch_size: int
    ) -> Chunks:
        """See `ImageSet`."""
        if source != "digits":
            raise InputError(f"corrupted = {source!r}: the digits have only 'digits'")
        images, labels = digits.to_tensors(self.split(seed)["test"])
        return _chunks(corrupt(images, name, severity=severity, seed=seed), labels, batch_size)


def _chunks(images: Tensor, labels: Tensor, batch_size: int) -> Chunks:
    return list(zip(images.split(batch_size), labels.split(batch_size), strict=True))


def open_images(manifest: Path, *, workers: int) -> ImageSet:
    """Return the images of a manifest; `workers` processes decode those of a hub data set."""
    note = read_json(manifest, "kind", "image_size", "channels", "classes", *SIZES)
    if note["kind"] == "hub":
        from steps.quest.hub_images import HubImages

        return HubImages(note, workers)
    return PackagedDigits(note, manifest.with_suffix(".safetensors"))


def first_images(chunks: Chunks, count: int) -> tuple[Tensor, Tensor]:
    """Return the first `count` images and labels, or all where there are fewer."""
    images, labels, found = [], [], 0
    for image, label in chunks:
        images.append(image)
        labels.append(label)
        found += len(label)
        if found >= count:
            break
    return torch.cat(images)[:count], torch.cat(labels)[:count]
