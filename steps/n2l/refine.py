"""Pseudo labels from class names, and their refinement in the leading directions of a task.

Shapes: N images of a task, D features, C classes of the task, K kept directions.
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh

from steps.n2l.ridge import one_hot
from steps.shared.runtime import InputError

Rule = Literal["median"]


class Refined(NamedTuple):
    """Labels after refinement and where they come from."""

    labels_N: np.ndarray
    scores_NC: np.ndarray  # of the last refinement's classifier
    singular: np.ndarray  # all singular values of the task's features, descending
    theta: float  # those above it are kept


def zero_shot(x_ND: np.ndarray, text_CD: np.ndarray) -> np.ndarray:
    """Return the cosine of every image with every class name (N x C)."""
    return unit(x_ND) @ unit(text_CD).T


def unit(values: np.ndarray) -> np.ndarray:
    """Return rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1)


def probabilities(cosine_NC: np.ndarray, scale: float) -> np.ndarray:
    """Return softmax(scale x cosine) over the classes (N x C)."""
    logits_NC = scale * cosine_NC
    weights_NC = np.exp(logits_NC - logits_NC.max(1, keepdims=True))
    return weights_NC / weights_NC.sum(1, keepdims=True)


def fused(cosine_NC: np.ndarray, learnt_NC: np.ndarray, scale: float, fusion: float) -> np.ndarray:
    """Return RAIL's mixture of zero-shot probabilities and ridge scores."""
    return (1 - fusion) * probabilities(cosine_NC, scale) + fusion * learnt_NC


def threshold(singular: np.ndarray, shape: tuple[int, int], theta: float | Rule) -> float:
    """Return the singular value above which directions are kept.

    A number is taken as it is (the paper's is 10). "median" is Gavish and Donoho's hard threshold
    for noise of unknown size (IEEE Trans. Inf. Theory 60, 2014): omega(b) times the median singular
    value, b the smaller side over the larger; it asks for no label and has nothing to choose.
    """
    if theta != "median":
        if isinstance(theta, str) or not theta >= 0:
            raise InputError(f"theta = {theta!r}: must be a number from 0 up, or 'median'")
        return float(theta)
    b = min(shape) / max(shape)
    omega = 0.56 * b**3 - 0.95 * b**2 + 1.82 * b + 1.43
    return float(omega * np.median(singular))


def left_vectors(x_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (U (N x min(N, D)), singular values, descending) of X = U diag(d) V^T.

    By the eigenvectors of the smaller of X X^T and X^T X, several times faster than an SVD. Values
    below 1e-7 of the largest are lost to rounding and come out as 0, with columns of zeros.
    """
    num_images, num_features = x_ND.shape
    if num_images <= num_features:
        squares, vectors = eigh(x_ND @ x_ND.T, driver="evd")
    else:
        squares, right = eigh(x_ND.T @ x_ND, driver="evd")
        vectors = x_ND @ right
    singular = np.sqrt(np.maximum(squares[::-1], 0))
    vectors = np.ascontiguousarray(vectors[:, ::-1])
    kept = singular > 1e-7 * singular.max(initial=0)
    if num_images > num_features:
        vectors /= np.where(kept, singular, 1)
    return vectors * kept, singular * kept


def ridge_scores(
    u_NK: np.ndarray, singular_K: np.ndarray, y_NC: np.ndarray, ridge: float
) -> np.ndarray:
    """Return X_K W' of ridge regression on targets Y (N x C), X_K = U_K diag(d) V_K^T.

    In the basis V the matrix to invert is diagonal: U_K diag(d^2 / (d^2 + ridge)) U_K^T Y. By
    Theorem 1 direction j is better left out where the noise of the targets has a variance of at
    least (2 ridge + d_j^2) a_j^2, a_j being the true weight along it.
    """
    shrunk_K1 = (singular_K**2 / (singular_K**2 + ridge))[:, None]
    return u_NK @ (shrunk_K1 * (u_NK.T @ y_NC))


def refine(
    x_ND: np.ndarray,
    labels_N: np.ndarray,
    num_classes: int,
    *,
    theta: float | Rule,
    ridge: float,
    iterations: int,
) -> Refined:
    """Refit a ridge classifier on its own labels in the directions with singular values above
    theta.

    X_K = X V_K; repeated: W' = (X_K^T X_K + ridge I)^-1 X_K^T Y, labels = argmax X_K W'.
    """
    u_NK, singular = left_vectors(x_ND)
    cut = threshold(singular, x_ND.shape, theta)
    # the first direction stays whatever theta says: without any there is no classifier
    kept = max(1, int((singular > cut).sum()))
    scores_NC = one_hot(labels_N, num_classes)
    for _ in range(iterations):
        y_NC = one_hot(labels_N, num_classes)
        scores_NC = ridge_scores(u_NK[:, :kept], singular[:kept], y_NC, ridge)
        labels_N = scores_NC.argmax(1)
    return Refined(labels_N, scores_NC, singular, cut)
