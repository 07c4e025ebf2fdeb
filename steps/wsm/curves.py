"""Decay curves and merge weights (WSM, arXiv 2507.17634, Theorem 3.1).

A run at constant learning rate leaves checkpoints theta_0 .. theta_k with updates
u_i = theta_{i-1} - theta_i (learning rate included, whatever the optimizer). Then

    sum_{j=0..k} c_j theta_j = theta_0 - sum_{i=1..k} w_i u_i      with w_i = sum_{j=i..k} c_j :

averaging with weights c applies to each update the decay w. The inverse is c_k = w_k,
c_j = w_j - w_{j+1}, c_0 = 1 - w_1; c >= 0 exactly where 1 >= w_1 >= ... >= w_k >= 0.
Arrays: `c` (n,) oldest first, `w` (k,) with n = k + 1. All in float64.
"""

import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from steps.shared.runtime import InputError

Curve = Callable[[np.ndarray], np.ndarray]  # f(t), t in [0, 1]: the fraction of the learning rate


def linear(t: np.ndarray) -> np.ndarray:
    """1 - t. On the grid i/n the merge is exactly the mean."""
    return 1 - t


def cosine(t: np.ndarray) -> np.ndarray:
    """(1 + cos pi t) / 2: weights peak in the middle of the window."""
    return (1 + np.cos(np.pi * t)) / 2


def one_minus_sqrt(t: np.ndarray) -> np.ndarray:
    """1 - sqrt t, the paper's best: convex, so the oldest checkpoint weighs most."""
    return 1 - np.sqrt(t)


def one_minus_square(t: np.ndarray) -> np.ndarray:
    """1 - t^2: weights grow towards the newest checkpoint."""
    return 1 - t**2


def inverse_sqrt(steepness: float) -> Curve:
    """1 / sqrt(1 + steepness t): ends at the floor 1 / sqrt(1 + steepness)."""
    return lambda t: 1 / np.sqrt(1 + steepness * t)


def exponential(rate: float) -> Curve:
    """exp(-rate t): weights fall from the oldest checkpoint on."""
    return lambda t: np.exp(-rate * t)


def table(values: Sequence[float]) -> Curve:
    """Interpolate `values`, spread evenly over [0, 1], linearly."""
    values = np.asarray(values, np.float64)
    if values.ndim != 1 or values.size < 2:
        raise InputError(f"curve: a table of {values.size} value(s) (allowed: two or more)")
    return lambda t: np.interp(t, np.linspace(0, 1, values.size), values)


CURVES: dict[str, Curve] = {
    "linear": linear,
    "cosine": cosine,
    "1-sqrt": one_minus_sqrt,
    "one_minus_sqrt": one_minus_sqrt,
    "1-t^2": one_minus_square,
    "one_minus_square": one_minus_square,
}
PARAMETRIC: dict[str, Callable[[float], Curve]] = {
    "inverse_sqrt": inverse_sqrt,
    "exponential": exponential,
}


def parse_curve(text: str) -> Curve | str:
    """Return the curve a name stands for: "cosine", "inverse_sqrt:15", "ema:0.2", "1,0.7,0.1".

    A comma-separated list is a `table`. "constant_last" and "ema:alpha" stay names, since their
    weights depend on how many checkpoints there are: `merge_weights` knows them.
    """
    name, _, argument = text.partition(":")
    if text in CURVES:
        return CURVES[text]
    if text == "constant_last" or (name == "ema" and 0 < _number(text, argument) <= 1):
        return text
    if name in PARAMETRIC and _number(text, argument) > 0:
        return PARAMETRIC[name](_number(text, argument))
    if "," in text:
        return table([_number(text, part) for part in text.split(",")])
    names = [
        *CURVES,
        *(f"{name}:RATE" for name in PARAMETRIC),
        "ema:ALPHA",
        "constant_last",
        "1,0.5,0",
    ]
    raise InputError(f"curve: {text!r} (allowed: {', '.join(names)}; RATE > 0, 0 < ALPHA <= 1)")


