"""Weighted ridge regression over tasks, exactly as on all data at once, in three forms.

Every form minimises sum_t (X_t W - Y_t)^T M_t (X_t W - Y_t) + ridge |W|^2, M_t = diag(weights), and
keeps a fixed number of values however many images it has seen. All in float64: at small ridges the
Woodbury form is worthless in float32. Shapes: N images, D features, C classes seen so far.
"""

from typing import Literal, Protocol

import numpy as np
from scipy.linalg import blas, cholesky, lapack, solve_triangular

from steps.shared.runtime import InputError

Form = Literal["gram", "woodbury", "qr"]


class Recursion(Protocol):
    """What the three forms share; `state` is everything that they keep, by name."""

    ridge: float
    state: dict[str, np.ndarray]

    def update(self, x_ND: np.ndarray, y_NC: np.ndarray, weight_N: np.ndarray) -> None:
        """Take in a chunk: features, targets (columns of classes not seen yet are new), weights."""

    def solve(self) -> np.ndarray:
        """Return the classifier W (D x C)."""


def recursion(form: Form, num_features: int, ridge: float) -> Recursion:
    """Return an empty recursion over `num_features` features."""
    if not ridge > 0:
        raise InputError(f"ridge = {ridge}: must be above 0, or W is not unique")
    if form not in FORMS:
        raise InputError(f"form = {form!r}: must be one of {', '.join(FORMS)}")
    return FORMS[form](num_features, ridge)


class Gram:
    """A <- A + X^T M X, C <- C + X^T M Y (new columns start at 0), W = (A + ridge I)^-1 C.

    The default: one symmetric product a chunk, one Cholesky factorisation when W is asked for.
    """

    def __init__(self, num_features: int, ridge: float) -> None:
        """Start without data."""
        self.ridge = ridge
        gram_DD = np.zeros((num_features, num_features), order="F")
        self.state = {"gram": gram_DD, "cross": np.zeros((num_features, 0))}
        self.work_DD = np.empty_like(gram_DD)  # a factorisation's place: fresh memory costs time

    def update(self, x_ND: np.ndarray, y_NC: np.ndarray, weight_N: np.ndarray) -> None:
        """See `Recursion`; only the lower triangle of A is kept up to date."""
        x_ND, y_NC = scaled(x_ND, y_NC, weight_N)
        # a row-major X is a column-major X^T: BLAS adds X^T X in place, without a copy
        gram_DD = np.asfortranarray(self.state["gram"])
        self.state["gram"] = blas.dsyrk(
            1.0, x_ND.T, beta=1.0, c=gram_DD, lower=True, overwrite_c=True
        )
        cross_DC = widened(self.state["cross"], y_NC.shape[1])
        own = np.flatnonzero(y_NC.any(axis=0))  # a task has few of the classes
        # by the same library as above: numpy has a BLAS of its own, whose threads would compete
        y_NC = np.ascontiguousarray(y_NC[:, own])
        cross_DC[:, own] += blas.dgemm(1.0, x_ND.T, y_NC.T, trans_b=True)
        self.state["cross"] = np.asfortranarray(cross_DC)

    def solve(self) -> np.ndarray:
        """See `Recursion`."""
        self.work_DD[...] = self.state["gram"]
        np.fill_diagonal(self.work_DD, self.work_DD.diagonal() + self.ridge)
        lower_DD, failed = lapack.dpotrf(self.work_DD, lower=True, clean=False, overwrite_a=True)
        if failed:
            raise InputError(f"ridge = {self.ridge}: too small for these features in float64")
        return lapack.dpotrs(lower_DD, self.state["cross"], lower=True)[0]


