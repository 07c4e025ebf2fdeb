"""Merging against decay: on recorded runs, with weight decay, and in the limit of small rates."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steps.wsm.curves import (
    OnlineWindow,
    decay_to_weights,
    decay_to_weights_with_weight_decay,
    merge_weights,
    weights_to_decay,
)

NAMES = ["linear", "cosine", "1-sqrt", "1-t^2", "inverse_sqrt:15", "exponential:3", "ema:0.2"]


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
