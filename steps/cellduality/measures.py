"""What is measured of answers and of generated cells.

Shapes: N cells, D dimensions of an embedding, G genes. Shares are in %.
"""

import numpy as np

from steps.shared.runtime import InputError


def accuracy(true_N: np.ndarray, found_N: np.ndarray) -> float:
    """Return the share of right answers (%); -1 is an answer that names no label."""
    return 100 * float((np.asarray(true_N) == np.asarray(found_N)).mean())


def macro_f1(true_N: np.ndarray, found_N: np.ndarray) -> float:
    """Return the mean F1 (%) over the labels that occur in the truth; -1 names no label."""
    from sklearn.metrics import f1_score

    labels = np.unique(true_N)
    return 100 * float(f1_score(true_N, found_N, labels=labels, average="macro", zero_division=0))


def knn_accuracy(
    real_ND: np.ndarray,
    real_label_N: np.ndarray,
    generated_ND: np.ndarray,
    wanted_N: np.ndarray,
    k: int,
) -> float:
    """Return the share (%) of generated cells whose k nearest real cells vote for the wanted label.

    Euclidean distance; a tie goes to the label that is first in order. The real cells must be held
    out from training.
    """
    from sklearn.neighbors import KNeighborsClassifier

    if k > len(real_ND):
        raise InputError(f"k = {k}: must be at most the {len(real_ND)} real cells")
    fitted = KNeighborsClassifier(k, algorithm="brute").fit(real_ND, real_label_N)
    return accuracy(wanted_N, fitted.predict(generated_ND))


def diversity(generated_ND: np.ndarray, real_ND: np.ndarray) -> float:
    """Return the mean distance of two generated cells over that of two real ones, of a condition.

    NaN where the real cells are all the same.
    """
    real = mean_distance(real_ND)
    return mean_distance(generated_ND) / real if real > 0 else float("nan")


def mean_distance(x_ND: np.ndarray) -> float:
    """Return the mean Euclidean distance of two different cells."""
    from scipy.spatial.distance import pdist

    if len(x_ND) < 2:
        raise InputError(f"{len(x_ND)} cells: two are needed for a distance")
    return float(pdist(x_ND).mean())


def delta_pearson(
    before_NG: np.ndarray, found_NG: np.ndarray, true_NG: np.ndarray, condition_N: np.ndarray
) -> float:
    """Return Pearson's correlation of predicted and true mean change, the mean over conditions.

    The change of a condition is the mean over its cells of expression after minus before, G
    numbers. A prediction that changes nothing, or all genes alike, counts 0.
    """
    found = []
    for condition in np.unique(condition_N):
        here = condition_N == condition
        deltas = [(after_NG[here] - before_NG[here]).mean(axis=0, dtype=float)
                  for after_NG in (found_NG, true_NG)]  # fmt: skip
        varied = min(delta.std() for delta in deltas) > 1e-12
        found.append(np.corrcoef(*deltas)[0, 1] if varied else 0.0)
    return float(np.mean(found))
