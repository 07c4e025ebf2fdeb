"""The recursion over tasks, in three forms, against scikit-learn's ridge regression on all data."""

import numpy as np
import pytest
from n2l_problems import stream_of_tasks
from sklearn.linear_model import Ridge

from steps.n2l.ridge import FORMS, Gram, one_hot, recursion
from steps.shared.runtime import InputError

CLASSES = 9


def joint(tasks, ridge: float) -> np.ndarray:
    """Return scikit-learn's classifier on all tasks at once (D x C)."""
    x, labels, weights = (np.concatenate(part) for part in zip(*tasks, strict=True))
    model = Ridge(alpha=ridge, fit_intercept=False, solver="cholesky")
    return model.fit(x, one_hot(labels, CLASSES), sample_weight=weights).coef_.T


def learnt(tasks, form: str, ridge: float, chunk: int | None = None) -> np.ndarray:
    """Return the recursion's classifier after tasks, each taken in chunks of some images."""
    learner, seen = recursion(form, tasks[0][0].shape[1], ridge), 0
    for x, labels, weights in tasks:
        seen = max(seen, labels.max() + 1)
        for begin in range(0, len(x), chunk or len(x)):
            own = slice(begin, begin + (chunk or len(x)))
            learner.update(x[own], one_hot(labels[own], seen), weights[own])
    return learner.solve()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", [None, 1, 7])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_any_split_order_and_chunking_is_ridge_on_all_data(form, chunk, order):
    tasks = stream_of_tasks(0)
    expected = joint(tasks, 0.1)
    found = learnt([tasks[place] for place in order], form, 0.1, chunk)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_classes_that_come_back_and_images_without_new_classes(form):
    tasks = stream_of_tasks(1)
    tasks.append((tasks[0][0] + 0.1, tasks[0][1], tasks[0][2]))
    np.testing.assert_allclose(learnt(tasks, form, 0.5), joint(tasks, 0.5), rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_are_repeated_rows_and_zero_leaves_out(form):
    x, labels, _ = stream_of_tasks(2)[2]
    labels = labels - labels.min()
    counts = np.arange(len(x)) % 4  # 0 to 3
    weighted = learnt([(x, labels, counts.astype(float))], form, 0.1)
    repeated = (np.repeat(x, counts, axis=0), np.repeat(labels, counts), np.ones(counts.sum()))
    np.testing.assert_allclose(weighted, learnt([repeated], form, 0.1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_one_are_acils_recursion(form):
    """ACIL, equations 9 and 10: R -= R X^T K X R, W += R X^T (Y - X W)."""
    tasks = [(x, labels, np.ones(len(x))) for x, labels, _ in stream_of_tasks(3)]
    dim, ridge, seen = tasks[0][0].shape[1], 0.1, 0
    inverse, w = np.eye(dim) / ridge, np.zeros((dim, 0))
    for x, labels, _ in tasks:
        seen = max(seen, labels.max() + 1)
        w = np.pad(w, ((0, 0), (0, seen - w.shape[1])))
        kernel = np.linalg.inv(np.eye(len(x)) + x @ inverse @ x.T)
        inverse = inverse - inverse @ x.T @ kernel @ x @ inverse
        w = w + inverse @ x.T @ (one_hot(labels, seen) - x @ w)
    np.testing.assert_allclose(learnt(tasks, form, ridge), w, rtol=0, atol=1e-10)


def test_what_is_kept_does_not_grow_with_the_images():
    few, many = Gram(24, 0.1), Gram(24, 0.1)
    for seed in range(20):
        for x, labels, weights in stream_of_tasks(seed):
            many.update(x, one_hot(labels, CLASSES), weights)
            if seed == 0:
                few.update(x, one_hot(labels, CLASSES), weights)
    for name, value in few.state.items():
        assert many.state[name].shape == value.shape
    assert sum(value.size for value in many.state.values()) == 24 * 24 + 24 * CLASSES


def test_the_qr_form_stays_exact_where_the_others_lose_digits():
    rng = np.random.default_rng(0)
    turned, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    x = rng.normal(size=(60, 12)) * np.logspace(0, -6, 12) @ turned
    task = (x, np.arange(60) % 3, np.ones(60))
    root = np.sqrt(1e-9)
    stacked = np.vstack([x, root * np.eye(12)])
    targets = np.vstack([one_hot(task[1], 3), np.zeros((12, 3))])
    expected = np.linalg.lstsq(stacked, targets, rcond=None)[0]
    errors = {
        form: np.abs(learnt([task], form, 1e-9) - expected).max() / np.abs(expected).max()
        for form in ("gram", "qr")
    }
    assert errors["qr"] < 1e-9 < errors["gram"]


@pytest.mark.parametrize("form", FORMS)
def test_a_chunk_without_images_changes_nothing(form):
    x, labels, weights = stream_of_tasks(4)[0]
    learner = recursion(form, x.shape[1], 0.1)
    learner.update(x, one_hot(labels, 3), weights)
    before = learner.solve().copy()
    learner.update(x[:0], np.zeros((0, 3)), weights[:0])
    np.testing.assert_allclose(learner.solve(), before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_refused(form, value):
    x = np.ones((4, 3))
    x[2, 1] = value
    with pytest.raises(InputError, match="infinite or no numbers"):
        recursion(form, 3, 1.0).update(x, np.ones((4, 1)), np.ones(4))


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="ridge = 0: must be above 0"):
        recursion("gram", 3, 0)
    with pytest.raises(InputError, match="must be one of gram, woodbury, qr"):
        recursion("lu", 3, 1.0)
    with pytest.raises(InputError, match="must be 0 or above"):
        recursion("gram", 3, 1.0).update(np.ones((2, 3)), np.ones((2, 1)), np.array([1.0, -0.1]))
