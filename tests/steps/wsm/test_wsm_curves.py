"""Theorem 3.1 (arXiv 2507.17634) as identities, and the places where it is only a limit."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steps.shared.runtime import InputError
from steps.wsm import curves
from steps.wsm.curves import (
    decay_to_weights,
    merge_weights,
    parse_curve,
    per_step,
    weights_to_decay,
)

NAMES = ["linear", "cosine", "1-sqrt", "1-t^2", "inverse_sqrt:15", "exponential:3", "ema:0.2"]
GRIDS = ["i/n", "i/k", "(i-1)/k"]


@settings(max_examples=60)
@given(w=st.lists(st.floats(-2, 3), min_size=0, max_size=60))
def test_the_map_is_inverted_exactly(w):
    """64 sums of numbers below 5: rounding stays under 64 * 5 * 2^-52 = 7e-14."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = decay_to_weights(np.array(w))
    assert c.shape == (len(w) + 1,)
    assert abs(c.sum() - 1) < 1e-13
    np.testing.assert_allclose(weights_to_decay(c), w, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_decreasing_curves_give_proper_averages(name, grid, n):
    c = merge_weights(name, n, grid=grid)
    assert c.shape == (n,)
    assert (c >= -1e-15).all()
    assert abs(c.sum() - 1) < 1e-12


@pytest.mark.parametrize("n", range(1, 51))
def test_megatron_grid(n):
    """Positions t_i = i/n: linear is the mean, 1-sqrt has c_i = sqrt((i+1)/n) - sqrt(i/n)."""
    np.testing.assert_allclose(merge_weights("linear", n, grid="i/n"), 1 / n, rtol=1e-13)
    expected = [((i + 1) / n) ** 0.5 - (i / n) ** 0.5 for i in range(n)]
    np.testing.assert_allclose(merge_weights("1-sqrt", n, grid="i/n"), expected, atol=1e-15)


def test_published_values_for_thirteen_checkpoints():
    """1-sqrt: the oldest weighs most, 1/sqrt 13 = .277; cosine: .015 at both ends."""
    one_minus_sqrt = merge_weights("1-sqrt", 13, grid="i/n")
    assert one_minus_sqrt[0] == pytest.approx(13**-0.5)
    assert (np.diff(one_minus_sqrt) < 0).all()
    cosine = merge_weights("cosine", 13, grid="i/n")
    assert cosine[[0, -1]].round(3).tolist() == [0.015, 0.015]
    assert cosine.argmax() == 6


def test_what_each_grid_does():
    assert merge_weights("linear", 5, grid="i/k")[-1] == 0
    assert merge_weights("linear", 5, grid="(i-1)/k")[0] == 0
    assert (merge_weights("linear", 5, grid="i/n") > 0).all()


def test_ema_closed_form():
    c, k, alpha = merge_weights("ema:0.3", 9, grid="i/n"), 8, 0.3
    expected = [1 - (1 - alpha) ** (k - i + 1) for i in range(1, k + 1)]
    np.testing.assert_allclose(weights_to_decay(c), expected, atol=1e-15)
    assert merge_weights("ema:1", 9, grid="i/n").tolist() == [0.0] * 8 + [1.0]
    assert merge_weights("constant_last", 3, grid="i/n").tolist() == [0, 0, 1]


def test_curves_of_ones_own():
    c = merge_weights(lambda t: np.sqrt(1 - t), 13, grid="i/n")
    mirrored = curves.reverse(merge_weights("1-sqrt", 13, grid="i/n"))
    np.testing.assert_allclose(c, mirrored, atol=1e-15)
    uniform = merge_weights("linear", 8, grid="i/n")
    for table in ([1.0, 0.5, 0.0], "1,0.5,0", np.array([1.0, 0.0])):
        np.testing.assert_allclose(merge_weights(table, 8, grid="i/n"), uniform, atol=1e-15)


def test_rising_curves_warn_and_broken_ones_are_refused():
    with pytest.warns(UserWarning, match="negative"):
        c = merge_weights([0.2, 1.0, 0.0], 9, grid="i/n")
    assert c.min() < 0
    assert abs(c.sum() - 1) < 1e-12
    with pytest.raises(InputError, match="finite"):
        merge_weights(lambda t: t * np.nan, 4, grid="i/n")
    for text in ("cosin", "ema:0", "ema:2", "ema", "exponential:x", "inverse_sqrt:-1", "1,x", ""):
        with pytest.raises(InputError, match="curve"):
            parse_curve(text)
    with pytest.raises(InputError, match="grid"):
        merge_weights("linear", 4, grid="n/i")
    with pytest.raises(InputError, match="checkpoints"):
        merge_weights("linear", 0, grid="i/n")


def test_controls_permute():
    c = merge_weights("1-sqrt", 11, grid="i/n")
    scrambled = curves.scramble(c, np.random.default_rng(0))
    assert curves.reverse(c).tolist() == c.tolist()[::-1]
    assert sorted(scrambled) == sorted(c)
    assert scrambled.tolist() != c.tolist()


def test_per_step_is_the_staircase_of_the_merge():
    """Checkpoints every 3 steps: the merge weighs all three updates between two alike."""
    rng = np.random.default_rng(0)
    updates = rng.standard_normal(12)
    theta = -np.concatenate(([0.0], np.cumsum(updates)))
    c = merge_weights("cosine", 5, grid="i/n")
    expected = -(per_step(weights_to_decay(c), 3) * updates).sum()
    assert abs(c @ theta[::3] - expected) < 1e-14
