"""Handwritten digits: a seed's splits, and the batches that training reads."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from steps.shared.digits import SIDE, Digits
from steps.shared.runtime import InputError, stream
from steps.shared.schedules import epochs

SPLITS = ("train", "validation", "test")


def split_digits(
    digits: Digits, *, num_validation: int, num_test: int, seed: int
) -> dict[str, Digits]:
    """Return train, validation and test digits.

    Validation takes images evenly spaced in the table, whatever the seed: what is chosen on it has
    seen no image that any seed tests. The stream (quest, split, seed) divides the others.
    """
    count = len(digits.labels)
    if min(num_validation, num_test) < 1 or num_validation + num_test >= count:
        raise InputError(
            f"num_validation = {num_validation}, num_test = {num_test}: must be at least 1 each and"
            f" leave some of the {count} images for training"
        )
    validation = np.arange(num_validation) * count // num_validation
    others = np.setdiff1d(np.arange(count), validation)
    others = stream("quest", "split", seed).permutation(others)
    parts = (others[num_test:], validation, others[:num_test])
    return {
        name: Digits(digits.images[part], digits.labels[part])
        for name, part in zip(SPLITS, parts, strict=True)
    }


def to_tensors(digits: Digits) -> tuple[Tensor, Tensor]:
    """Return (images (N, Y, X) as floats in [0, 1], labels (N,))."""
    return _pixels(digits.images), torch.from_numpy(digits.labels)


def training_batches(
    digits: Digits, *, batch_size: int, updates: int, max_shift: int, seed: int
) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Return update -> (images (B, Y, X) in [0, 1], labels (B,)) for updates 1 to `updates`.

    Every epoch goes through a new order of the images. Each image is moved by up to `max_shift`
    pixels along both axes, background moving in. All is drawn at once from (quest, data, seed), so
    update u reads the same batch in every row and after every interruption.
    """
    count = len(digits.labels)
    rng = stream("quest", "data", seed)
    order = epochs(rng, count, batch_size, updates)
    shifts = rng.integers(0, 2 * max_shift + 1, size=(updates, batch_size, 2, 1))
    padded = np.pad(digits.images, ((0, 0), (max_shift, max_shift), (max_shift, max_shift)))

    def read(update: int) -> tuple[Tensor, Tensor]:
        """Return the shifted images in [0, 1] and the labels of an update."""
        chosen = order[update - 1]
        window_B2Y = shifts[update - 1] + np.arange(SIDE)
        rows, columns = window_B2Y[:, 0, :, None], window_B2Y[:, 1, None, :]
        images = padded[chosen[:, None, None], rows, columns]
        return _pixels(images), torch.from_numpy(digits.labels[chosen])

    return read


def _pixels(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images.astype(np.float32) / np.float32(255))