def _number(text: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise InputError(f"curve: {text!r}: {part!r} is not a number") from None


def grid(n: int, name: str) -> np.ndarray:
    """Return the k = n - 1 positions t at which updates 1 .. k of n checkpoints read a curve.

    - "i/n", the usual one: the curve would reach its end one update after the window, so every
      checkpoint has a weight; linear gives exactly the mean.
    - "i/k": the curve ends at the last update; where f(1) = 0 the newest checkpoint has weight 0.
    - "(i-1)/k": the curve starts at the first update; where f(0) = 1 the oldest has weight 0.
    """
    i, k = np.arange(1, n, dtype=np.float64), max(n - 1, 1)
    positions = {"i/n": i / n, "i/k": i / k, "(i-1)/k": (i - 1) / k}
    if name not in positions:
        raise InputError(f"grid: {name!r} (allowed: {', '.join(positions)})")
    return positions[name]


def merge_weights(curve: Curve | str | Sequence[float], n: int, *, grid: str) -> np.ndarray:
    """Return the weights c (n,), oldest first, that give n checkpoints the decay `curve`.

    `curve` is f(t), a name that `parse_curve` reads, or a table of values over [0, 1].
    """
    if n < 1:
        raise InputError(f"merge: {n} checkpoints (allowed: 1 or more)")
    if isinstance(curve, str):
        curve = parse_curve(curve)
    if isinstance(curve, str):
        return np.eye(n)[-1] if curve == "constant_last" else ema(n, float(curve[4:]))
    if not callable(curve):
        curve = table(curve)
    return decay_to_weights(np.asarray(curve(_positions(n, grid)), np.float64))


_positions = grid  # `merge_weights` has an option of that name


def ema(n: int, alpha: float) -> np.ndarray:
    """Return the weights of m <- (1 - alpha) m + alpha theta, started at the first checkpoint."""
    c = alpha * (1 - alpha) ** np.arange(n - 1, -1, -1, dtype=np.float64)
    c[0] = (1 - alpha) ** (n - 1)
    return _checked(c)


def decay_to_weights(w: np.ndarray) -> np.ndarray:
    """Return c (k + 1,) for the decay w (k,)."""
    return _checked(-np.diff(np.concatenate(([1.0], np.asarray(w, np.float64), [0.0]))))


def weights_to_decay(c: np.ndarray) -> np.ndarray:
    """Return the decay w (k,) that the weights c (k + 1,) amount to: suffix sums."""
    return np.cumsum(np.asarray(c, np.float64)[::-1])[::-1][1:]


def decay_to_weights_with_weight_decay(
    w: np.ndarray, *, lr: float, weight_decay: float
) -> np.ndarray:
    """Return c (k + 1,) for the decay w (k,) of a run with decoupled weight decay (AdamW).

    The constant run theta_j = a theta_{j-1} - lr p_j, a = 1 - lr weight_decay, becomes the run
    whose learning rate is w_j lr in both places, s_j = 1 - lr weight_decay w_j, by

        v_l = w_l prod_{m>l} s_m,  c_k = v_k,  c_l = v_l - a v_{l+1},  c_0 = prod_m s_m - a v_1.

    One update a checkpoint; with weight_decay 0 this is `decay_to_weights`.
    """
    w = np.asarray(w, np.float64)
    keep = 1 - lr * weight_decay
    shrink = np.cumprod((1 - lr * weight_decay * w)[::-1])[::-1]  # prod_{m>=l} s_m
    later = np.append(shrink[1:], 1.0)[: w.size]
    v = np.concatenate((shrink[:1] if w.size else [1.0], w * later, [0.0]))
    return _checked(v[:-1] - keep * v[1:])


def per_step(w: np.ndarray, steps_per_checkpoint: int) -> np.ndarray:
    """Return the decay of every step: the updates between two checkpoints share one value."""
    return np.repeat(np.asarray(w, np.float64), steps_per_checkpoint)


def reverse(c: np.ndarray) -> np.ndarray:
    """Control: the same weights, newest first."""
    return np.asarray(c)[::-1].copy()


def scramble(c: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Control: the same weights in a random order."""
    return rng.permutation(np.asarray(c))


def _checked(c: np.ndarray) -> np.ndarray:
    if not np.isfinite(c).all():
        raise InputError("curve: a value is NaN or infinite (allowed: finite numbers)")
    # Telescoping: the sum is 1 up to rounding in the largest terms.
    assert abs(c.sum() - 1) <= 1e-9 * max(1.0, np.abs(c).max()), c
    if (c < -1e-12).any():
        warnings.warn("curve rises or leaves [0, 1]: some weights are negative", stacklevel=3)
    return c


class OnlineWindow:
    """Running mean of the last n checkpoints: one addition and one subtraction per new one.

    Arrays are keyed by name and summed in float64; every `rebuild_every` additions the sums are
    formed anew, so that rounding cannot build up.
    """

    def __init__(self, n: int, *, rebuild_every: int) -> None:
        if n < 1 or rebuild_every < 1:
            raise InputError(f"window: n={n}, rebuild_every={rebuild_every} (allowed: 1 or more)")
        self.rebuild_every = rebuild_every
        self._window: deque[Mapping[str, np.ndarray]] = deque(maxlen=n)
        self._sum: dict[str, np.ndarray] = {}
        self._since_rebuild = 0

    def add(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take up a checkpoint (copied); the oldest leaves a full window."""
        new = {name: np.array(value) for name, value in arrays.items()}
        full = len(self._window) == self._window.maxlen
        old = self._window[0] if full else {}
        self._window.append(new)
        self._since_rebuild += 1
        if self._since_rebuild >= self.rebuild_every or not self._sum:
            self._sum = {
                name: sum(a[name].astype(np.float64) for a in self._window) for name in new
            }
            self._since_rebuild = 0
            return
        for name, total in self._sum.items():
            total += new[name]
            if old:
                total -= old[name]

    def mean(self) -> dict[str, np.ndarray]:
        """Return the mean of the checkpoints in the window, float64."""
        return {name: total / len(self._window) for name, total in self._sum.items()}
