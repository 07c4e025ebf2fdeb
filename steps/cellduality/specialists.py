"""Baselines that do one task each: logistic regression, nearest neighbours, mean shift.

Shapes: N items, F features, G genes.
"""

import numpy as np

from steps.shared.runtime import InputError

KINDS = ("logistic", "knn")
NEIGHBOURS = 5


def classify(
    kind: str, train_NF: np.ndarray, train_label_N: np.ndarray, test_NF: np.ndarray
) -> np.ndarray:
    """Return labels of the test items; features are standardised by the training items."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if kind not in KINDS:
        raise InputError(f"specialist {kind!r}: must be one of {', '.join(KINDS)}")
    if len(np.unique(train_label_N)) == 1:
        return np.full(len(test_NF), train_label_N[0])
    if kind == "knn":
        model = KNeighborsClassifier(min(NEIGHBOURS, len(train_NF)), algorithm="brute")
    else:
        model = LogisticRegression(max_iter=2000)
    return make_pipeline(StandardScaler(), model).fit(train_NF, train_label_N).predict(test_NF)


def mean_shift(
    before_train_NG: np.ndarray,
    after_train_NG: np.ndarray,
    condition_train_N: np.ndarray,
    before_NG: np.ndarray,
    condition_N: np.ndarray,
) -> np.ndarray:
    """Return expression after a perturbation (N, G): before, plus the training cells' mean change.

    The mean is the perturbation's own; of one that training lacks, that of all training cells.
    Never below 0.
    """
    delta_NG = after_train_NG - before_train_NG
    found_NG = before_NG + delta_NG.mean(axis=0)
    for condition in np.intersect1d(condition_N, condition_train_N):
        here = condition_N == condition
        found_NG[here] = before_NG[here] + delta_NG[condition_train_N == condition].mean(axis=0)
    return found_NG.clip(0)
