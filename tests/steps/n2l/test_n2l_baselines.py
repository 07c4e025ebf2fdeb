"""The compared methods: ridge search, random expansion, fine-tuning, measures."""

import numpy as np
import pytest
from n2l_problems import blobs

from steps.n2l import baselines, measures
from steps.n2l.ridge import one_hot

RIDGES = [10.0**power for power in range(-3, 9)]


@pytest.mark.parametrize("width", [10, 300])
def test_one_factorisation_gives_the_losses_of_every_ridge(width):
    """RanPAC's search: a solve for each ridge on the first 80 % of a task, errors on the rest."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, width)), one_hot(rng.integers(0, 5, 100), 5)
    expected = []
    for ridge in RIDGES:
        w = np.linalg.solve(x[:80].T @ x[:80] + ridge * np.eye(width), x[:80].T @ y[:80])
        expected.append(np.mean((x[80:] @ w - y[80:]) ** 2))
    np.testing.assert_allclose(baselines.hold_out_losses(x, y, RIDGES), expected, rtol=1e-8)


def test_the_held_out_fifth_is_drawn_from_all_classes():
    """Clusters with large margins, sorted by class: nothing but a tiny ridge fits the last ones."""
    x, labels, _ = blobs(0, noise=0.3)
    rng = np.random.default_rng(0)
    targets = one_hot(labels, 6)
    sorted_choice = RIDGES[int(baselines.hold_out_losses(x, targets, RIDGES).argmin())]
    choice = baselines.search_ridge(x, labels, RIDGES, rng)
    order = np.random.default_rng(0).permutation(len(x))
    losses = baselines.hold_out_losses(x[order], targets[order], RIDGES)
    assert choice == RIDGES[int(losses.argmin())] != sorted_choice


def test_the_expansion_is_the_same_for_a_seed_and_keeps_the_size():
    one, two = (baselines.projection(64, 500, seed) for seed in (0, 0))
    assert (one == two).all() and (one != baselines.projection(64, 500, 1)).any()
    x = np.random.default_rng(0).normal(size=(50, 64))
    found = baselines.expanded(x, one)
    assert found.shape == (50, 500) and found.min() == 0
    assert (found**2).mean() == pytest.approx((x**2).mean() / 2, rel=0.1)
    assert baselines.expanded(x, None) is x


def test_fine_tuning_learns_a_task_and_forgets_the_one_before():
    x, labels, text = blobs(0, noise=1.5, per_class=80)
    learner = baselines.FineTuned(20.0, rate=5e-3, epochs=10, batch_size=32)
    rng = np.random.default_rng(0)
    first, second = labels < 3, labels >= 3
    learner.learn(x[first], labels[first], text[:3], rng)
    before = ((x[first] @ learner.w_CD.T).argmax(1) == labels[first]).mean()
    learner.learn(x[second], labels[second], text[3:], rng)
    scores = x @ learner.w_CD.T
    assert ((scores.argmax(1) == labels)[second]).mean() > 0.8
    assert ((scores.argmax(1) == labels)[first]).mean() < before - 0.1


def test_a_gradient_step_is_that_of_the_cross_entropy():
    import torch

    x, labels, text = blobs(1, per_class=2)
    learner = baselines.FineTuned(7.0, rate=0.01, epochs=1, batch_size=100)
    learner.learn(x, labels, text, np.random.default_rng(0))
    unit = torch.nn.functional.normalize
    w = unit(torch.tensor(text), dim=1).requires_grad_()
    optimizer = torch.optim.Adam([w], lr=0.01)
    logits = 7 * unit(torch.tensor(x), dim=1) @ w.T
    torch.nn.functional.cross_entropy(logits, torch.tensor(labels)).backward()
    optimizer.step()
    np.testing.assert_allclose(learner.w_CD, w.detach().numpy(), atol=1e-9)


def test_accuracies_and_forgetting_over_tasks():
    task = np.array([0, 0, 1, 1])
    right = [np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 1], bool)]
    found = measures.over_tasks(right, task)
    assert found["curve"] == [100.0, 75.0] and found["average"] == 87.5 and found["last"] == 75.0
    assert found["forgetting"] == 50.0  # of the first task, 100 before and 50 after
    alone = measures.over_tasks([np.array([True, False])], np.array([0, 0]))
    assert alone["forgetting"] == 0 and alone["last"] == 50


def test_lengths_of_columns():
    found = measures.column_lengths(np.diag([1.0, 3.0]), [np.array([0]), np.array([1, 1])])
    assert found == pytest.approx({"norm_variation": 0.5, "norm_correlation": 1.0})
    assert measures.largest_error(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == 0.5
