"""Learn every row's classifiers from the labels and weights of merge, and test them.

Nothing is chosen here: a classifier is the closed form of its labels, weights and images.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from steps.n2l import baselines, embeddings, learner, measures
from steps.n2l.config import Merge
from steps.n2l.labelling import Labelled, with_length
from steps.n2l.refine import fused, zero_shot
from steps.shared import tensor_files
from steps.shared.flags import read_config, step_parser
from steps.shared.histories import check_numbers
from steps.shared.runs import Run, run_of, write_runs
from steps.shared.runtime import InputError, read_csv, run_step

MEASURES = ("average", "last", "forgetting")
Key = tuple[str, str, str, str, Any]  # table, split, row, metric, x
Arrays = dict[str, np.ndarray]


def main(argv: list[str] | None = None) -> None:
    """Write <dataset>_seed<seed>.csv: runs, the mean over the draws of random weights."""
    parser = step_parser(__doc__, "threads")
    parser.add_argument("--learn", type=Path, required=True, help="learn.safetensors of train")
    parser.add_argument("--test", type=Path, required=True, help="test.safetensors of train")
    parser.add_argument("--labels", type=Path, required=True, help="labels.safetensors of merge")
    parser.add_argument("--known", type=Path, required=True, help="labels.csv of merge")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Merge)
    if args.row not in config.protocols:
        raise InputError(f"--row {args.row}: merge.protocols has no such data set")
    from threadpoolctl import threadpool_limits

    found, test = embeddings.load_learn(args.learn), embeddings.load_test(args.test)
    arrays = read_labels(args.labels)
    values: dict[Key, list[float]] = defaultdict(list)
    with threadpool_limits(args.threads):
        for name, protocol in config.protocols[args.row].items():
            tasks = embeddings.tasks(arrays["order"], protocol)
            given = learner.problem(found, tasks, config, args.seed)
            images = Test(given, found, *test, tasks)
            own = labels_of(arrays, name, given)
            for table, row, metric, x, value in measure(given, images, own, args.row):
                values[table, name, row, metric, x].append(value)
    known = read_csv(args.known, "table", "split", "row", "metric", "x", "value")
    check_numbers(args.known, known, ("value",))
    for line in known:
        table = args.row if line["table"] == "main" else line["table"]
        key = (table, line["split"], line["row"], line["metric"], line["x"])
        values[key].append(float(line["value"]))
    runs = _runs(values, args.row)
    write_runs(args.out / f"{args.row}_seed{args.seed}.csv", runs, seed=args.seed)


def _runs(values: dict[Key, list[float]], dataset: str) -> Iterable[Run]:
    for (table, split, row, metric, x), own in values.items():
        if table in ("norms", "identities") and split != "b0":
            continue
        combine = max if metric.endswith("_error") else fmean
        run = run_of(table, split, metric, combine(own), x)
        yield run | {"dataset": dataset, "row": row}


def read_labels(path: Path) -> Arrays:
    """Read labels.safetensors."""
    return tensor_files.read(path, "labels as merge writes them", framework="numpy")


def labels_of(arrays: Arrays, protocol: str, given: learner.Problem) -> dict[str, list[Labelled]]:
    """Return the labels and weights of every task of a protocol, by row/draw."""
    ends = np.cumsum([len(task.x_ND) for task in given.tasks])[:-1]
    found = {}
    for key in arrays:
        name, _, kind = key.rpartition("/")
        if kind == "labels" and name.startswith(f"{protocol}/"):
            labels = np.split(arrays[key].astype(int), ends)
            weights = np.split(arrays[f"{name}/weights"], ends)
            found[name.removeprefix(f"{protocol}/")] = [
                Labelled(own, own, weight, np.empty(0), float("nan"))
                for own, weight in zip(labels, weights, strict=True)
            ]
    return found


class Test:
    """The test images of one protocol, in the order of its classes."""

    def __init__(
        self,
        given: learner.Problem,
        found: embeddings.Embeddings,
        x_ND: np.ndarray,
        labels_N: np.ndarray,
        tasks: list[np.ndarray],
    ) -> None:
        """Scale the features and take every cosine once."""
        order_C = np.concatenate(tasks)
        self.columns_N = np.argsort(order_C)[labels_N]
        ends = np.cumsum([len(classes) for classes in tasks])
        self.task_N = np.searchsorted(ends, self.columns_N, side="right")
        if missing := set(range(len(tasks))) - set(self.task_N.tolist()):
            raise InputError(f"task {min(missing) + 1}: none of its classes has a test image")
        self.x_ND = with_length(x_ND, given.config.feature_norm)
        self.cosine_NC = zero_shot(self.x_ND, found.text_CD[order_C].astype(np.float64))
        width = given.config.expansion
        random_DM = baselines.projection(self.x_ND.shape[1], width, given.seed)
        self.expanded_NM = baselines.expanded(self.x_ND, random_DM)
        self.scale, self.fusion = given.scale, given.config.fusion

    def right(self, row: str, w_DC: np.ndarray) -> np.ndarray:
        """Return whether each image gets its class, among those that `w_DC` has columns of."""
        x_ND = self.expanded_NM if row in learner.EXPANDED else self.x_ND
        scores_NC = x_ND @ w_DC
        if row not in learner.UNFUSED:
            cosine_NC = self.cosine_NC[:, : w_DC.shape[1]]
            scores_NC = fused(cosine_NC, scores_NC, self.scale, self.fusion)
        return scores_NC.argmax(1) == self.columns_N


def rows_of(
    given: learner.Problem, labels: dict[str, list[Labelled]]
) -> Iterator[tuple[str, Iterator[np.ndarray]]]:
    """Yield (row, its classifiers after every task), draw by draw; joint has N2L's draws."""
    yield "zero_shot", learner.zero_shot_classifiers(given)
    for key, found in labels.items():
        row = key.split("/")[0]
        if row == "acil":
            yield "sequential", learner.fine_tuned_classifiers(given, found)
        if row == "n2l":
            yield "joint", learner.joint_classifiers(given, found)
        yield row, learner.classifiers(given, learner.ROWS.get(row, learner.N2L), found)


def measure(
    given: learner.Problem, test: Test, labels: dict[str, list[Labelled]], dataset: str
) -> Iterable[tuple[str, str, str, Any, float]]:
    """Yield (table, row, metric, x, value) of every row of a protocol, draw by draw."""
    for row, classifiers in rows_of(given, labels):
        table, _, name = row.partition(":")
        right = [test.right("n2l" if name else row, w_DC) for w_DC in classifiers]
        found = measures.over_tasks(right, test.task_N)
        if table == "theta":
            yield "theta", "n2l", "last", name, found["last"]
        elif table == "intra" and name:
            for metric in MEASURES[:2]:
                yield "intra", name, metric, "", found[metric]
        else:
            for metric in MEASURES:
                yield dataset, row, metric, "", found[metric]
            for task, value in enumerate(found["curve"], 1):
                yield "over_tasks", row, "accuracy", task, value


if __name__ == "__main__":
    run_step(main)
