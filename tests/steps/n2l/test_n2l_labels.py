"""Pseudo labels, their refinement, Theorem 1, and the weights of images."""

import numpy as np
import pytest
from n2l_problems import blobs

from steps.n2l import weights
from steps.n2l.labelling import Options, label_task, with_length
from steps.n2l.refine import (
    left_vectors,
    probabilities,
    refine,
    ridge_scores,
    threshold,
    zero_shot,
)
from steps.n2l.ridge import one_hot
from steps.shared.runtime import InputError

OPTIONS = Options(
    **{"refine": True, "inter": True, "intra": "normal", "scope": "class", "theta": 1.0},
    **{"iterations": 3, "ridge": 0.1, "zero_shot_scale": 20.0, "entropy_scale": 10.0},
)


# zero-shot labels and refinement
# -------------------------------
def test_cosines_and_probabilities_are_those_of_unit_vectors():
    x, _, text = blobs(0)
    cosine = zero_shot(3 * x, 7 * text)
    expected = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in text] for a in x]
    np.testing.assert_allclose(cosine, expected, atol=1e-12)
    found = probabilities(cosine, 100.0)
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found.argmax(1) == cosine.argmax(1)).all()


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (15, 15)])
def test_left_vectors_are_those_of_an_svd(shape):
    x = np.random.default_rng(0).normal(size=shape)
    u, singular, _ = np.linalg.svd(x, full_matrices=False)
    found, values = left_vectors(x)
    np.testing.assert_allclose(values, singular, rtol=1e-9)
    np.testing.assert_allclose(found * np.sign((found * u).sum(0)), u, atol=1e-8)


def test_lost_directions_of_a_matrix_of_low_rank_are_zero():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 10))
    found, values = left_vectors(x)
    assert (values[3:] == 0).all() and (found[:, 3:] == 0).all() and (values[:3] > 0).all()


@pytest.mark.parametrize("shape", [(180, 16), (12, 40)])
def test_with_theta_0_refinement_is_full_ridge_regression(shape):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=shape), rng.integers(0, 4, shape[0])
    found = refine(x, labels, 4, theta=0.0, ridge=0.1, iterations=1)
    gram = x.T @ x + 0.1 * np.eye(shape[1])
    expected = x @ np.linalg.solve(gram, x.T @ one_hot(labels, 4))
    np.testing.assert_allclose(found.scores_NC, expected, atol=1e-9)
    assert (found.labels_N == expected.argmax(1)).all()


def test_refinement_is_iterated_ridge_regression_in_the_kept_directions():
    x, labels, _ = blobs(1)
    noisy = np.where(np.arange(len(labels)) % 3 == 0, (labels + 1) % 6, labels)
    _, singular, right = np.linalg.svd(x, full_matrices=False)
    theta = (singular[4] + singular[5]) / 2
    reduced, expected = x @ right[:5].T, noisy
    for _ in range(3):
        gram = reduced.T @ reduced + 0.1 * np.eye(5)
        expected = (reduced @ np.linalg.solve(gram, reduced.T @ one_hot(expected, 6))).argmax(1)
    found = refine(x, noisy, 6, theta=theta, ridge=0.1, iterations=3)
    assert (found.labels_N == expected).all()
    assert (found.labels_N == labels).mean() > (noisy == labels).mean() + 0.1


def test_one_image_one_class_and_zeros_are_labelled():
    one = refine(np.ones((1, 5)), np.array([1]), 3, theta="median", ridge=0.1, iterations=3)
    assert one.labels_N.tolist() == [1] and one.singular.shape == (1,)
    x, labels, text = blobs(5)
    alone = label_task(x, zero_shot(x, text[:1]), OPTIONS, np.random.default_rng(0))
    assert (alone.labels_N == 0).all() and np.isfinite(alone.weight_N).all()
    zeros = refine(np.zeros((4, 5)), np.zeros(4, int), 2, theta="median", ridge=0.1, iterations=3)
    assert (zeros.labels_N == 0).all() and (zeros.scores_NC == 0).all()


def test_a_huge_theta_keeps_one_direction():
    x, labels, _ = blobs(2)
    found = refine(x, labels, 6, theta=1e9, ridge=0.1, iterations=1)
    assert np.linalg.matrix_rank(found.scores_NC) == 1


