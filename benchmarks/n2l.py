"""The race of N2L: recursive ridge regression over tasks, against three other ways to do it.

    python benchmarks/n2l.py
    python benchmarks/n2l.py --features 256 --tasks 4 --repeats 2 --out small.csv

Everything in float64 on two threads, wall seconds; sides take turns, medians, with the smallest and
largest ratio of one turn; results are compared before anything is timed. The peers: ACIL's
recursive update as Zhuang et al. (NeurIPS 2022, equations 9 and 10) write it, in torch, in batches
of 512; RanPAC's choice among 17 ridges by a solve for each (McDonnell et al., NeurIPS 2023), in
torch; scikit-learn's Ridge fitted anew on all images after every task, with weights. Writes
benchmarks/results/n2l.csv.
"""

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
THREADS = 2
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when numpy and torch are imported
    os.environ[name] = str(THREADS)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from benchmarks.sides.race import alternate, difference, outcome, seconds, write_table  # noqa: E402
from benchmarks.sides.wsm import anonymous_mib  # noqa: E402
from steps.n2l.baselines import HOLD_OUT, hold_out_losses  # noqa: E402
from steps.n2l.ridge import Gram, one_hot  # noqa: E402

RIDGE = 100.0
RIDGES = [10.0**power for power in range(-8, 9)]  # RanPAC's grid
BATCH = 512
TOLERANCE = 1e-8  # of the largest value compared
Tasks = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # features, targets, weights


def main() -> None:
    """Run every race and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--classes", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--images", type=int, default=500, help="of a task")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/n2l.csv")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    stream = tasks(args)
    size = f"D = {args.features}, {args.tasks} tasks x {args.images}, C = {args.classes}"
    rows = [*whole_stream(stream, size, args.repeats), *search(stream[0], args.repeats)]
    write_table(args.out, [*rows, *memory(stream, size)])


def tasks(args: argparse.Namespace) -> Tasks:
    """Return random features, positive as after a ReLU, and targets of the classes seen so far."""
    rng = np.random.default_rng(0)
    step = args.classes // args.tasks
    found = []
    for task in range(args.tasks):
        x_ND = np.maximum(rng.normal(size=(args.images, args.features)), 0)
        labels = task * step + rng.integers(0, step, args.images)
        weight_N = rng.uniform(0.5, 1.5, args.images)
        found.append((x_ND, one_hot(labels, (task + 1) * step), weight_N))
    return found


def unweighted(stream: Tasks) -> Tasks:
    """Return the tasks with weights of 1, since ACIL has none."""
    return [(x_ND, y_NC, np.ones(len(x_ND))) for x_ND, y_NC, _ in stream]


def ours(stream: Tasks) -> np.ndarray:
    """Return the classifier after all tasks, having had one after each."""
    learner = Gram(stream[0][0].shape[1], RIDGE)
    for task in stream:
        learner.update(*task)
        w_DC = learner.solve()
    return w_DC


def acil(stream: Tasks) -> np.ndarray:
    """Return the same by the equations of ACIL, in the order in which they are written."""
    dim = stream[0][0].shape[1]
    R, W = torch.eye(dim, dtype=torch.double) / RIDGE, torch.zeros(dim, 0, dtype=torch.double)
    for x_ND, y_NC, _ in stream:
        for begin in range(0, len(x_ND), BATCH):
            X, Y = (torch.from_numpy(part[begin : begin + BATCH]) for part in (x_ND, y_NC))
            W = torch.cat([W, W.new_zeros(dim, Y.shape[1] - W.shape[1])], dim=1)
            K = torch.inverse(torch.eye(len(X)).to(X) + X @ R @ X.T)
            R -= R @ X.T @ K @ X @ R
            W += R @ X.T @ (Y - X @ W)
    return W.numpy()


def joint(stream: Tasks) -> np.ndarray:
    """Return the same by scikit-learn on all images so far, after every task."""
    from sklearn.linear_model import Ridge

    for end in range(1, len(stream) + 1):
        width = stream[end - 1][1].shape[1]
        x_ND = np.concatenate([x for x, _, _ in stream[:end]])
        y_NC = np.concatenate(
            [np.pad(y, ((0, 0), (0, width - y.shape[1]))) for _, y, _ in stream[:end]]
        )
        weight_N = np.concatenate([weight for _, _, weight in stream[:end]])
        w_DC = Ridge(alpha=RIDGE, fit_intercept=False).fit(x_ND, y_NC, weight_N).coef_.T
    return w_DC


def whole_stream(stream: Tasks, size: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Race the recursion over all tasks."""
    peers = (
        ("ACIL's recursion, batches of 512", acil, "torch", unweighted(stream)),
        ("Ridge on all so far, weighted", joint, "scikit-learn", stream),
    )
    for name, side, package, given in peers:
        error = difference(side(given), ours(given), TOLERANCE)
        mine, theirs = partial(seconds, ours, given), partial(seconds, side, given)
        yield outcome(
            "a classifier after every task",
            size,
            f"{name} ({package})",
            importlib.metadata.version(package),
            alternate(repeats, mine, theirs),
            unit="s",
            error=error,
        )


