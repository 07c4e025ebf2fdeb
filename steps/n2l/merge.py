"""The continual learner: all rows over the tasks of one data set and class order. Sees no test
image.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steps.n2l import embeddings, learner, measures
from steps.n2l.config import Merge
from steps.n2l.labelling import Labelled
from steps.shared.atomic import atomic_path
from steps.shared.config import read_config, step_parser
from steps.shared.runtime import InputError, run_step, write_csv

LABELS = ["table", "split", "row", "metric", "x", "draw", "value"]
Line = dict[str, Any]
Found = tuple[dict[str, np.ndarray], list[Line]]  # arrays of a protocol by name, and lines


def main(argv: list[str] | None = None) -> None:
    """Write classifiers.safetensors and labels.csv, what is known without test images."""
    parser = step_parser(__doc__)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--learn", type=Path, required=True, help="learn.safetensors of train")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    config = read_config(args, Merge)
    if args.dataset not in config.protocols:
        raise InputError(f"--dataset {args.dataset}: merge.protocols has no such data set")
    from threadpoolctl import threadpool_limits

    found = embeddings.load_learn(args.learn)
    order_C = embeddings.class_order(len(found.text_CD), args.seed)
    arrays: dict[str, np.ndarray] = {"order": order_C}
    lines: list[Line] = []
    with threadpool_limits(args.threads):
        for name, protocol in config.protocols[args.dataset].items():
            tasks = embeddings.tasks(order_C, protocol)
            given = learner.problem(found, tasks, config, args.seed)
            made = [main_rows, sweep, *([variants, figure_data] if name == "b0" else [])]
            for more, own in (make(given) for make in made):
                arrays |= {f"{name}/{key}": value for key, value in more.items()}
                lines += [{"x": "", **line, "split": name} for line in own]
    save(args.out / "classifiers.safetensors", arrays)
    write_csv(args.out / "labels.csv", LABELS, lines)


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write classifiers in float32, labels as they are."""
    from safetensors.numpy import save_file

    small = {
        key: np.ascontiguousarray(a, dtype=np.float32 if a.dtype == np.float64 else a.dtype)
        for key, a in arrays.items()
    }
    with atomic_path(path) as temporary:
        save_file(small, temporary)


def main_rows(given: learner.Problem) -> Found:
    """Return the classifiers of all rows, and how right their labels are."""
    arrays: dict[str, np.ndarray] = {}
    lines: list[Line] = []

    def keep(row: str, draw: int, classifiers: Iterator[np.ndarray]) -> list[np.ndarray]:
        found = list(classifiers)
        arrays.update({f"{row}/{draw}/{task}": w for task, w in enumerate(found)})
        return found

    true = [task.true_N for task in given.tasks]
    for name, row in learner.ROWS.items():
        for draw in range(given.config.draws if row.intra == "normal" else 1):
            labels = learner.labelled(given, row, draw)
            recursive = keep(name, draw, learner.classifiers(given, row, labels))
            if not row.given:
                before = measures.label_accuracy([part.before_N for part in labels], true)
                after = measures.label_accuracy([part.labels_N for part in labels], true)
                lines += [_line(name, "pseudo_before", before, draw)]
                lines += [_line(name, "pseudo_after", after, draw)]
            if name == "acil":
                keep("zero_shot", 0, learner.zero_shot_classifiers(given))
                keep("sequential", 0, learner.fine_tuned_classifiers(given, labels))
            if name in ("acil", "inter", "n2l"):
                columns = [t.first + f.labels_N for t, f in zip(given.tasks, labels, strict=True)]
                for metric, value in measures.column_lengths(recursive[-1], columns).items():
                    lines.append(_line(name, metric, value, draw) | {"table": "norms"})
            if name == "n2l":
                joint = list(learner.joint_classifiers(given, labels))
                if draw == 0:
                    keep("joint", 0, iter(joint))
                pairs = zip(recursive, joint, strict=True)
                error = max(measures.largest_error(one, two) for one, two in pairs)
                lines.append(_line("n2l", "joint_error", error, draw) | {"table": "identities"})
    return arrays, lines


def sweep(given: learner.Problem) -> Found:
    """Return the last classifiers of N2L at every theta, and how right its labels are."""
    arrays: dict[str, np.ndarray] = {}
    lines: list[Line] = []
    row = learner.ROWS["n2l"]
    true = [task.true_N for task in given.tasks]
    for theta in given.config.thetas:
        labels = learner.labelled(given, row, 0, theta)
        arrays[f"theta:{theta:g}/0"] = list(learner.classifiers(given, row, labels))[-1]
        after = measures.label_accuracy([part.labels_N for part in labels], true)
        for metric, value in (("pseudo_after", after), ("kept", measures.kept_directions(labels))):
            lines.append(_line("n2l", metric, value, 0) | {"table": "theta", "x": f"{theta:g}"})
    return arrays, lines


def variants(given: learner.Problem) -> Found:
    """Return the last classifiers of N2L with every kind of weights within a class."""
    arrays: dict[str, np.ndarray] = {}
    for variant in learner.VARIANTS:
        row = learner.ROWS["n2l"]._replace(intra=variant)
        for draw in range(given.config.draws if variant in ("normal", "uniform") else 1):
            found = learner.classifiers(given, row, learner.labelled(given, row, draw))
            arrays[f"intra:{variant}/{draw}"] = list(found)[-1]
    return arrays, []


def figure_data(given: learner.Problem) -> Found:
    """Return labels and singular values of N2L's tasks, and how far the three forms differ."""
    arrays: dict[str, np.ndarray] = {}
    row = learner.ROWS["n2l"]
    labels = learner.labelled(given, row, 0)
    for task, (part, found) in enumerate(zip(given.tasks, labels, strict=True)):
        arrays |= {
            **{f"figure/true/{task}": part.first + part.true_N},
            **{f"figure/before/{task}": part.first + found.before_N},
            **{f"figure/after/{task}": part.first + found.labels_N},
            **{f"figure/singular/{task}": found.singular},
            **{f"figure/theta/{task}": np.array([found.theta])},
        }
    kept = _line("n2l", "kept", measures.kept_directions(labels), 0) | {"table": "identities"}
    return arrays, [kept, _forms(given, row, labels)]


def _forms(given: learner.Problem, row: learner.Row, labels: list[Labelled]) -> Line:
    final = {f: list(learner.classifiers(given, row, labels, f))[-1] for f in ("woodbury", "qr")}
    gram = list(learner.classifiers(given, row, labels))[-1]
    error = max(measures.largest_error(w, gram) for w in final.values())
    return _line("n2l", "forms_error", error, 0) | {"table": "identities"}


def _line(row: str, metric: str, value: float, draw: int) -> Line:
    return {"table": "main", "row": row, "metric": metric, "draw": draw, "value": value}


if __name__ == "__main__":
    run_step(main)
