"""What N2L makes of one task before the recursion: labels and weights for its images.

Shapes: N images of a task, D features, C classes of the task.
"""

from typing import NamedTuple

import numpy as np

from steps.n2l import weights
from steps.n2l.refine import Rule, refine
from steps.shared.runtime import InputError


class Options(NamedTuple):
    """How a task is labelled; a row of the tables is one of these."""

    refine: bool
    inter: bool  # weights between classes
    intra: weights.Within  # weights within a class
    scope: weights.Scope
    theta: float | Rule
    iterations: int
    ridge: float
    zero_shot_scale: float  # of cosines, to logits
    entropy_scale: float  # of a ridge classifier's scores, which are near 0 and 1, to logits


class Labelled(NamedTuple):
    """A task's labels, as columns of its own classes, and weights."""

    before_N: np.ndarray  # zero-shot, or the given ones
    labels_N: np.ndarray
    weight_N: np.ndarray
    singular: np.ndarray  # of the features; empty where nothing was refined
    theta: float  # nan where nothing was refined


def with_length(x_ND: np.ndarray, length: float | None) -> np.ndarray:
    """Return features in float64, every row scaled to `length`, or as they are if that is None.

    theta and the ridge are on this scale; CLIP's features have lengths of about 10.
    """
    x_ND = np.asarray(x_ND, dtype=np.float64)
    if length is None:
        return x_ND
    lengths_N1 = np.linalg.norm(x_ND, axis=1, keepdims=True)
    return x_ND * (length / np.where(lengths_N1 > 0, lengths_N1, length))


def label_task(
    x_ND: np.ndarray,
    cosine_NC: np.ndarray | None,
    options: Options,
    rng: np.random.Generator,
    given_N: np.ndarray | None = None,
    num_classes: int | None = None,
) -> Labelled:
    """Return the labels of a task's images and their weights.

    `cosine_NC`: with the names of this task's classes alone. `given_N` are true labels, which are
    never refined; without cosines the entropies then come from a ridge classifier of the task.
    """
    if cosine_NC is None and given_N is None:
        raise InputError("a task without labels needs the cosines with its class names")
    count = num_classes if cosine_NC is None else cosine_NC.shape[1]
    before_N = cosine_NC.argmax(1) if given_N is None else given_N
    labels_N, singular, theta = before_N, np.empty(0), float("nan")
    logits_NC = None if cosine_NC is None else options.zero_shot_scale * cosine_NC
    settings = {"theta": options.theta, "ridge": options.ridge}
    if options.refine and given_N is None:
        found = refine(x_ND, before_N, count, iterations=options.iterations, **settings)
        labels_N, singular, theta = found.labels_N, found.singular, found.theta
        logits_NC = options.entropy_scale * found.scores_NC
    elif logits_NC is None and options.intra != "none":
        found = refine(x_ND, before_N, count, iterations=1, **settings)
        logits_NC = options.entropy_scale * found.scores_NC
    weight_N = np.ones(len(x_ND))
    if options.intra != "none":
        entropy_N = weights.entropy(logits_NC)
        weight_N = weights.within_classes(
            labels_N, entropy_N, options.intra, scope=options.scope, rng=rng
        )
    if options.inter:
        weight_N = weight_N * weights.between_classes(labels_N, count)
    return Labelled(before_N, labels_N, weight_N, singular, theta)