def ranpac(features: Tensor, Y: Tensor) -> list[float]:
    """Return the losses of all ridges as RanPAC finds them: one solve for each."""
    fitted = int((1 - HOLD_OUT) * len(features))
    Q, G = features[:fitted].T @ Y[:fitted], features[:fitted].T @ features[:fitted]
    losses = []
    for ridge in RIDGES:
        W = torch.linalg.solve(G + ridge * torch.eye(len(G), dtype=G.dtype), Q)
        losses.append(float(((features[fitted:] @ W - Y[fitted:]) ** 2).mean()))
    return losses


def search(task: tuple[np.ndarray, ...], repeats: int) -> Iterator[dict[str, Any]]:
    """Race the choice of the ridge on a task."""
    x_ND, y_NC, _ = task
    tensors = (torch.from_numpy(x_ND), torch.from_numpy(y_NC))
    found, theirs = hold_out_losses(x_ND, y_NC, RIDGES), np.array(ranpac(*tensors))
    # at ridges below 1e-4 of a singular matrix their solve itself has few digits
    sound = np.array(RIDGES) >= 1e-4
    error = difference(found[sound], theirs[sound], TOLERANCE)
    if found.argmin() != theirs.argmin():
        raise SystemExit("results differ: another ridge is chosen")
    mine = partial(seconds, hold_out_losses, x_ND, y_NC, RIDGES)
    pairs = alternate(repeats, mine, partial(seconds, ranpac, *tensors))
    yield outcome(
        "choice of the ridge on one task",
        f"N = {x_ND.shape[0]}, M = {x_ND.shape[1]}, {len(RIDGES)} ridges",
        "RanPAC's search (torch)",
        importlib.metadata.version("torch"),
        pairs,
        unit="s",
        error=error,
    )


def memory(stream: Tasks, size: str) -> Iterator[dict[str, Any]]:
    """Compare what is kept, and show that the process does not grow from task to task."""
    learner, after = Gram(stream[0][0].shape[1], RIDGE), []
    for task in stream:
        learner.update(*task)
        learner.solve()
        after.append(anonymous_mib())
    kept = sum(value.nbytes for value in learner.state.values()) / 2**20
    images = sum(x.nbytes + y.nbytes for x, y, _ in stream) / 2**20
    version = importlib.metadata.version("scikit-learn")
    pair, race = [(kept, images)], "kept after the last task"
    yield outcome(race, size, "all images", version, pair, unit="MiB", error=None)
    pair, race = [(after[-1], after[min(1, len(after) - 1)])], "process after the last task"
    yield outcome(race, size, "after the second task", "ours", pair, unit="MiB", error=None)


if __name__ == "__main__":
    main()
