"""Small random problems of N2L's tests: features in clusters, tasks, labels, weights."""

import numpy as np


def stream_of_tasks(seed: int, *, dim: int = 24, sizes=(30, 17, 41), classes=(3, 2, 4)):
    """Return a list of (features, labels, weights), labels of all tasks counted together."""
    rng = np.random.default_rng(seed)
    tasks, first = [], 0
    for size, count in zip(sizes, classes, strict=True):
        labels = first + np.concatenate([np.arange(count), rng.integers(0, count, size - count)])
        x = rng.normal(size=(size, dim)) + 0.3 * labels[:, None]
        tasks.append((x, labels, rng.uniform(0.1, 3, size)))
        first += count
    return tasks


def blobs(seed: int, *, dim: int = 16, classes: int = 6, per_class: int = 30, noise: float = 0.6):
    """Return (features, labels, class centres): centres serve as embeddings of the names."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, dim))
    labels = np.repeat(np.arange(classes), per_class)
    return centres[labels] + noise * rng.normal(size=(len(labels), dim)), labels, centres
