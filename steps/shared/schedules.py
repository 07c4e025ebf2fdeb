"""Learning-rate schedules: update (from 1) -> multiplier of the peak rate."""

import math
from collections.abc import Callable

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
