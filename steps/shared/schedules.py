"""Schedules of training: update (from 1) -> multiplier of the peak rate, or examples to read."""

import math
from collections.abc import Callable

import numpy as np

from steps.shared.runtime import InputError

Schedule = Callable[[int], float]


def warmup(steps: int, share: float) -> Schedule:
    """Return a linear rise to 1 over a share of the updates, then 1."""
    updates = max(1, round(share * steps))
    return lambda update: min(1.0, update / updates)


def warmup_cosine(steps: int, share: float) -> Schedule:
    """Return a linear rise to 1 over a share of the updates, then half a cosine down to 0.

    The last update has the multiplier of half a step before the end, so that it still learns.
    """
    updates = max(1, round(share * steps))

    def multiplier(update: int) -> float:
        if update <= updates:
            return update / updates
        return (1 + math.cos(math.pi * (update - updates - 0.5) / (steps - updates))) / 2

    return multiplier


def epochs(rng: np.random.Generator, count: int, batch_size: int, updates: int) -> np.ndarray:
    """Return the examples, of `count`, of every update (updates x B), each epoch in a new order.

    A batch that is larger than an epoch is an `InputError`.
    """
    if not 1 <= batch_size <= count:
        raise InputError(f"batch_size = {batch_size}: must be 1 to the {count} training examples")
    orders = [rng.permutation(count) for _ in range(-(-updates * batch_size // count))]
    return np.concatenate(orders)[: updates * batch_size].reshape(updates, batch_size)
