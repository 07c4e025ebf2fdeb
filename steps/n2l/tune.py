"""Measure sizes of a CLIP and of the random expansion on validation images of tuning seeds.

    python -m steps.n2l.tune --row digits --data results/mini/n2l/prepare/digits.json \
        --dims 32 64 128 256 --expansions 512 1024 2048 --out digits.csv

Run by hand, to see what the sizes of params.yaml mean: by length of the embeddings the zero-shot
accuracy over all classes, in which no learner has a part, and with the expansion RAIL's accuracy
after the last task. Tuning seeds are never reported, and their own test images are left out.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from torch import Tensor

from steps.n2l import clip_training, embeddings, learner, measures
from steps.n2l.config import Merge, Train
from steps.n2l.evaluate import Test
from steps.shared.config import resolve
from steps.shared.config_files import load
from steps.shared.runtime import deterministic, run_step, write_csv

SEEDS = (100, 101, 102)
HELD_OUT = 5  # one image of so many
Sizes = tuple[int, int | str]  # embed_dim and expansion, which zero-shot has none of


def main(argv: list[str] | None = None) -> None:
    """Write a line for each size: accuracy on validation images (%), the mean over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--row", required=True, help="data set whose CLIP is trained")
    parser.add_argument("--data", type=Path, required=True, help="manifest of the data set")
    parser.add_argument("--dims", type=int, nargs="+", required=True, help="embed_dim to try")
    parser.add_argument("--expansions", type=int, nargs="+", required=True)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--out", type=Path, required=True, help="CSV")
    args = parser.parse_args(argv)
    config = load(args.scale)
    deterministic(1)
    note, data = clip_training.read_data(args.data)
    merge = Merge(**resolve(config, "n2l", "merge"))
    found: dict[Sizes, list[float]] = {}
    for dim in args.dims:
        given = resolve(config, "n2l", "train", row=args.row) | {"embed_dim": dim}
        for seed in SEEDS:
            own = embedded(note, data, Train(**given), args.row, seed)
            for expansion, value in accuracies(*own, merge, args.row, seed, args.expansions):
                found.setdefault((dim, expansion), []).append(value)
    lines = [
        {"embed_dim": dim, "expansion": expansion, "accuracy": fmean(values)}
        for (dim, expansion), values in found.items()
    ]
    write_csv(args.out, list(lines[0]), lines)


def embedded(
    note: dict[str, Any], data: dict[str, Tensor], config: Train, row: str, seed: int
) -> tuple[embeddings.Embeddings, np.ndarray, np.ndarray]:
    """Train a CLIP; return what it makes of the images to learn from, and validation images."""
    args = argparse.Namespace(seed=seed, row=row, device="cpu")
    with TemporaryDirectory() as state:
        model = clip_training.train(note, data, config, args, Path(state)).bare_model
    images, text = (part.numpy() for part in clip_training.embedded(model, note, data))
    labels = data["labels"].numpy()
    kept, held = validation(len(labels), note["num_test"], seed)
    scale = float(model.scale.detach())
    return (
        embeddings.Embeddings(images[kept], labels[kept], text, scale),
        images[held],
        labels[held],
    )


def validation(count: int, num_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of images to learn from and to validate on; test images are in neither."""
    learn, _ = embeddings.split(count, num_test, seed)
    return tuple(learn[own] for own in embeddings.split(len(learn), len(learn) // HELD_OUT, seed))


def accuracies(
    found: embeddings.Embeddings,
    x_ND: np.ndarray,
    labels_N: np.ndarray,
    merge: Merge,
    row: str,
    seed: int,
    expansions: Sequence[int],
) -> Iterator[tuple[int | str, float]]:
    """Yield ("", zero-shot accuracy over all classes) and (expansion, RAIL's last), B0."""
    order_C = embeddings.class_order(len(found.text_CD), seed)
    tasks = embeddings.tasks(order_C, merge.protocols[row]["b0"])
    for place, expansion in enumerate(expansions):
        config = merge.model_copy(update={"expansion": expansion})
        given = learner.problem(found, tasks, config, seed)
        test = Test(given, found, x_ND, labels_N, tasks)
        rail = learner.ROWS["rail"]
        rows = {"rail": learner.classifiers(given, rail, learner.labelled(given, rail, 0))}
        if place == 0:
            rows = {"zero_shot": learner.zero_shot_classifiers(given)} | rows
        for name, classifiers in rows.items():
            right = [test.right(name, w_DC) for w_DC in classifiers]
            value = measures.over_tasks(right, test.task_N)["last"]
            yield ("" if name == "zero_shot" else expansion), value


if __name__ == "__main__":
    run_step(main)
