"""Intervals and verdicts: the statistics on simulated data, the verdicts at their boundaries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from steps.shared.intervals import item_half_width, rank_correlation, t_interval, verdict


# statistics on simulated data
# ----------------------------
@pytest.mark.parametrize("n", [5, 8])
def test_the_interval_covers_the_truth_95_times_in_100(n):
    """20,000 draws: four binomial standard errors are 0.62 %."""
    values = np.random.default_rng(n).normal(1.0, 3.0, size=(n, 20_000))
    _, _, low, high = t_interval(values)
    covered = ((low <= 1.0) & (high >= 1.0)).mean()
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 20_000)


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("n", [5, 8])
def test_under_the_null_at_most_25_in_1000_hold(n, side):
    values = np.random.default_rng(10 + n).normal(0.0, 1.0, size=(n, 10_000))
    _, _, low, high = t_interval(values)
    pairs = zip(low, high, strict=True)
    verdicts = [verdict(a, b, kind="direction", side=side, delta=0.1) for a, b in pairs]
    rate = verdicts.count("holds") / len(verdicts)
    assert rate <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / 10_000)
    assert rate > 0.015


def test_five_seeds_see_two_sd_and_three_seeds_mostly_do_not():
    """The power of the paired t test at an effect of 2 sd: 0.93 at n = 5, 0.43 at n = 3."""
    rng = np.random.default_rng(3)
    power = {}
    for n in (3, 5):
        _, _, low, _ = t_interval(rng.normal(2.0, 1.0, size=(n, 4000)))
        power[n] = (low > 0).mean()
    assert power[5] > 0.88
    assert power[3] < 0.55


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12))
def test_interval_agrees_with_scipy(values):
    values = np.round(values, 3)
    mean, sd, low, high = t_interval(values)
    if sd > 0:
        expected = stats.t.interval(0.95, len(values) - 1, mean, sd / math.sqrt(len(values)))
        np.testing.assert_allclose((low, high), expected, rtol=1e-9, atol=1e-9)


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=9), st.randoms())
def test_rank_correlation_agrees_with_scipy_and_ties_carry_no_order(values, random):
    against = list(range(len(values)))
    random.shuffle(against)
    ours = rank_correlation(values, against)
    if len(set(values)) == 1:
        assert ours == 0
    else:
        assert ours == pytest.approx(stats.spearmanr(values, against).statistic, abs=1e-12)


def test_seeds_are_resampled_with_the_items():
    """Item noise of 0.2 / sqrt(400) is a hundredth of the seeds' sd of 1: the seeds' t decides."""
    rng = np.random.default_rng(4)
    levels = rng.normal(0, 1, 6)
    new = levels[:, None, None] + rng.normal(0, 0.2, (6, 1, 400))
    sides = [new, np.zeros_like(new)]

    def half(seeds_vary):
        mean = lambda a, b: a.mean(-1) - b.mean(-1)  # noqa: E731
        rng = np.random.default_rng(0)
        return item_half_width(sides, mean, seeds_vary=seeds_vary, rng=rng)

    expected = stats.t.ppf(0.975, 5) * levels.std(ddof=1) / math.sqrt(6)
    assert half(True) == pytest.approx(expected, rel=0.1)
    assert half(False) < 0.05 * expected


# verdicts
# --------
finite = st.floats(-10, 10).filter(lambda v: abs(v) > 1e-6)


@given(finite, finite, st.floats(0.01, 5), st.sampled_from(["direction", "size"]))
def test_verdicts_mirror_and_never_contradict(a, b, delta, kind):
    low, high = min(a, b), max(a, b)
    above = verdict(low, high, kind=kind, side="above", delta=delta)
    assert above == verdict(-high, -low, kind=kind, side="below", delta=delta)
    below = verdict(low, high, kind=kind, side="below", delta=delta)
    assert not above == below == "holds"
    if low < 0 < high:
        assert above != "holds"
    if kind == "size" and above == "holds":
        assert verdict(low, high, kind="direction", side="above", delta=delta) == "holds"
    if verdict(low, high, kind="direction", side="above", delta=delta) == "holds":
        assert verdict(low, high, kind="direction", side="at_least", delta=delta) == "holds"


@pytest.mark.parametrize(
    ("low", "high", "kind", "side", "expected"),
    [
        (0.01, 0.5, "direction", "above", "holds"),
        (0.0, 0.5, "direction", "above", "inconclusive"),
        (-0.05, 0.05, "direction", "above", "fails"),
        (-0.1, 0.05, "direction", "above", "inconclusive"),
        (-0.5, -0.01, "direction", "above", "fails"),
        (-0.5, 0.5, "direction", "above", "inconclusive"),
        (-0.09, 0.5, "direction", "at_least", "holds"),
        (-0.1, 0.5, "direction", "at_least", "inconclusive"),
        (-0.5, -0.2, "direction", "at_least", "fails"),
        (-0.5, -0.05, "direction", "at_least", "fails"),
        (-0.5, 0.09, "direction", "at_most", "holds"),
        (-0.05, 0.05, "direction", "equal", "holds"),
        (-0.05, 0.2, "direction", "equal", "inconclusive"),
        (0.11, 0.2, "direction", "equal", "fails"),
        (0.11, 0.2, "size", "above", "holds"),
        (0.05, 0.2, "size", "above", "inconclusive"),
        (0.01, 0.09, "size", "above", "fails"),
        (-0.3, -0.11, "size", "below", "holds"),
    ],
)
def test_verdict_table(low, high, kind, side, expected):
    assert verdict(low, high, kind=kind, side=side, delta=0.1) == expected