class Woodbury:
    """R = (A + ridge I)^-1 itself, by the matrix inversion lemma: for chunks of few images.

    K = (I + X R X^T)^-1, R <- R - R X^T K X R, W <- [W 0] + R X^T (Y - X [W 0]) with the new R;
    X and Y are times the square roots of the weights, so that a weight of 0 is allowed.
    """

    def __init__(self, num_features: int, ridge: float) -> None:
        """Start without data: R = I / ridge, so that the ridge enters once."""
        self.ridge = ridge
        inverse_DD = np.eye(num_features) / ridge
        self.state = {"inverse": inverse_DD, "w": np.zeros((num_features, 0))}

    def update(self, x_ND: np.ndarray, y_NC: np.ndarray, weight_N: np.ndarray) -> None:
        """See `Recursion`."""
        x_ND, y_NC = scaled(x_ND, y_NC, weight_N)
        inverse_DD = self.state["inverse"]
        w_DC = widened(self.state["w"], y_NC.shape[1])
        y_NC = widened(y_NC, w_DC.shape[1])
        gain_DN = inverse_DD @ x_ND.T
        kernel_NN = x_ND @ gain_DN
        np.fill_diagonal(kernel_NN, kernel_NN.diagonal() + 1)
        # with K^-1 = L L^T the subtracted matrix is a square, so R stays symmetric
        lower_NN = cholesky(kernel_NN, lower=True, check_finite=False)
        half_ND = solve_triangular(lower_NN, gain_DN.T, lower=True, check_finite=False)
        inverse_DD = inverse_DD - half_ND.T @ half_ND
        # the new R X^T is gain K = half^T L^-1
        left_NC = solve_triangular(lower_NN, y_NC - x_ND @ w_DC, lower=True, check_finite=False)
        self.state = {"inverse": inverse_DD, "w": w_DC + half_ND.T @ left_NC}

    def solve(self) -> np.ndarray:
        """See `Recursion`."""
        return self.state["w"]


class QR:
    """The square root of A + ridge I, by orthogonal transformations alone: the best conditioned.

    QR of [[S Z], [sqrt(M) X sqrt(M) Y]] gives the new (S, Z); W solves the triangular S W = Z.
    """

    def __init__(self, num_features: int, ridge: float) -> None:
        """Start without data: S = sqrt(ridge) I."""
        self.ridge = ridge
        root_DD = np.sqrt(ridge) * np.eye(num_features)
        self.state = {"root": root_DD, "rotated": np.zeros((num_features, 0))}

    def update(self, x_ND: np.ndarray, y_NC: np.ndarray, weight_N: np.ndarray) -> None:
        """See `Recursion`."""
        x_ND, y_NC = scaled(x_ND, y_NC, weight_N)
        rotated_DC = widened(self.state["rotated"], y_NC.shape[1])
        num_features, num_classes = rotated_DC.shape
        stacked = np.vstack([self.state["root"], x_ND])
        targets = np.vstack([rotated_DC, widened(y_NC, num_classes)])
        factored, tau, _, _ = lapack.dgeqrf(stacked, overwrite_a=True)
        turned, _, _ = lapack.dormqr(
            "L", "T", factored, tau, targets, 64 * max(1, num_classes), overwrite_c=True
        )
        root_DD = np.triu(factored[:num_features])
        self.state = {"root": root_DD, "rotated": turned[:num_features].copy()}

    def solve(self) -> np.ndarray:
        """See `Recursion`."""
        return solve_triangular(self.state["root"], self.state["rotated"], check_finite=False)


FORMS: dict[str, type] = {"gram": Gram, "woodbury": Woodbury, "qr": QR}


def scaled(
    x_ND: np.ndarray, y_NC: np.ndarray, weight_N: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y times the square roots of the weights, in float64.

    Refused: negative weights, with which the Gram form could silently lose its positive
    definiteness, and features that are no numbers, which would stay in it for good.
    """
    if not np.isfinite(x_ND).all():
        raise InputError("features: some are infinite or no numbers")
    if len(weight_N) and not weight_N.min() >= 0:
        raise InputError(f"weights: the smallest is {weight_N.min()}: must be 0 or above")
    root_N1 = np.sqrt(weight_N)[:, None]
    return np.ascontiguousarray(x_ND * root_N1, dtype=np.float64), y_NC * root_N1


def widened(values: np.ndarray, columns: int) -> np.ndarray:
    """Return `values` with columns of zeros added up to `columns`; wider ones stay as they are."""
    missing = columns - values.shape[1]
    return np.pad(values, ((0, 0), (0, missing))) if missing > 0 else values


def one_hot(labels_N: np.ndarray, num_classes: int) -> np.ndarray:
    """Return the targets (N x C) of integer labels."""
    targets_NC = np.zeros((len(labels_N), num_classes))
    targets_NC[np.arange(len(labels_N)), labels_N] = 1
    return targets_NC
