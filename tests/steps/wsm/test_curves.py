"""Theorem 3.1 (arXiv 2507.17634) as identities, and the places where it is only a limit."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steps.shared.runtime import InputError
from steps.wsm import curves
from steps.wsm.curves import (
    OnlineWindow,
    decay_to_weights,
    decay_to_weights_with_weight_decay,
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


def adamw_run(steps: int) -> list[torch.Tensor]:
    """Record every parameter vector of AdamW on a small nonconvex loss, in float64."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(64, 5, dtype=torch.float64, generator=generator)
    target = torch.sin(inputs).sum(1)
    theta = torch.randn(5, 5, dtype=torch.float64, generator=generator).requires_grad_()
    optimizer = torch.optim.AdamW([theta], lr=0.05, betas=(0.9, 0.95), weight_decay=0.1)
    recorded = [theta.detach().clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        ((torch.tanh(inputs @ theta).sum(1) - target) ** 2).mean().backward()
        optimizer.step()
        recorded.append(theta.detach().clone())
    return recorded


@pytest.mark.parametrize("name", NAMES)
def test_identity_on_a_recorded_adamw_run(name):
    """Merge = decayed sum of updates for any optimizer; at worst some 40 roundings of 1e-16."""
    theta = torch.stack(adamw_run(40)).numpy()
    c = merge_weights(name, len(theta), grid="i/n")
    updates = theta[:-1] - theta[1:]
    decayed = theta[0] - np.tensordot(weights_to_decay(c), updates, 1)
    assert np.abs(np.tensordot(c, theta, 1) - decayed).max() < 1e-12
    assert np.abs(updates).max() > 1e-2  # the run did move


def test_decayed_sgd_on_a_linear_loss_is_the_merge():
    """Gradients that do not depend on theta: decaying the rate and merging are the same."""
    gradients = np.random.default_rng(0).standard_normal((30, 4))
    w = weights_to_decay(merge_weights("1-sqrt", 31, grid="i/n"))
    constant = np.concatenate((np.zeros((1, 4)), np.cumsum(-0.1 * gradients, axis=0)))
    decayed = -(0.1 * w[:, None] * gradients).sum(0)
    assert np.abs(decay_to_weights(w) @ constant - decayed).max() < 1e-13


@settings(max_examples=40)
@given(
    k=st.integers(1, 40),
    lr=st.floats(1e-4, 0.5),
    weight_decay=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
def test_weight_decay_correction_is_exact(k, lr, weight_decay, seed):
    """Against the two recursions; any w in [0, 1], sorted, and any directions p."""
    rng = np.random.default_rng(seed)
    w, p = np.sort(rng.random(k))[::-1], rng.standard_normal((k, 3))
    constant, decayed = [rng.standard_normal(3)], None
    decayed = constant[0]
    for rate, direction in zip(w, p, strict=True):
        constant.append((1 - lr * weight_decay) * constant[-1] - lr * direction)
        decayed = (1 - rate * lr * weight_decay) * decayed - rate * lr * direction
    c = decay_to_weights_with_weight_decay(w, lr=lr, weight_decay=weight_decay)
    assert np.abs(c @ np.array(constant) - decayed).max() < 1e-12
    without = decay_to_weights_with_weight_decay(w, lr=lr, weight_decay=0.0)
    np.testing.assert_allclose(without, decay_to_weights(w), atol=1e-15)


def test_the_plain_map_ignores_weight_decay():
    """At lr x weight decay = .05 over 30 updates the plain map is off by more than 1 %."""
    rng = np.random.default_rng(0)
    w, p = weights_to_decay(merge_weights("linear", 31, grid="i/n")), rng.standard_normal((30, 3))
    constant, decayed = [np.ones(3)], np.ones(3)
    for rate, direction in zip(w, p, strict=True):
        constant.append(0.95 * constant[-1] - 0.5 * direction)
        decayed = (1 - 0.05 * rate) * decayed - 0.5 * rate * direction
    exact = decay_to_weights_with_weight_decay(w, lr=0.5, weight_decay=0.1)
    assert np.abs(exact @ np.array(constant) - decayed).max() < 1e-13
    assert np.abs(decay_to_weights(w) @ np.array(constant) - decayed).max() > 1e-2


def test_torch_swa_utils_are_special_cases():
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2, dtype=torch.float64)
    mean, ema = AveragedModel(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    recorded = []
    for _ in range(12):
        with torch.no_grad():
            model.weight.add_(torch.randn_like(model.weight))
        recorded.append(model.weight.detach().clone().numpy())
        mean.update_parameters(model)
        ema.update_parameters(model)
    for name, averaged in (("linear", mean), ("ema:0.2", ema)):
        ours = np.tensordot(merge_weights(name, 12, grid="i/n"), recorded, 1)
        assert np.abs(ours - averaged.module.weight.detach().numpy()).max() < 1e-14


def expected_losses(lr: float, w: np.ndarray) -> tuple[float, float]:
    """Return E[theta^2 / 2] of decayed SGD and of the merge, gradients theta + unit noise.

    theta_j = (1 - lr) theta_{j-1} - lr e_j, from the stationary variance lr / (2 - lr). The
    constant run's covariance is cov(theta_i, theta_j) = variance (1 - lr)^|i-j|.
    """
    variance = lr / (2 - lr)
    decayed = variance
    for rate in w:
        decayed = (1 - rate * lr) ** 2 * decayed + (rate * lr) ** 2
    c = decay_to_weights(w)
    distance = np.abs(np.subtract.outer(np.arange(c.size), np.arange(c.size)))
    merged = c @ (variance * (1 - lr) ** distance) @ c
    return decayed / 2, merged / 2


@pytest.mark.parametrize("name", ["linear", "cosine", "1-sqrt"])
def test_decay_and_merge_agree_on_a_quadratic_as_the_rate_vanishes(name):
    """The gap relative to what decaying gains is of first order: it halves with the rate."""
    w = weights_to_decay(merge_weights(name, 21, grid="i/n"))
    gaps = []
    for lr in (1e-2, 5e-3, 2.5e-3, 1.25e-3):
        decayed, merged = expected_losses(lr, w)
        gaps.append(abs(decayed - merged) / (lr / (2 - lr) / 2 - decayed))
    ratios = np.array(gaps[1:]) / gaps[:-1]
    assert gaps[0] > 2e-3  # at a finite rate they do differ
    assert ((ratios > 0.4) & (ratios < 0.6)).all(), gaps


def test_merging_lowers_the_expected_loss():
    """At the same rate, either way of decaying beats staying at the stationary variance."""
    w = weights_to_decay(merge_weights("linear", 200, grid="i/n"))
    decayed, merged = expected_losses(0.1, w)
    assert max(decayed, merged) < 0.1 / 1.9 / 2 / 3


@settings(max_examples=30)
@given(n=st.integers(1, 7), steps=st.integers(1, 30), rebuild_every=st.integers(1, 40))
def test_online_window_is_the_mean_of_the_last(n, steps, rebuild_every):
    rng = np.random.default_rng(steps)
    window, seen = OnlineWindow(n, rebuild_every=rebuild_every), []
    for _ in range(steps):
        arrays = {"w": rng.standard_normal((3, 2)).astype(np.float32), "b": rng.standard_normal(2)}
        window.add(arrays)
        seen.append({name: value.copy() for name, value in arrays.items()})
        arrays["w"][:] = np.nan  # the window keeps copies
        for name in ("w", "b"):
            direct = np.mean([a[name].astype(np.float64) for a in seen[-n:]], axis=0)
            np.testing.assert_allclose(window.mean()[name], direct, rtol=0, atol=1e-14)


def test_online_window_rebuild_removes_what_a_large_value_left():
    """1e16 swallows the 1 beside it; after the rebuild the mean is exact again."""
    values = [1e16, *[1.0] * 6]
    kept, rebuilt = OnlineWindow(2, rebuild_every=100), OnlineWindow(2, rebuild_every=5)
    for value in values:
        for window in (kept, rebuilt):
            window.add({"x": np.array([value])})
    assert rebuilt.mean()["x"].tolist() == [1.0]
    assert kept.mean()["x"].tolist() != [1.0]