def test_the_rule_cuts_noise_off_and_keeps_signal():
    """Gavish and Donoho: of pure noise with a few strong directions, those are what is kept."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 60)) * 3
    x = signal + rng.normal(size=(300, 60))
    singular = np.linalg.svd(x, compute_uv=False)
    assert (singular > threshold(singular, x.shape, "median")).sum() == 4
    assert threshold(singular, x.shape, 10) == 10.0
    # for a square matrix omega is 2.858 (their table)
    assert threshold(np.ones(5), (5, 5), "median") == pytest.approx(2.858, abs=0.01)
    with pytest.raises(InputError, match="or 'median'"):
        threshold(singular, x.shape, "best")


# Theorem 1
# ---------
@pytest.mark.parametrize("last", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_theorem_1_by_monte_carlo(last, ridge):
    """The last direction is better dropped iff s^2 >= (2 ridge + d^2) a^2.

    Targets X w + noise of variance s^2, drawn many times (one a column); the error of ridge
    regression's scores with all directions and without the last.
    """
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.normal(size=(12, 4)))
    singular, a = np.array([9.0, 6.0, 4.0, last]), np.array([0.3, -0.2, 0.4, 0.5])
    clean = u @ (singular * a)
    border = (2 * ridge + last**2) * a[-1] ** 2
    for factor, dropping_wins in ((0.7, False), (1.4, True)):
        noise = np.sqrt(factor * border) * rng.normal(size=(12, 100_000))
        targets = clean[:, None] + noise
        kept, dropped = (
            np.mean((ridge_scores(u[:, :k], singular[:k], targets, ridge) - clean[:, None]) ** 2)
            for k in (4, 3)
        )
        assert (kept > dropped) == dropping_wins


# weights
# -------
def test_every_class_weighs_the_same_and_an_empty_one_nothing():
    labels = np.array([0, 0, 0, 0, 2, 2])
    found = weights.between_classes(labels, 3)
    np.testing.assert_allclose(found, [0.5] * 4 + [1.0] * 2)
    assert found[labels == 0].sum() == pytest.approx(found[labels == 2].sum())


def test_entropy_is_that_of_the_softmax():
    logits = np.array([[0.0, 0.0, 0.0, 0.0], [50.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.5, -1.0]])
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(weights.entropy(logits), -(p * np.log(p)).sum(1), atol=1e-12)


@pytest.mark.parametrize("kind", ["normal", "uniform", "quantile", "inverse_entropy"])
@pytest.mark.parametrize("scope", ["class", "task"])
def test_the_surest_image_of_a_class_weighs_most(kind, scope):
    rng = np.random.default_rng(0)
    labels, entropy = rng.integers(0, 3, 200), rng.uniform(0.1, 2, 200)
    found = weights.within_classes(labels, entropy, kind, scope=scope, rng=rng)
    groups = labels if scope == "class" else np.zeros(200)
    for group in np.unique(groups):
        own = groups == group
        assert (np.diff(found[own][np.argsort(entropy[own])]) <= 1e-12).all()
    assert found.min() >= min(weights.SMALLEST, found.max()) and found.mean() == pytest.approx(
        1, abs=0.1
    )


def test_weights_are_drawn_from_n_1_a_quarter_and_clipped():
    rng = np.random.default_rng(0)
    found = weights.within_classes(
        np.zeros(20_000, int), rng.uniform(size=20_000), "normal", scope="class", rng=rng
    )
    assert found.min() == weights.SMALLEST and (found == found.min()).mean() < 0.03
    assert found.std() == pytest.approx(0.5, abs=0.02)
    exact = weights.within_classes(
        np.zeros(4, int), np.array([3.0, 1.0, 2.0, 0.0]), "quantile", scope="class", rng=rng
    )
    # quartiles of N(1, 1/4) at 1/8, 3/8, 5/8, 7/8
    np.testing.assert_allclose(exact, [0.4248, 1.1593, 0.8407, 1.5752], atol=1e-4)


def test_equal_entropies_keep_the_order_and_none_is_one():
    rng = np.random.default_rng(0)
    labels = np.zeros(5, int)
    found = weights.within_classes(labels, np.ones(5), "quantile", scope="class", rng=rng)
    assert (np.diff(found) > 0).all()
    none = weights.within_classes(labels, np.ones(5), "none", scope="class", rng=rng)
    assert (none == 1).all()


# together
# --------
def test_a_task_is_labelled_among_its_own_names_and_weighted_by_refined_labels():
    x, labels, text = blobs(3, noise=1.0)
    own = np.isin(labels, [1, 4])
    x = with_length(x[own], 10.0)
    found = label_task(x, zero_shot(x, text[[1, 4]]), OPTIONS, np.random.default_rng(0))
    assert set(found.labels_N) <= {0, 1} and (found.weight_N > 0).all()
    expected = weights.between_classes(found.labels_N, 2)
    plain = label_task(
        x, zero_shot(x, text[[1, 4]]), OPTIONS._replace(intra="none"), np.random.default_rng(0)
    )
    np.testing.assert_allclose(plain.weight_N, expected)
    assert (plain.labels_N == found.labels_N).all()


def test_given_labels_stay_and_a_task_without_any_is_refused():
    x, labels, text = blobs(4)
    rng = np.random.default_rng(0)
    found = label_task(x, zero_shot(x, text), OPTIONS, rng, given_N=labels)
    assert (found.labels_N == labels).all() and found.singular.size == 0
    with pytest.raises(InputError, match="needs the cosines"):
        label_task(x, None, OPTIONS, rng)


def test_features_are_scaled_to_one_length_and_zeros_stay():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(with_length(x, 10.0), [[6.0, 8.0], [0.0, 0.0]])
    assert (with_length(x, None) == x).all()
