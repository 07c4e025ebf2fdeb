"""What N2L is compared with: random expansions (RAIL, RanPAC), their ridge search, fine-tuning.

The rows are reimplemented from the papers' equations: McDonnell et al., RanPAC (NeurIPS 2023), Xu
et al., RAIL (NeurIPS 2024), Zhuang et al., ACIL (NeurIPS 2022, which is plain recursive ridge).
Shapes: N images, D features, M expanded features, C classes, G ridges of a grid.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh

from steps.n2l.refine import probabilities, unit
from steps.n2l.ridge import one_hot
from steps.shared.runtime import stream

HOLD_OUT = 0.2  # of a task's images: RanPAC's choice


def projection(num_features: int, width: int, seed: int) -> np.ndarray:
    """Return a random matrix (D x M) with entries N(0, 1 / D): features keep their size."""
    rng = stream("n2l", "projection", seed)
    return rng.normal(0, num_features**-0.5, (num_features, width))


def expanded(x_ND: np.ndarray, projection_DM: np.ndarray | None) -> np.ndarray:
    """Return ReLU(X P), or X where there is no projection."""
    return x_ND if projection_DM is None else np.maximum(x_ND @ projection_DM, 0)


def hold_out_losses(x_NM: np.ndarray, y_NC: np.ndarray, ridges: Sequence[float]) -> np.ndarray:
    """Return the squared error on held-out images, the last fifth, of every ridge of a grid (G).

    (F^T F + r I)^-1 F^T Y = F^T (F F^T + r I)^-1 Y: with one eigendecomposition of the smaller of
    the two products each ridge only divides by other numbers, where RanPAC solves anew for each.
    """
    fitted = int((1 - HOLD_OUT) * len(x_NM))
    train_NM, target_NC, held_NM = x_NM[:fitted], y_NC[:fitted], x_NM[fitted:]
    if fitted <= x_NM.shape[1]:
        values, vectors = eigh(train_NM @ train_NM.T, driver="evd")
        left, right = held_NM @ (train_NM.T @ vectors), vectors.T @ target_NC
    else:
        values, vectors = eigh(train_NM.T @ train_NM, driver="evd")
        left, right = held_NM @ vectors, vectors.T @ (train_NM.T @ target_NC)
    values = np.maximum(values, 0)[:, None]
    errors = (left @ (right / (values + ridge)) - y_NC[fitted:] for ridge in ridges)
    return np.array([np.mean(error**2) for error in errors])


def search_ridge(
    x_NM: np.ndarray, labels_N: np.ndarray, ridges: Sequence[float], rng: np.random.Generator
) -> float:
    """Return the ridge of lowest error on a random fifth of a task, by its pseudo labels.

    Data sets come sorted by class: the last fifth as it comes would be classes never fitted.
    """
    order = rng.permutation(len(x_NM))
    targets_NC = one_hot(labels_N, labels_N.max() + 1)
    return float(ridges[int(hold_out_losses(x_NM[order], targets_NC[order], ridges).argmin())])


class FineTuned:
    """A linear classifier fine-tuned on one task after another, from the zero-shot classifier.

    Scores are scale x cosine of feature and column. Adam on the cross-entropy over all classes seen
    so far; nothing keeps the earlier tasks.
    """

    def __init__(self, scale: float, *, rate: float, epochs: int, batch_size: int) -> None:
        self.scale, self.rate, self.epochs, self.batch_size = scale, rate, epochs, batch_size
        self.w_CD = np.empty((0, 0))

    def learn(
        self, x_ND: np.ndarray, labels_N: np.ndarray, text_CD: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Learn a task's labels; `text_CD`: embeddings of its classes, which become columns."""
        x_ND, new_CD = unit(x_ND), unit(text_CD)
        self.w_CD = np.concatenate([self.w_CD, new_CD]) if self.w_CD.size else new_CD.copy()
        mean, square = np.zeros_like(self.w_CD), np.zeros_like(self.w_CD)
        targets_NC = one_hot(labels_N, len(self.w_CD))
        step = 0
        for _ in range(self.epochs):
            order = rng.permutation(len(x_ND))
            for begin in range(0, len(order), self.batch_size):
                own, step = order[begin : begin + self.batch_size], step + 1
                error_BC = probabilities(x_ND[own] @ self.w_CD.T, self.scale) - targets_NC[own]
                gradient = self.scale * error_BC.T @ x_ND[own] / len(own)
                mean = 0.9 * mean + 0.1 * gradient
                square = 0.999 * square + 0.001 * gradient**2
                corrected = np.sqrt(square / (1 - 0.999**step)) + 1e-8
                self.w_CD = self.w_CD - self.rate * mean / (1 - 0.9**step) / corrected
