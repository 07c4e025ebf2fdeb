"""The learner's side of all rows: labels and weights for the images of every task of a class order.

With them and the images the classifiers are a closed form; `evaluate` computes and tests them. No
test image is seen here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steps.n2l import embeddings, learner, measures
from steps.n2l.config import Merge
from steps.n2l.labelling import Labelled
from steps.shared import tensor_files
from steps.shared.flags import read_config, step_parser
from steps.shared.runtime import InputError, run_step, write_csv

LABELS = ["table", "split", "row", "metric", "x", "draw", "value"]
Line = dict[str, Any]
Found = tuple[dict[str, list[Labelled]], list[Line]]  # labels of every task by row/draw, and lines


def main(argv: list[str] | None = None) -> None:
    """Write labels.safetensors, and labels.csv, what is known without test images."""
    parser = step_parser(__doc__, "threads")
    parser.add_argument("--learn", type=Path, required=True, help="learn.safetensors of train")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Merge)
    if args.row not in config.protocols:
        raise InputError(f"--row {args.row}: merge.protocols has no such data set")
    from threadpoolctl import threadpool_limits

    found = embeddings.load_learn(args.learn)
    order_C = embeddings.class_order(len(found.text_CD), args.seed)
    arrays: dict[str, np.ndarray] = {"order": order_C}
    lines: list[Line] = []
    with threadpool_limits(args.threads):
        for name, protocol in config.protocols[args.row].items():
            tasks = embeddings.tasks(order_C, protocol)
            given = learner.problem(found, tasks, config, args.seed)
            made = [main_rows, sweep, *([variants, identities] if name == "b0" else [])]
            for labels, own in (make(given) for make in made):
                for key, parts in labels.items():
                    arrays |= {f"{name}/{key}/{part}": a for part, a in packed(parts).items()}
                lines += [{"x": "", **line, "split": name} for line in own]
            if name == "b0":
                arrays |= for_figures(given)
    tensor_files.write(args.out / "labels.safetensors", arrays)
    write_csv(args.out / "labels.csv", LABELS, lines)


def packed(parts: list[Labelled]) -> dict[str, np.ndarray]:
    """Return the labels and weights of all tasks, one task after the other."""
    return {
        "labels": np.concatenate([part.labels_N for part in parts]).astype(np.int16),
        "weights": np.concatenate([part.weight_N for part in parts]),
    }


def main_rows(given: learner.Problem) -> Found:
    """Return the labels of the rows, and how right they are; the columns that they lead to."""
    found: dict[str, list[Labelled]] = {}
    lines: list[Line] = []
    true = [task.true_N for task in given.tasks]
    for name, row in learner.ROWS.items():
        for draw in range(given.config.draws if row.intra == "normal" else 1):
            labels = found[f"{name}/{draw}"] = learner.labelled(given, row, draw)
            if not row.given:
                before = measures.label_accuracy([part.before_N for part in labels], true)
                after = measures.label_accuracy([part.labels_N for part in labels], true)
                lines += [_line(name, "pseudo_before", before, draw)]
                lines += [_line(name, "pseudo_after", after, draw)]
            if name in ("acil", "inter", "n2l"):
                *_, last = learner.classifiers(given, row, labels)
                columns = [t.first + f.labels_N for t, f in zip(given.tasks, labels, strict=True)]
                for metric, value in measures.column_lengths(last, columns).items():
                    lines.append(_line(name, metric, value, draw) | {"table": "norms"})
    return found, lines


def sweep(given: learner.Problem) -> Found:
    """Return N2L's labels at every theta, and how right they are."""
    found: dict[str, list[Labelled]] = {}
    lines: list[Line] = []
    true = [task.true_N for task in given.tasks]
    for theta in given.config.thetas:
        labels = found[f"theta:{theta:g}/0"] = learner.labelled(given, learner.N2L, 0, theta)
        after = measures.label_accuracy([part.labels_N for part in labels], true)
        for metric, value in (("pseudo_after", after), ("kept", measures.kept_directions(labels))):
            lines.append(_line("n2l", metric, value, 0) | {"table": "theta", "x": f"{theta:g}"})
    return found, lines


def variants(given: learner.Problem) -> Found:
    """Return N2L's labels with every kind of weights within a class."""
    found = {}
    for variant in learner.VARIANTS:
        row = learner.N2L._replace(intra=variant)
        for draw in range(given.config.draws if variant in ("normal", "uniform") else 1):
            found[f"intra:{variant}/{draw}"] = learner.labelled(given, row, draw)
    return found, []


def identities(given: learner.Problem) -> Found:
    """Return how far N2L's recursion is from joint training, and its other forms from the first."""
    labels = learner.labelled(given, learner.N2L, 0)
    recursive = list(learner.classifiers(given, learner.N2L, labels))
    joint = learner.joint_classifiers(given, labels)
    error = _largest(recursive, joint)
    others = (learner.classifiers(given, learner.N2L, labels, form) for form in ("woodbury", "qr"))
    lines = [
        _line("n2l", "joint_error", error, 0),
        _line("n2l", "forms_error", max(_largest(other, recursive) for other in others), 0),
        _line("n2l", "kept", measures.kept_directions(labels), 0),
    ]
    return {}, [line | {"table": "identities"} for line in lines]


def for_figures(given: learner.Problem) -> dict[str, np.ndarray]:
    """Return N2L's labels before and after refinement and the singular values, task by task."""
    arrays = {}
    labels = learner.labelled(given, learner.N2L, 0)
    for task, (part, found) in enumerate(zip(given.tasks, labels, strict=True)):
        arrays |= {
            f"figure/true/{task}": part.first + part.true_N,
            f"figure/before/{task}": part.first + found.before_N,
            f"figure/after/{task}": part.first + found.labels_N,
            f"figure/singular/{task}": found.singular,
            f"figure/theta/{task}": np.array([found.theta]),
        }
    return arrays


def _largest(found: Iterator[np.ndarray] | list, expected: Iterator[np.ndarray] | list) -> float:
    return max(measures.largest_error(w, e) for w, e in zip(found, expected, strict=True))


def _line(row: str, metric: str, value: float, draw: int) -> Line:
    return {"table": "main", "row": row, "metric": metric, "draw": draw, "value": value}


if __name__ == "__main__":
    run_step(main)
