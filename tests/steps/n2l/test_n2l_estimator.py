"""N2LClassifier: scikit-learn's checks, tasks without labels, saving and loading."""

import numpy as np
import pandas
import pytest
from n2l_problems import blobs
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from steps.n2l.estimator import N2LClassifier
from steps.n2l.ridge import one_hot
from steps.shared.runtime import InputError

EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(
    [N2LClassifier(random_state=0)], expected_failed_checks=lambda model: EXPECTED_FAILURES
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def texts(seed: int = 0, **change):
    """Return blobs and an encoder of names: class 3 is called 'c3'."""
    x, labels, centres = blobs(seed, **change)
    return x, labels, lambda names: np.stack([centres[int(name[1:])] for name in names])


def taught(encode, x, labels, tasks, **change) -> N2LClassifier:
    model = N2LClassifier(encode, random_state=0, **change)
    for task in tasks:
        own = np.isin(labels, task)
        model.partial_fit(x[own], classes=[f"c{place}" for place in task])
    return model


def test_tasks_without_labels_are_learnt_from_their_names():
    x, labels, encode = texts(noise=1.2, per_class=60)
    model = taught(encode, x, labels, [(2, 0), (5, 1), (3, 4)])
    assert model.classes_.tolist() == ["c2", "c0", "c5", "c1", "c3", "c4"]
    names = np.array([f"c{label}" for label in labels])
    proba = model.predict_proba(x)
    assert proba.shape == (360, 6) and np.allclose(proba.sum(1), 1)
    assert (model.classes_[proba.argmax(1)] == model.predict(x)).all()
    assert model.score(x, names) > 0.8


def test_only_names_of_the_task_are_given_to_its_images():
    x, labels, encode = texts(noise=2.0)
    model = N2LClassifier(encode, random_state=0)
    model.partial_fit(x, classes=["c0", "c1"])
    assert set(model.labels_) <= {"c0", "c1"}
    model.partial_fit(x, classes=["c4", "c2"])
    assert set(model.labels_) <= {"c4", "c2"}


@pytest.mark.parametrize("form", ["gram", "woodbury", "qr"])
def test_with_labels_and_no_weights_it_is_ridge_regression_on_all_tasks(form):
    x, labels, _ = texts()
    plain = {"inter": False, "intra": "none", "feature_norm": None, "form": form}
    model = N2LClassifier(**plain)
    for task in ((0, 1, 2), (3, 4), (5,)):
        own = np.isin(labels, task)
        model.partial_fit(x[own], labels[own])
    expected = Ridge(alpha=0.1, fit_intercept=False).fit(x, one_hot(labels, 6)).coef_.T
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-10)
    whole = clone(model).fit(x, labels)
    np.testing.assert_allclose(whole.coef_, expected, rtol=0, atol=1e-10)


def test_fit_forgets_what_was_before():
    x, labels, encode = texts()
    model = taught(encode, x, labels, [(0, 1), (2, 3)])
    model.fit(x[labels == 5], classes=["c5"])
    assert model.classes_.tolist() == ["c5"] and model.coef_.shape == (16, 1)


def test_a_saved_classifier_predicts_and_learns_on_as_if_never_saved(tmp_path):
    x, labels, encode = texts(noise=1.0)
    model = taught(encode, x, labels, [(0, 1), (2, 3)])
    model.save(tmp_path / "n2l.safetensors")
    back = N2LClassifier.load(tmp_path / "n2l.safetensors")
    assert (back.predict(x) == model.predict(x)).all()
    with pytest.raises(InputError, match="need an `encode`"):
        back.partial_fit(x, classes=["c4", "c5"])
    again = N2LClassifier.load(tmp_path / "n2l.safetensors", encode)
    own = labels >= 4
    for one in (model, again):
        one.partial_fit(x[~own], classes=["c0", "c1"])
        one.partial_fit(x[own], classes=["c4", "c5"])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    first = (tmp_path / "n2l.safetensors").read_bytes()
    taught(encode, x, labels, [(0, 1), (2, 3)]).save(tmp_path / "n2l.safetensors")
    assert (tmp_path / "n2l.safetensors").read_bytes() == first


def test_numbers_of_numpy_and_names_of_features_are_saved(tmp_path):
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
    model = N2LClassifier(ridge=np.float32(0.5), random_state=0).fit(frame, np.arange(30) % 3)
    model.save(tmp_path / "n2l")
    back = N2LClassifier.load(tmp_path / "n2l")
    assert back.ridge == 0.5 and back.feature_names_in_.tolist() == ["a", "b"]
    assert (back.predict(frame) == model.predict(frame)).all()


def test_a_saved_file_does_not_grow_with_the_images(tmp_path):
    sizes = []
    for per_class in (10, 200):
        x, labels, encode = texts(per_class=per_class)
        taught(encode, x, labels, [(0, 1, 2), (3, 4, 5)]).save(tmp_path / "n2l")
        sizes.append((tmp_path / "n2l").stat().st_size)
    assert abs(sizes[0] - sizes[1]) < 64  # digits of the random state


def test_a_call_that_is_refused_changes_nothing():
    x, labels, encode = texts()
    model = taught(encode, x, labels, [(0, 1)])
    before = (model.classes_.tolist(), model.text_CD_.copy(), model.predict(x).tolist())
    model.encode = lambda names: np.full((len(names), 16), np.nan)
    with pytest.raises(InputError, match="some embeddings are no numbers"):
        model.partial_fit(x, classes=["c4", "c5"])
    assert (model.classes_.tolist(), model.predict(x).tolist()) == (before[0], before[2])
    assert (model.text_CD_ == before[1]).all()
    new = N2LClassifier(lambda names: np.ones((1, 3)))
    with pytest.raises(InputError, match="1 x 16"):
        new.partial_fit(x, classes=["c0"])
    new.encode = encode
    assert new.partial_fit(x, classes=["c0"]).classes_.tolist() == ["c0"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m, x: m.partial_fit(x), "requires y to be passed"),
        (lambda m, x: m.partial_fit(x, classes=["c0", "c0"]), "none twice"),
        (lambda m, x: m.partial_fit(x, classes=[]), "at least one name"),
        (lambda m, x: m.partial_fit(x, [0] * len(x), classes=[1, 2]), "not among the classes"),
        (lambda m, x: m.partial_fit(x, classes=["c0"]).partial_fit(x, [1] * len(x)), "mixed"),
        (lambda m, x: N2LClassifier().partial_fit(x, classes=["c0"]), "need an `encode`"),
        (lambda m, x: N2LClassifier(lambda n: np.ones((1, 3))).fit(x, classes=["a"]), "1 x 16"),
        (lambda m, x: N2LClassifier.load("nothing"), "not a saved N2LClassifier"),
    ],
)
def test_bad_input_is_one_clear_line(call, told):
    x, _, encode = texts()
    with pytest.raises(InputError, match=told):
        call(N2LClassifier(encode), x)
