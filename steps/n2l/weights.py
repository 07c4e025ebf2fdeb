"""The weights of images: between classes and within a class.

Shapes: N images of a task, C classes of the task.
"""

from typing import Literal

import numpy as np
from scipy.special import ndtri

Within = Literal["none", "normal", "quantile", "uniform", "inverse_entropy"]
Scope = Literal["class", "task"]
SMALLEST = 1e-3  # of a weight: 2.3 % of the draws of N(1, 1/4) are negative


def between_classes(labels_N: np.ndarray, num_classes: int) -> np.ndarray:
    """Return N / (N_c C) of each image, N_c images having its label: every class weighs the same.

    A class without images has no image to weigh, so nothing is divided by zero.
    """
    counts_C = np.bincount(labels_N, minlength=num_classes)
    return len(labels_N) / (counts_C[labels_N] * num_classes)


def entropy(logits_NC: np.ndarray) -> np.ndarray:
    """Return the entropy (nats) of each image's softmax."""
    shifted_NC = logits_NC - logits_NC.max(1, keepdims=True)
    weights_NC = np.exp(shifted_NC)
    total_N = weights_NC.sum(1)
    return np.log(total_N) - (weights_NC * shifted_NC).sum(1) / total_N


def within_classes(
    labels_N: np.ndarray,
    entropy_N: np.ndarray,
    kind: Within,
    *,
    scope: Scope,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return each image's weight within its class (`scope` class) or its task.

    As many values as images are drawn from N(1, 1/4) (variance), or are its quantiles, or are drawn
    from U(0.5, 1.5); the surest image, that of lowest entropy, gets the largest. `inverse_entropy`
    is 1 / entropy, scaled to a mean of 1. Equal entropies keep the order of the images.
    """
    if kind == "none":
        return np.ones(len(labels_N))
    weight_N = np.empty(len(labels_N))
    groups = labels_N if scope == "class" else np.zeros_like(labels_N)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        if kind == "inverse_entropy":
            inverse = 1 / np.maximum(entropy_N[own], SMALLEST)
            weight_N[own] = inverse / inverse.mean()
            continue
        least_sure_first = own[np.argsort(-entropy_N[own], kind="stable")]
        weight_N[least_sure_first] = np.maximum(_ascending(kind, len(own), rng), SMALLEST)
    return weight_N


def _ascending(kind: Within, count: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "quantile":
        return 1 + 0.5 * ndtri((np.arange(count) + 0.5) / count)
    if kind == "uniform":
        return np.sort(rng.uniform(0.5, 1.5, count))
    return np.sort(rng.normal(1, 0.5, count))
