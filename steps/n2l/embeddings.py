"""What training leaves of a data set and seed: embeddings to learn from, to test, and of the names.

Two files, so that the learner never opens the test images: learn.safetensors (x, labels, text,
scale) and test.safetensors (x, labels). Shapes: N images, D features, C classes.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from steps.n2l.config import Protocol
from steps.shared import tensor_files
from steps.shared.runtime import InputError, stream


class Embeddings(NamedTuple):
    """Images of all tasks, and what CLIP says of the names."""

    x_ND: np.ndarray
    labels_N: np.ndarray  # places in the list of classes; the learner's rows do not see them
    text_CD: np.ndarray
    scale: float  # of cosines, to logits


def save(folder: Path, found: Embeddings, x_test_ND: np.ndarray, test_N: np.ndarray) -> None:
    """Write both files."""
    learn = {
        "x": found.x_ND,
        "labels": found.labels_N,
        "text": found.text_CD,
        "scale": np.array([found.scale], dtype=np.float32),
    }
    for name, arrays in (("learn", learn), ("test", {"x": x_test_ND, "labels": test_N})):
        tensor_files.write(folder / f"{name}.safetensors", arrays)


def load_learn(path: Path) -> Embeddings:
    """Read learn.safetensors."""
    arrays = _read(path, ("x", "labels", "text", "scale"))
    return Embeddings(*(arrays[key] for key in ("x", "labels", "text")), float(arrays["scale"][0]))


def load_test(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read test.safetensors: features and labels."""
    arrays = _read(path, ("x", "labels"))
    return arrays["x"], arrays["labels"]


def _read(path: Path, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    what = "embeddings as training writes them"
    return tensor_files.read(path, what, names=keys, framework="numpy")


def split(count: int, num_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the images to learn from and to test, drawn for each seed."""
    order = stream("n2l", "split", seed).permutation(count)
    return np.sort(order[num_test:]), np.sort(order[:num_test])


def class_order(num_classes: int, seed: int) -> np.ndarray:
    """Return the order in which the classes of a seed come; all rows have the same."""
    return stream("n2l", "order", seed).permutation(num_classes)


def tasks(order_C: np.ndarray, protocol: Protocol) -> list[np.ndarray]:
    """Return the classes of every task: `first`, then `step` at a time."""
    ends = range(protocol.first, len(order_C) + 1, protocol.step)
    if protocol.first > len(order_C) or ends[-1] != len(order_C):
        raise InputError(
            f"{len(order_C)} classes: {protocol.first} first and {protocol.step} in each later task"
            " leave some over"
        )
    return np.split(order_C, list(ends)[:-1])
