"""What is measured of labels and classifiers.

Shapes: T tasks, N images, C classes, D features.
"""

from collections.abc import Sequence

import numpy as np

from steps.n2l.labelling import Labelled


def label_accuracy(labels: Sequence[np.ndarray], true: Sequence[np.ndarray]) -> float:
    """Return the share of right labels over the images of all tasks (%)."""
    return 100 * float((np.concatenate(labels) == np.concatenate(true)).mean())


def over_tasks(right_TN: Sequence[np.ndarray], task_N: np.ndarray) -> dict[str, object]:
    """Return accuracies (%) from whether each test image is right after each task.

    `right_TN[t]` counts for images of tasks up to t. `curve`: accuracy over all classes seen, by
    task; `average` its mean, `last` its end; `forgetting`: how much a task's best accuracy lies
    above its last, the mean over all tasks but the last.
    """
    num_tasks = len(right_TN)
    by_task_TT = np.full((num_tasks, num_tasks), np.nan)
    curve = []
    for after, right_N in enumerate(right_TN):
        curve.append(100 * float(right_N[task_N <= after].mean()))
        for task in range(after + 1):
            by_task_TT[after, task] = 100 * right_N[task_N == task].mean()
    best_T = np.nanmax(by_task_TT, axis=0)
    lost_T = best_T[:-1] - by_task_TT[-1, :-1]
    return {
        "curve": curve,
        "average": float(np.mean(curve)),
        "last": curve[-1],
        "forgetting": float(lost_T.mean()) if num_tasks > 1 else 0.0,
    }


def column_lengths(w_DC: np.ndarray, labels: Sequence[np.ndarray]) -> dict[str, float]:
    """Return how uneven the columns of a classifier are, and whether frequent labels have long
    ones.

    `norm_variation`: standard deviation of the lengths over their mean. `norm_correlation`:
    Pearson's, of length and number of labels (columns without any included). `labels`: columns, of
    all tasks.
    """
    lengths_C = np.linalg.norm(w_DC, axis=0)
    counts_C = np.bincount(np.concatenate(labels), minlength=len(lengths_C))
    varied = lengths_C.std() > 0 and counts_C.std() > 0
    return {
        "norm_variation": float(lengths_C.std() / lengths_C.mean()),
        "norm_correlation": float(np.corrcoef(lengths_C, counts_C)[0, 1]) if varied else 0.0,
    }


def largest_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, of the largest value expected."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def kept_directions(labels: Sequence[Labelled]) -> float:
    """Return the mean over tasks of the number of directions that the refinement keeps."""
    return float(np.mean([max(1, (found.singular > found.theta).sum()) for found in labels]))
