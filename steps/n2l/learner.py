"""Every row of the tables, learnt over the tasks of one class order; no test image is seen here.

A classifier is a matrix after every task, its columns the classes in their order. Where a row's
weights are random it is learnt `draws` times. Shapes: N images of a task, D features, C classes so
far.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from steps.n2l import baselines
from steps.n2l.config import Merge
from steps.n2l.embeddings import Embeddings
from steps.n2l.labelling import Labelled, Options, label_task, with_length
from steps.n2l.refine import unit, zero_shot
from steps.n2l.ridge import one_hot, recursion
from steps.n2l.weights import Within
from steps.shared.runtime import InputError, stream


class Row(NamedTuple):
    """How a row labels and weights images, and what it learns from them."""

    refine: bool = False
    inter: bool = False
    intra: Within = "none"
    given: bool = False  # true labels
    expanded: bool = False  # ReLU of a random projection
    searched: bool = False  # RanPAC's choice of the ridge
    fused: bool = True  # with zero-shot probabilities, as RAIL


# zero_shot and sequential learn no ridge regression, joint is n2l on all data at once
ROWS = {
    "acil": Row(),
    "rail": Row(expanded=True),
    "ranpac": Row(expanded=True, searched=True, fused=False),
    "inter": Row(inter=True),
    "intra": Row(inter=True, intra="normal"),
    "refine": Row(refine=True),
    "n2l": Row(refine=True, inter=True, intra="normal"),
    "labels": Row(given=True, inter=True, intra="normal"),
}
N2L = ROWS["n2l"]
VARIANTS = ("none", "inverse_entropy", "uniform", "normal", "quantile")  # of n2l's intra weights
UNFUSED = ("zero_shot", "sequential", *(name for name, row in ROWS.items() if not row.fused))
EXPANDED = tuple(name for name, row in ROWS.items() if row.expanded)


class Task(NamedTuple):
    """A task's images: features, places of true labels in the task, cosines with its names."""

    x_ND: np.ndarray
    true_N: np.ndarray
    cosine_NC: np.ndarray
    first: int  # column of the task's first class
    text_CD: np.ndarray

    @property
    def last(self) -> int:
        """The number of classes seen after this task."""
        return self.first + len(self.text_CD)


class Problem(NamedTuple):
    """A class order as tasks, and what the rows need beside."""

    tasks: list[Task]
    config: Merge
    scale: float  # of cosines
    seed: int

    def options(self, row: Row, theta: float | str | None = None) -> Options:
        """Return how a row labels."""
        config = self.config
        return Options(
            refine=row.refine,
            inter=row.inter,
            intra=row.intra,
            scope=config.scope,
            iterations=config.iterations,
            ridge=config.ridge,
            zero_shot_scale=self.scale,
            entropy_scale=config.entropy_scale,
            theta=config.theta if theta is None else theta,
        )


def problem(found: Embeddings, tasks: Sequence[np.ndarray], config: Merge, seed: int) -> Problem:
    """Return the images as tasks: each has those of its own classes, and only its names."""
    x_ND = with_length(found.x_ND, config.feature_norm)
    parts, first = [], 0
    for classes in tasks:
        own = np.isin(found.labels_N, classes)
        if not own.any():
            raise InputError(f"task {len(parts) + 1}: none of its classes has an image to learn")
        places = np.full(len(found.text_CD), -1)
        places[classes] = np.arange(len(classes))
        text_CD = np.asarray(found.text_CD[classes], dtype=np.float64)
        cosine_NC = zero_shot(x_ND[own], text_CD)
        parts.append(Task(x_ND[own], places[found.labels_N[own]], cosine_NC, first, text_CD))
        first += len(classes)
    return Problem(parts, config, found.scale, seed)


def labelled(
    given: Problem, row: Row, draw: int, theta: float | str | None = None
) -> list[Labelled]:
    """Return the labels and weights of every task; rows of one draw get the same random weights."""
    rng = stream("n2l", f"weights {draw}", given.seed)
    options = given.options(row, theta)
    return [
        label_task(t.x_ND, t.cosine_NC, options, rng, t.true_N if row.given else None)
        for t in given.tasks
    ]


def classifiers(
    given: Problem, row: Row, labels: Sequence[Labelled], form: str = "gram"
) -> Iterator[np.ndarray]:
    """Yield the classifier (D x C) after every task."""
    config = given.config
    num_features = given.tasks[0].x_ND.shape[1]
    random_DM = None
    if row.expanded:
        random_DM = baselines.projection(num_features, config.expansion, given.seed)
        num_features = config.expansion
    learner = recursion(form, num_features, config.ridge)
    rng = stream("n2l", "hold-out", given.seed)
    for task, found in zip(given.tasks, labels, strict=True):
        x_ND = baselines.expanded(task.x_ND, random_DM)
        if row.searched:
            learner.ridge = baselines.search_ridge(x_ND, found.labels_N, config.ridges, rng)
        targets_NC = one_hot(task.first + found.labels_N, task.last)
        learner.update(x_ND, targets_NC, found.weight_N)
        yield learner.solve()


def zero_shot_classifiers(given: Problem) -> Iterator[np.ndarray]:
    """Yield the unit embeddings of the names so far (D x C)."""
    for end in range(1, len(given.tasks) + 1):
        yield unit(np.concatenate([task.text_CD for task in given.tasks[:end]])).T


def fine_tuned_classifiers(given: Problem, labels: Sequence[Labelled]) -> Iterator[np.ndarray]:
    """Yield the classifier fine-tuned on one task after another (D x C)."""
    settings = given.config.fine_tuning
    learner = baselines.FineTuned(given.scale, **settings.model_dump())
    rng = stream("n2l", "fine-tuning", given.seed)
    for task, found in zip(given.tasks, labels, strict=True):
        learner.learn(task.x_ND, task.first + found.labels_N, task.text_CD, rng)
        yield learner.w_CD.T


def joint_classifiers(given: Problem, labels: Sequence[Labelled]) -> Iterator[np.ndarray]:
    """Yield scikit-learn's ridge regression on the images of all tasks so far (D x C)."""
    from sklearn.linear_model import Ridge

    pairs = list(zip(given.tasks, labels, strict=True))
    for end in range(1, len(pairs) + 1):
        width = pairs[end - 1][0].last
        x_ND = np.concatenate([task.x_ND for task, _ in pairs[:end]])
        y_NC = np.concatenate(
            [one_hot(task.first + found.labels_N, width) for task, found in pairs[:end]]
        )
        weight_N = np.concatenate([found.weight_N for _, found in pairs[:end]])
        model = Ridge(alpha=given.config.ridge, fit_intercept=False, solver="cholesky")
        # of a single class scikit-learn gives a vector
        yield np.atleast_2d(model.fit(x_ND, y_NC, sample_weight=weight_N).coef_).T
