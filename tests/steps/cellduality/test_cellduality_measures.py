"""Measures: scipy's matrix root, naive distances, scikit-learn, closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from steps.cellduality import energy, measures, specialists
from steps.cellduality.energy import energy_distances
from steps.cellduality.frechet import Basis, frechet_distances, moments, scfid
from steps.shared.runtime import InputError


# Frechet distance
# ----------------
def gaussians(rng, conditions: int, dims: int, count: int):
    x = rng.normal(size=(conditions, count, dims)) @ rng.normal(size=(conditions, dims, dims))
    return x.mean(1), np.stack([np.cov(cells, rowvar=False).reshape(dims, dims) for cells in x])


@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 10**6))
@settings(max_examples=40)
def test_frechet_equals_scipys_matrix_root(conditions, dims, seed):
    rng = np.random.default_rng(seed)
    a, b = (gaussians(rng, conditions, dims, 4 * dims + 2) for _ in range(2))
    found = frechet_distances(*a, *b)
    for place in range(conditions):
        root = sqrtm(a[1][place] @ b[1][place]).real
        shift = ((a[0][place] - b[0][place]) ** 2).sum()
        expected = shift + np.trace(a[1][place] + b[1][place] - 2 * root)
        assert found[place] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_frechet_of_singular_equal_shifted_and_diagonal():
    rng = np.random.default_rng(0)
    mean, cov = gaussians(rng, 2, 6, 4)  # 4 cells in 6 dimensions: the covariance is singular
    assert frechet_distances(mean, cov, mean, cov) == pytest.approx(0, abs=1e-6)
    one_point = np.zeros_like(cov)  # cells that are all the same
    expected = np.trace(cov, axis1=1, axis2=2)
    assert frechet_distances(mean, cov, mean, one_point) == pytest.approx(expected)
    assert frechet_distances(mean, one_point, mean, cov) == pytest.approx(expected)
    assert frechet_distances(mean + 3, cov, mean, cov) == pytest.approx(6 * 9, rel=1e-6)
    a, b = rng.uniform(0.1, 4, (2, 1, 5))
    found = frechet_distances(
        np.zeros((1, 5)), np.diag(a[0])[None], np.zeros((1, 5)), np.diag(b[0])[None]
    )
    assert found[0] == pytest.approx(((np.sqrt(a) - np.sqrt(b)) ** 2).sum())


def test_frechet_is_symmetric_and_blind_to_turns():
    rng = np.random.default_rng(1)
    a, b = (gaussians(rng, 3, 5, 30) for _ in range(2))
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    turned = [(mean @ turn, turn.T @ cov @ turn) for mean, cov in (a, b)]
    expected = frechet_distances(*a, *b)
    assert frechet_distances(*b, *a) == pytest.approx(expected)
    assert frechet_distances(*turned[0], *turned[1]) == pytest.approx(expected)


def test_scfid_is_that_of_each_condition_alone():
    rng = np.random.default_rng(2)
    real, generated = rng.normal(size=(60, 3)), rng.normal(1, 2, size=(80, 3))
    real_c, generated_c = rng.integers(0, 2, 60), rng.integers(0, 2, 80)
    found = scfid(real, real_c, generated, generated_c, 2)
    for place in range(2):
        x, y = real[real_c == place], generated[generated_c == place]
        alone = scfid(x, np.zeros(len(x), int), y, np.zeros(len(y), int), 1)
        assert found[place] == pytest.approx(alone[0])
    mean, cov = moments(real, real_c, 2)
    assert mean[1] == pytest.approx(real[real_c == 1].mean(0))
    assert cov[1] == pytest.approx(np.cov(real[real_c == 1], rowvar=False))
    with pytest.raises(InputError, match="two are needed"):
        scfid(real, real_c, generated, np.zeros(80, int), 2)


def test_the_basis_is_sklearns_pca_of_training_cells():
    rng = np.random.default_rng(3)
    train, other = rng.normal(size=(40, 12)) * np.arange(1, 13), rng.normal(size=(7, 12))
    basis, pca = Basis.fit(train, 4), PCA(4, svd_solver="full").fit(train)
    signs = np.sign((basis.directions_GD * pca.components_.T).sum(0))
    assert basis.embed(other) == pytest.approx(pca.transform(other) * signs)
    largest = np.abs(basis.directions_GD).argmax(0)
    assert (basis.directions_GD[largest, range(4)] > 0).all()
    with pytest.raises(InputError, match="from 1 to 12"):
        Basis.fit(train, 13)


# E-distance
# ----------
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=40)
def test_energy_equals_naive_pairs(groups, dims, seed):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.r_[np.arange(groups), rng.integers(0, groups, 25)])
    x = rng.normal(size=(len(group), dims)) + group[:, None]
    found = energy_distances(x, group, groups)
    for a in range(groups):
        for b in range(groups):
            x_a, x_b = x[group == a], x[group == b]
            expected = 2 * cdist(x_a, x_b).mean() - cdist(x_a, x_a).mean() - cdist(x_b, x_b).mean()
            assert found[a, b] == pytest.approx(expected, abs=1e-6)


def test_energy_far_from_the_origin_in_blocks_and_of_missing_groups(monkeypatch):
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 3, 50), rng.normal(size=(50, 4))
    expected = energy_distances(x, group, 3)
    assert energy_distances(x + 1e4, group, 3) == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr(energy, "BLOCK", 7)
    assert energy_distances(x, group, 3) == pytest.approx(expected)
    assert (np.diag(expected) == 0).all() and (expected == expected.T).all()
    with pytest.raises(InputError, match="group 3 has no cell"):
        energy_distances(x, group, 4)


# answers, neighbours, diversity, change
# --------------------------------------
def test_accuracy_and_macro_f1_of_known_answers():
    true, found = np.array([0, 0, 1, 1, 2]), np.array([0, -1, 1, 0, 3])
    assert measures.accuracy(true, found) == pytest.approx(40)
    # label 0: P 1/2, R 1/2; label 1: P 1, R 1/2; label 2: 0; what the truth lacks does not count
    assert measures.macro_f1(true, found) == pytest.approx(100 * (1 / 2 + 2 / 3 + 0) / 3)
    assert measures.macro_f1(true, true) == 100


def test_knn_accuracy_is_a_vote_of_the_nearest():
    rng = np.random.default_rng(4)
    real, label = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    made, wanted = rng.normal(size=(25, 3)), rng.integers(0, 3, 25)
    votes = [
        np.bincount(label[np.argsort(row)[:5]], minlength=3).argmax() for row in cdist(made, real)
    ]
    found = measures.knn_accuracy(real, label, made, wanted, 5)
    assert found == pytest.approx(100 * (np.array(votes) == wanted).mean())
    assert measures.knn_accuracy(real, label, real, label, 1) == 100
    with pytest.raises(InputError, match="at most the 40"):
        measures.knn_accuracy(real, label, made, wanted, 41)


def test_diversity_sees_a_collapse():
    rng = np.random.default_rng(5)
    real_ND = rng.normal(size=(20, 3))
    assert measures.diversity(real_ND, real_ND) == 1
    assert measures.diversity(real_ND[[0] * 20], real_ND) == 0
    assert np.isnan(measures.diversity(real_ND, real_ND[[0] * 20]))
    wide_ND = rng.normal(size=(12, 3)) * 5
    wide = cdist(wide_ND, wide_ND)[np.triu_indices(12, 1)].mean()
    real = cdist(real_ND, real_ND)[np.triu_indices(20, 1)].mean()
    assert measures.diversity(wide_ND, real_ND) == pytest.approx(wide / real)


def test_delta_pearson_is_of_mean_changes_by_condition():
    rng = np.random.default_rng(6)
    condition = np.repeat([0, 1], 10)
    before, true = rng.normal(size=(2, 20, 7))
    # cells may be paired in any way: only the mean of a condition counts
    shuffled = before + (true - before)[np.r_[rng.permutation(10), 10 + rng.permutation(10)]]
    assert measures.delta_pearson(before, shuffled, true, condition) == pytest.approx(1)
    assert measures.delta_pearson(before, before, true, condition) == 0
    opposite = before.copy()
    opposite[:10] += 2 * (true - before)[:10]
    opposite[10:] -= 3 * (true - before)[10:]
    assert measures.delta_pearson(before, opposite, true, condition) == pytest.approx(0)
    found = rng.normal(size=(20, 7))
    deltas = [(x - before)[condition == c].mean(0) for c in (0, 1) for x in (found, true)]
    expected = np.mean(
        [np.corrcoef(deltas[0], deltas[1])[0, 1], np.corrcoef(deltas[2], deltas[3])[0, 1]]
    )
    assert measures.delta_pearson(before, found, true, condition) == pytest.approx(expected)


# specialists
# -----------
def test_specialists_separate_what_is_separate_and_ignore_units():
    rng = np.random.default_rng(7)
    label = rng.integers(0, 3, 90)
    x = rng.normal(size=(90, 4)) + 8 * np.eye(3, 4)[label]
    for kind in specialists.KINDS:
        found = specialists.classify(kind, x[:60], label[:60], x[60:])
        assert (found == label[60:]).all()
        units = np.array([1, 1e3, 1e-3, 5])
        assert (
            specialists.classify(kind, x[:60] * units, label[:60], x[60:] * units) == found
        ).all()
        one = specialists.classify(kind, x[:5], np.full(5, 2), x[60:])
        assert (one == 2).all()
    with pytest.raises(InputError, match="logistic, knn"):
        specialists.classify("tree", x, label, x)


def test_mean_shift_adds_the_mean_change_of_training_cells():
    rng = np.random.default_rng(8)
    before, after = rng.uniform(5, 6, (2, 12, 3))
    condition = np.repeat([0, 1, 2], 4)
    found = specialists.mean_shift(
        before[:8], after[:8], condition[:8], before[8:], np.r_[0, 0, 1, 2]
    )
    change = after - before
    assert found[0] == pytest.approx(before[8] + change[:4].mean(0))
    assert found[2] == pytest.approx(before[10] + change[4:8].mean(0))
    assert found[3] == pytest.approx(before[11] + change[:8].mean(0))  # not seen in training
    assert (specialists.mean_shift(before, before - 9, condition, before, condition) == 0).all()
