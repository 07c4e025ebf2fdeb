"""Tasks, and the files that the workflow declares and the steps make: no torch here.

A task makes tables. It is a name that modules are found by: <task>_train, <task>_evaluate and
<task>_figures, <task>_prepare for its data, and its models in <task>_config.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from steps.quest.toy_config import Toy, forms_of
from steps.shared.config import resolve
from steps.shared.text_config import corpus_files


class Task(NamedTuple):
    """What the workflow knows of a task."""

    data: str  # whose data, of `prepare`, it reads
    figures: list[str]
    maps: bool  # its evaluation leaves attention maps for the figures
    launched: bool  # it trains on the GPUs of the paper scale, a row in each job


TASKS = {
    "toy": Task("toy", ["toy_attention", "toy_logits", "toy_rates"], maps=True, launched=False),
    "images": Task(
        "images",
        ["images_robustness", "images_attention", "images_training"],
        maps=True,
        launched=True,
    ),
    "sweep": Task("images", ["sweep_stability"], maps=False, launched=False),
    "language": Task("language", ["language_training"], maps=False, launched=True),
}
CORPORA = ("language",)  # data sets of text
SPLITS = ("train", "validation", "test")


class Files:
    """The files of one configuration of the paper; paths keep the wildcards {scale} and {seed}."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Take the whole configuration."""
        self.scale: str = config["scale"]
        self.block: Mapping[str, Any] = config["papers"]["quest"]
        self.train = {row: resolve(config, "quest", "train", row) for row in self.block["rows"]}

    def tasks(self) -> list[str]:
        """Return the tasks that some row takes part in."""
        return [task for task in TASKS if self.rows(task)]

    def rows(self, task: str) -> list[str]:
        """Return the rows that take part in a task, in order."""
        return [row for row, train in self.train.items() if task in train["tasks"]]

    def seeds(self, task: str) -> list[int]:
        """Return the seeds of a task: the first of the paper's."""
        return self.block["seeds"][: self.block["train"]["common"]["num_seeds"][task]]

    def data(self) -> list[str]:
        """Return the names of the data sets that `prepare` makes."""
        return list(dict.fromkeys(TASKS[task].data for task in self.tasks()))

    def assets(self, data: str) -> list[str]:
        """Return the assets that a data set is made of."""
        source = self.block["prepare"][data]
        packaged = source.get("kind") == "asset" and data not in CORPORA
        return [source["name"]] if packaged else []

    def corpora(self, data: str) -> list[str]:
        """Return the corpora, made from assets, that a data set is made of."""
        return corpus_files(self.block["prepare"][data]) if data in CORPORA else []

    def prepared(self, data: str) -> list[str]:
        """Return what prepare leaves, a manifest first; images of the hub stay there."""
        endings = [".json"]
        if data in CORPORA:
            endings += ["_tokenizer.json", *(f"_{split}.npy" for split in SPLITS)]
        elif self.block["prepare"][data].get("kind") != "hub":
            endings += [".safetensors"]
        return [f"results/{{scale}}/quest/prepare/{data}{ending}" for ending in endings]

    def on_gpus(self, task: str) -> bool:
        """Say whether a task trains on the GPUs of the paper scale."""
        return TASKS[task].launched and self.scale == "paper"

    def threads(self, task: str) -> int:
        """Return the threads of training and evaluating: on GPUs, all but one decode images."""
        return 16 if self.on_gpus(task) else 1

    def jobs(self, task: str) -> dict[str, list[str]]:
        """Return the rows of every training job of a seed, by the job's name.

        One job for all rows, because a start costs as much as a row; on GPUs one for each.
        """
        rows = self.rows(task)
        if self.on_gpus(task):
            return {f"{task}_{row}": [row] for row in rows}
        return {task: rows}

    def models(self, task: str) -> list[str]:
        """Return the trained models of a seed, of all rows."""
        return [file for file in self.trained(task) if file.endswith(".safetensors")]

    def trained(self, task: str, rows: list[str] | None = None) -> list[str]:
        """Return what training some rows (default: all) leaves for a seed."""
        folder = f"results/{{scale}}/quest/train/{task}"
        return [
            f"{folder}/{row}/seed{{seed}}/{name}"
            for row in rows or self.rows(task)
            for name in ["history.csv", *self._model_names(task, row)]
        ]

    def _model_names(self, task: str, row: str) -> list[str]:
        if task == "toy":
            forms = forms_of(Toy.model_validate(self.train[row]["toy"]), row)
            return [f"{form}.safetensors" for form in forms]
        return ["model.safetensors"]

    def histories(self, task: str) -> list[str]:
        """Return the histories of a seed, of all rows."""
        files = self.trained(task)
        return [file for file in files if file.endswith("history.csv")]

    def selection(self, task: str) -> list[str]:
        """Return what merging a seed leaves."""
        return [f"results/{{scale}}/quest/merge/{task}/seed{{seed}}/selection.json"]

    def runs(self, task: str) -> list[str]:
        """Return what evaluating a seed leaves for the tables."""
        return [f"results/{{scale}}/quest/evaluate/seeds/{task}_seed{{seed}}.csv"]

    def maps(self, task: str) -> list[str]:
        """Return what evaluating a seed leaves for the figures, if anything."""
        stem = f"results/{{scale}}/quest/evaluate/seeds/{task}_seed{{seed}}"
        return [f"{stem}_maps.csv"] if TASKS[task].maps else []

    def figures(self) -> list[str]:
        """Return the names of all figures."""
        return [name for task in self.tasks() for name in TASKS[task].figures]

    def of_all(self, files: Callable[[str], list[str]]) -> list[str]:
        """Return the files that `files` gives for a task, of every task and seed."""
        return [
            file.format(scale="{scale}", seed=seed)
            for task in self.tasks()
            for seed in self.seeds(task)
            for file in files(task)
        ]
