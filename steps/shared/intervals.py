"""Intervals over seeds and items, and the verdicts drawn from them.

Shapes: S seeds, P points (cells of a table), I items, B bootstrap replicates.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.random import Generator

LEVEL = 0.95
REPLICATES = 1000


def t_interval(values: Any, *, axis: int = 0) -> tuple[Any, Any, Any, Any]:
    """Return mean, sd and the two ends of the 95 % t interval along `axis`; nan where n < 2."""
    import numpy as np

    values = np.asarray(values, dtype=float)
    n = values.shape[axis]
    mean = values.mean(axis)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown, unknown
    sd = values.std(axis, ddof=1)
    half = t_quantile(n - 1) * sd / np.sqrt(n)
    return mean, sd, mean - half, mean + half


def t_quantile(degrees: int) -> float:
    """Return the quantile of Student's t that bounds a two-sided 95 % interval."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def verdict(low: float, high: float, *, kind: str, side: str, delta: float) -> str:
    """Return the verdict on an effect whose 95 % interval is [low, high] and whose null is 0.

    A direction holds wholly beyond 0 on the claimed side (at_least and at_most: beyond -delta),
    and fails wholly on the other side of 0 or inside +-delta. A size has its boundary at delta
    instead of 0. `equal` holds inside +-delta and fails outside.
    """
    if side in ("below", "at_most"):
        low, high = -high, -low
    inside = -delta < low and high < delta
    if side == "equal":
        holds, fails = inside, low > delta or high < -delta
    elif kind == "size":
        holds, fails = low > delta, high < delta
    elif side in ("at_least", "at_most"):
        holds, fails = low > -delta, high < 0
    else:
        holds, fails = low > 0, high < 0 or inside
    return "holds" if holds else "fails" if fails else "inconclusive"


def item_half_width(
    sides: Sequence["ndarray"],
    scalar: Callable[..., "ndarray"],
    *,
    seeds_vary: bool,
    rng: "Generator",
) -> float:
    """Return the half width of the 95 % interval of the mean of `scalar` over seeds.

    `sides`: the two operands, each S x P x I; `scalar` takes their item means (..., S, P) to
    (..., S). Items are resampled, and seeds with them where they vary; the bootstrap's standard
    error is widened by t over the smaller count, since a percentile interval of few is too narrow.
    """
    import numpy as np

    num_seeds, _, num_items = sides[0].shape
    counts_BI = rng.multinomial(num_items, np.full(num_items, 1 / num_items), size=REPLICATES)
    means = [side @ counts_BI.T / num_items for side in sides]
    scalars_BS = scalar(*(np.moveaxis(mean_SPB, -1, 0) for mean_SPB in means))
    smaller = num_items
    if seeds_vary:
        chosen_BS = rng.integers(num_seeds, size=scalars_BS.shape)
        scalars_BS = np.take_along_axis(scalars_BS, chosen_BS, axis=1)
        smaller = min(num_seeds, num_items)
    if smaller < 2:
        return float("nan")
    error = scalars_BS.mean(1).std() * np.sqrt(smaller / (smaller - 1))
    return float(t_quantile(smaller - 1) * error)


def rank_correlation(values: Any, against: Any) -> Any:
    """Return Spearman's correlation along the last axis; 0 where all values are equal."""
    import numpy as np

    a, b = (_centred_ranks(np.asarray(side, dtype=float)) for side in (values, against))
    scale = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.divide((a * b).sum(-1), scale, out=np.zeros_like(scale), where=scale > 0)


def _centred_ranks(values: "ndarray") -> "ndarray":
    """Return ranks less their mean, ties averaged: half the lower values less the higher ones."""
    import numpy as np

    return np.sign(values[..., :, None] - values[..., None, :]).sum(-1) / 2
