"""Measure the classifiers of one data set and seed on its test images."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from steps.n2l import baselines, embeddings, measures
from steps.n2l.config import Merge
from steps.n2l.labelling import with_length
from steps.n2l.learner import EXPANDED, UNFUSED
from steps.n2l.refine import fused, zero_shot
from steps.shared.config import read_config, step_parser
from steps.shared.runtime import InputError, read_csv, run_step, write_csv

RUN = ["table", "dataset", "split", "row", "metric", "seed", "x", "value"]
MEASURES = ("average", "last", "forgetting")
Key = tuple[str, str, str, str, Any]  # table, split, row, metric, x
Classifiers = dict[str, np.ndarray]


def main(argv: list[str] | None = None) -> None:
    """Write <dataset>_seed<seed>.csv: runs, the mean over the draws of random weights."""
    parser = step_parser(__doc__)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--learn", type=Path, required=True, help="learn.safetensors of train")
    parser.add_argument("--test", type=Path, required=True, help="test.safetensors of train")
    parser.add_argument("--classifiers", type=Path, required=True, help="of merge")
    parser.add_argument("--labels", type=Path, required=True, help="labels.csv of merge")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    config = read_config(args, Merge)
    from threadpoolctl import threadpool_limits

    found = embeddings.load_learn(args.learn)
    x_ND, labels_N = embeddings.load_test(args.test)
    classifiers = read_classifiers(args.classifiers)
    values: dict[Key, list[float]] = defaultdict(list)
    with threadpool_limits(args.threads):
        for name, protocol in config.protocols[args.dataset].items():
            tasks = embeddings.tasks(classifiers["order"], protocol)
            test = Test(found, x_ND, labels_N, tasks, config, args.seed)
            own = {
                key.removeprefix(f"{name}/"): w
                for key, w in classifiers.items()
                if key.startswith(f"{name}/")
            }
            for table, row, metric, x, value in measure(test, own, args.dataset):
                values[table, name, row, metric, x].append(value)
    for line in read_csv(args.labels):
        table = args.dataset if line["table"] == "main" else line["table"]
        key = (table, line["split"], line["row"], line["metric"], line["x"])
        values[key].append(float(line["value"]))
    write_csv(args.out / f"{args.dataset}_seed{args.seed}.csv", RUN, _runs(values, args))


def _runs(values: dict[Key, list[float]], args: Any) -> Iterable[dict[str, Any]]:
    for (table, split, row, metric, x), own in values.items():
        if table in ("norms", "identities") and split != "b0":
            continue
        combine = max if metric.endswith("_error") else fmean
        names = {"table": table, "dataset": args.dataset, "split": split, "row": row}
        yield names | {"metric": metric, "seed": args.seed, "x": x, "value": combine(own)}


def read_classifiers(path: Path) -> Classifiers:
    """Read classifiers.safetensors."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not classifiers as merge writes them ({error})") from None


class Test:
    """The test images of one protocol, in the order of its classes."""

    def __init__(
        self,
        found: embeddings.Embeddings,
        x_ND: np.ndarray,
        labels_N: np.ndarray,
        tasks: list[np.ndarray],
        config: Merge,
        seed: int,
    ) -> None:
        """Scale the features and take every cosine once."""
        order_C = np.concatenate(tasks)
        places = np.argsort(order_C)
        self.columns_N = places[labels_N]
        ends = np.cumsum([len(classes) for classes in tasks])
        self.task_N = np.searchsorted(ends, self.columns_N, side="right")
        self.x_ND = with_length(x_ND, config.feature_norm)
        self.cosine_NC = zero_shot(self.x_ND, found.text_CD[order_C].astype(np.float64))
        random_DM = baselines.projection(self.x_ND.shape[1], config.expansion, seed)
        self.expanded_NM = baselines.expanded(self.x_ND, random_DM)
        self.scale, self.fusion = found.scale, config.fusion

    def right(self, row: str, w_DC: np.ndarray) -> np.ndarray:
        """Return whether each image gets its class, among those that `w_DC` has columns of."""
        x_ND = self.expanded_NM if row in EXPANDED else self.x_ND
        scores_NC = x_ND @ w_DC.astype(np.float64)
        if row not in UNFUSED:
            cosine_NC = self.cosine_NC[:, : w_DC.shape[1]]
            scores_NC = fused(cosine_NC, scores_NC, self.scale, self.fusion)
        return scores_NC.argmax(1) == self.columns_N


def measure(
    test: Test, classifiers: Classifiers, dataset: str
) -> Iterable[tuple[str, str, str, Any, float]]:
    """Yield (table, row, metric, x, value) of every classifier of a protocol, draw by draw."""
    runs: dict[tuple[str, str], dict[int, np.ndarray]] = defaultdict(dict)
    for key, w_DC in classifiers.items():
        row, *rest = key.split("/")
        table, _, name = row.partition(":")
        if name:  # of the sweep and of the variants there is only the last classifier
            last = 100 * float(test.right("n2l", w_DC).mean())
            yield (
                (table, "n2l", "last", name, last)
                if table == "theta"
                else (table, name, "last", "", last)
            )
        elif row != "figure":
            draw, task = rest
            runs[row, draw][int(task)] = w_DC
    for (row, _), own in runs.items():
        right = [test.right(row, own[task]) for task in range(len(own))]
        found = measures.over_tasks(right, test.task_N)
        for metric in MEASURES:
            yield dataset, row, metric, "", found[metric]
        for task, value in enumerate(found["curve"], 1):
            yield "over_tasks", row, "accuracy", task, value


if __name__ == "__main__":
    run_step(main)
