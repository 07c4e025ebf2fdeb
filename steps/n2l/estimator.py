"""N2L as a scikit-learn classifier that learns task after task, with or without labels.

    model = N2LClassifier(encode=text_encoder)       # names -> embeddings (C x D)
    model.partial_fit(x_ND, classes=["cat", "dog"])  # a task: unlabelled images, its class names
    model.partial_fit(x2_ND, classes=["owl"])        # the next; nothing of the first is kept
    model.predict(x_test_ND)                         # among all names so far

What it keeps are D^2 + D C numbers and the names' embeddings, however many images it has seen; the
classifier equals that of joint training on all tasks' labels, up to rounding. Shapes: N, D, C.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from steps.n2l.labelling import Options, label_task, with_length
from steps.n2l.refine import Rule, fused, probabilities, zero_shot
from steps.n2l.ridge import Form, one_hot, recursion, widened
from steps.n2l.weights import Scope, Within
from steps.shared import tensor_files
from steps.shared.runtime import InputError


class N2LClassifier(ClassifierMixin, BaseEstimator):
    """Class-incremental classifier on frozen features, from class names or from labels.

    `encode` maps a list of names to embeddings (C x D) that match the features by cosine; without
    it every call needs labels. `theta`, `ridge`: on the scale of features of length `feature_norm`
    (None: as they come). `fusion` is the share of the learnt scores beside zero-shot probabilities.
    """

    def __init__(
        self,
        encode: Callable[[list], np.ndarray] | None = None,
        *,
        ridge: float = 0.1,
        theta: float | Rule = "median",
        iterations: int = 3,
        refine: bool = True,
        inter: bool = True,
        intra: Within = "normal",
        scope: Scope = "class",
        fusion: float = 0.8,
        zero_shot_scale: float = 100.0,
        entropy_scale: float = 10.0,
        feature_norm: float | None = 10.0,
        form: Form = "gram",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self.encode = encode
        self.ridge, self.theta, self.iterations = ridge, theta, iterations
        self.refine, self.inter, self.intra, self.scope = refine, inter, intra, scope
        self.fusion, self.zero_shot_scale = fusion, zero_shot_scale
        self.entropy_scale, self.feature_norm = entropy_scale, feature_norm
        self.form, self.random_state = form, random_state

    def fit(self, X: Any, y: Any = None, classes: Sequence | None = None) -> "N2LClassifier":
        """Forget everything and learn one task: see `partial_fit`."""
        for name in ("recursion_", "classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X, y, classes)

    def partial_fit(
        self, X: Any, y: Any = None, classes: Sequence | None = None
    ) -> "N2LClassifier":
        """Learn one more task from features X (N x D): its images' labels, or its class names."""
        if y is None and classes is None:
            raise InputError(
                "N2LClassifier requires y to be passed, but the target y is None: pass y, or the"
                " names of the task's classes as `classes` and an `encode`"
            )
        first = not hasattr(self, "recursion_")
        x_ND, labels, names = self._checked(X, y, classes, first)
        learner, known, text_CD, rng = self._learnt(names, x_ND.shape[1], first)
        known, text_CD, columns = self._with_names(known, text_CD, names)
        x_ND = with_length(x_ND, self.feature_norm)
        found = label_task(
            x_ND,
            None if text_CD is None else zero_shot(x_ND, text_CD[columns]),
            self._options(),
            rng,
            labels,
            len(names),
        )
        learner.update(x_ND, one_hot(columns[found.labels_N], len(known)), found.weight_N)
        # only now, so that a call that was refused changes nothing
        self.recursion_, self.classes_, self.text_CD_, self.rng_ = learner, known, text_CD, rng
        self.labels_ = names[found.labels_N]  # of this call's images, after refinement
        self.coef_ = widened(learner.solve(), len(known))
        return self

    def _learnt(self, names: np.ndarray, num_features: int, first: bool) -> tuple:
        """Return the recursion, names, their embeddings and the generator, before this call."""
        if not first:
            return self.recursion_, self.classes_, self.text_CD_, self.rng_
        text_CD = None if self.encode is None else np.zeros((0, num_features))
        learner = recursion(self.form, num_features, self.ridge)
        return learner, names[:0], text_CD, generator(self.random_state)

    def _checked(
        self, X: Any, y: Any, classes: Sequence | None, first: bool
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return features, labels as places in the task's names, and those names."""
        if y is None:
            if self.encode is None:
                raise InputError("without y, class names need an `encode`: names to embeddings")
            names = np.asarray(classes)
            if names.ndim != 1 or len(np.unique(names)) < max(1, len(names)):
                raise InputError("classes: must be a list of at least one name, none twice")
            return validate_data(self, X, dtype=np.float64, reset=first), None, names
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        names = np.unique(y) if classes is None else np.unique(np.asarray(classes))
        if unknown := set(y.tolist()) - set(names.tolist()):
            raise InputError(f"y: {sorted(unknown)[0]!r} is not among the classes of the task")
        return X, np.searchsorted(names, y), names

    def _with_names(
        self, known: np.ndarray, text_CD: np.ndarray | None, names: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return all names and their embeddings, new ones appended, and the columns of `names`."""
        if len({isinstance(name, str) for name in [*known.tolist(), *names.tolist()]}) > 1:
            raise InputError("classes: texts and numbers cannot be mixed")
        places = {name: place for place, name in enumerate(known.tolist())}
        new = [name for name in names.tolist() if name not in places]
        if new:
            places |= {name: len(places) + place for place, name in enumerate(new)}
            known = np.concatenate([known, np.asarray(new, dtype=names.dtype)])
            if text_CD is not None:
                text_CD = np.concatenate([text_CD, self._encoded(new)])
        return known, text_CD, np.array([places[name] for name in names.tolist()], dtype=int)

    def _encoded(self, names: list) -> np.ndarray:
        """Return the embeddings of new names, checked (C x D)."""
        if self.encode is None:
            raise InputError("new class names need an `encode`: set it after loading")
        text_CD = np.asarray(self.encode(names), dtype=np.float64)
        if text_CD.shape != (len(names), self.n_features_in_):
            raise InputError(
                f"encode: gave an array {text_CD.shape} for {len(names)} names; must be"
                f" {len(names)} x {self.n_features_in_}, as the features"
            )
        if not (np.isfinite(text_CD).all() and text_CD.any(axis=1).all()):
            raise InputError("encode: some embeddings are no numbers, or all zeros")
        return text_CD

    def _options(self) -> Options:
        return Options(**{name: getattr(self, name) for name in Options._fields})

    def scores(self, X: Any) -> np.ndarray:
        """Return (1 - fusion) softmax(scale cos) + fusion X W over all classes so far (N x C)."""
        check_is_fitted(self)
        x_ND = validate_data(self, X, dtype=np.float64, reset=False)
        x_ND = with_length(x_ND, self.feature_norm)
        learnt_NC = x_ND @ self.coef_
        if self.text_CD_ is None:
            return learnt_NC
        cosine_NC = zero_shot(x_ND, self.text_CD_)
        return fused(cosine_NC, learnt_NC, self.zero_shot_scale, self.fusion)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the highest score of every image (N)."""
        best_N = self.scores(X).argmax(1)
        return self.classes_[best_N]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return softmax(entropy_scale x scores) (N x C): ordered as the scores, not calibrated."""
        return probabilities(self.scores(X), self.entropy_scale)

    def save(self, path: str | Path) -> None:
        """Write everything learnt and every parameter but `encode` to one safetensors file."""
        check_is_fitted(self)
        arrays = {f"state.{key}": value for key, value in self.recursion_.state.items()}
        arrays |= {"coef": self.coef_}
        arrays |= {} if self.text_CD_ is None else {"text": self.text_CD_}
        skip = ("encode", "random_state")
        note = {
            "params": {k: v for k, v in self.get_params(deep=False).items() if k not in skip},
            "classes": self.classes_.tolist(),
            "feature_names": list(getattr(self, "feature_names_in_", [])),
            "rng": self.rng_.bit_generator.state,
        }
        # numpy's numbers are no JSON
        text = json.dumps(note, sort_keys=True, default=lambda value: value.item())
        tensor_files.write(path, arrays, {"n2l": text})

    @classmethod
    def load(cls, path: str | Path, encode: Callable | None = None) -> "N2LClassifier":
        """Return a saved classifier; it predicts at once, and learns new names with an `encode`."""
        what = "a saved N2LClassifier"
        note = tensor_files.read_note(path, what, "n2l")
        arrays = tensor_files.read(path, what, framework="numpy")
        model = cls(encode, **note["params"])
        model.coef_, model.text_CD_ = arrays["coef"], arrays.get("text")
        model.n_features_in_ = len(model.coef_)
        model.classes_ = np.asarray(note["classes"])
        if note["feature_names"]:
            model.feature_names_in_ = np.asarray(note["feature_names"], dtype=object)
        model.recursion_ = recursion(model.form, model.n_features_in_, model.ridge)
        model.recursion_.state = {
            key.removeprefix("state."): value
            for key, value in arrays.items()
            if key.startswith("state.")
        }
        model.rng_ = generator(0)
        model.rng_.bit_generator.state = note["rng"]
        return model


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator of any of scikit-learn's forms of `random_state`, or of a Generator."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)
