"""scFID: the Frechet distance of generated and real cells, condition by condition.

The embedding is a PCA fitted once on real training cells and used for every row of a table. Shapes:
N cells, G genes, D dimensions, C conditions.
"""

from dataclasses import dataclass

import numpy as np

from steps.shared.runtime import InputError


@dataclass(frozen=True)
class Basis:
    """A PCA: the mean (G) and the orthonormal directions (G, D) of training cells."""

    mean_G: np.ndarray
    directions_GD: np.ndarray

    @classmethod
    def fit(cls, train_NG: np.ndarray, dims: int) -> "Basis":
        """Fit to real training cells (N, G); each direction's largest entry is positive."""
        if not 1 <= dims <= min(len(train_NG) - 1, train_NG.shape[1]):
            raise InputError(
                f"dims = {dims}: must be from 1 to {min(len(train_NG) - 1, train_NG.shape[1])}"
            )
        mean_G = train_NG.mean(axis=0, dtype=float)
        directions_DG = np.linalg.svd(train_NG - mean_G, full_matrices=False)[2][:dims]
        largest_D = np.abs(directions_DG).argmax(axis=1)
        directions_DG *= np.sign(directions_DG[np.arange(dims), largest_D])[:, None]
        return cls(mean_G, directions_DG.T)

    def embed(self, expression_NG: np.ndarray) -> np.ndarray:
        """Return cells in the basis (N, D), float64."""
        return (expression_NG - self.mean_G) @ self.directions_GD


def moments(
    x_ND: np.ndarray, condition_N: np.ndarray, num_conditions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return means (C, D) and covariances (C, D, D), divided by n - 1, of each condition."""
    counts = np.bincount(condition_N, minlength=num_conditions)
    if len(counts) > num_conditions or counts.min() < 2:
        raise InputError(f"condition {counts.argmin()}: {counts.min()} cells, two are needed")
    mean_CD = np.empty((num_conditions, x_ND.shape[1]))
    cov_CDD = np.empty((num_conditions, x_ND.shape[1], x_ND.shape[1]))
    for condition in range(num_conditions):
        here_ND = x_ND[condition_N == condition].astype(float)
        mean_CD[condition] = here_ND.mean(axis=0)
        centred_ND = here_ND - mean_CD[condition]
        cov_CDD[condition] = centred_ND.T @ centred_ND / (len(here_ND) - 1)
    return mean_CD, cov_CDD


def frechet_distances(
    mean_a_CD: np.ndarray, cov_a_CDD: np.ndarray, mean_b_CD: np.ndarray, cov_b_CDD: np.ndarray
) -> np.ndarray:
    """Return the squared Frechet distance of C pairs of Gaussians (C), at least 0.

    |mean_a - mean_b|^2 + tr(a) + tr(b) - 2 tr (r' b r)^1/2 with a = r r'. The last is symmetric, so
    its eigenvalues, those of a b, are never complex.
    """
    root_CDD = _roots(cov_a_CDD)
    inner_CD = np.linalg.eigvalsh(root_CDD.swapaxes(1, 2) @ cov_b_CDD @ root_CDD)
    traces_C = np.trace(cov_a_CDD, axis1=1, axis2=2) + np.trace(cov_b_CDD, axis1=1, axis2=2)
    shift_C = ((mean_a_CD - mean_b_CD) ** 2).sum(axis=1)
    return (shift_C + traces_C - 2 * np.sqrt(inner_CD.clip(0)).sum(axis=1)).clip(0)


def _roots(cov_CDD: np.ndarray) -> np.ndarray:
    """Return r with r r' = cov of each: Cholesky's, or by eigenvectors where one is singular."""
    try:
        return np.linalg.cholesky(cov_CDD)
    except np.linalg.LinAlgError:
        values_CD, vectors_CDD = np.linalg.eigh(cov_CDD)
        return vectors_CDD * np.sqrt(values_CD.clip(0))[:, None, :]


def scfid(
    real_ND: np.ndarray,
    real_condition_N: np.ndarray,
    generated_ND: np.ndarray,
    generated_condition_N: np.ndarray,
    num_conditions: int,
) -> np.ndarray:
    """Return scFID of each condition (C): real cells against generated ones, both embedded.

    A covariance of n cells is worth something up to about n / 5 dimensions.
    """
    real = moments(real_ND, real_condition_N, num_conditions)
    generated = moments(generated_ND, generated_condition_N, num_conditions)
    return frechet_distances(*real, *generated)
