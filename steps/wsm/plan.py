"""Which checkpoints a branch keeps, and which of them every merged model averages.

Shared by the workflow, which declares the files, and by the steps, which make them: no torch here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from steps.shared.config import resolve
from steps.shared.text_config import corpus_files

CHECKPOINT = ["config.json", "model.safetensors"]
TOKENS = [f"{c}_{s}" for c in ("general", "anneal") for s in ("train", "validation", "test")]
TASKS = ["choices", "questions_train", "questions_test"]
FIGURES = ["training", "rows", "sweeps"]


SWEEPS = ("duration", "count")  # tables whose merged models are named after them


class Merged(NamedTuple):
    """One merged model: the checkpoints of `source` at `updates`, averaged along `curve`."""

    name: str
    source: str
    curve: str
    control: str
    updates: tuple[int, ...]


def checkpoint_name(update: int) -> str:
    """Return the folder name of the checkpoint after `update`."""
    return f"step{update:07d}"


def saved_updates(train: Mapping[str, Any]) -> list[int]:
    """Return the updates whose checkpoints a branch keeps (its resolved train configuration)."""
    end = train["stable_steps"] + train["anneal_steps"]
    if train["keep"] == "last":
        return [end]
    return list(range(train["stable_steps"] + train["save_every"], end + 1, train["save_every"]))


def merged_models(merge: Mapping[str, Any], end: int) -> list[Merged]:
    """Return every merged model of a seed: the rows of the main table, then the two sweeps.

    A window of `d` updates holding n checkpoints has them every d / n updates, the last at `end`
    (the paper's interval x count); one checkpoint is the constant-rate run itself.
    """
    window, count, curve = merge["window"], merge["count"], merge["sweep_curve"]
    models = [
        Merged(name, row["source"], row["curve"], row["control"], _updates(end, window, count))
        for name, row in merge["rows"].items()
    ]
    for duration in merge["durations"]:
        updates = _updates(end, duration, merge["duration_count"])
        models.append(Merged(f"duration{duration}", "constant", curve, "none", updates))
    for number in merge["counts"]:
        updates = _updates(end, window, number)
        models.append(Merged(f"count{number}", "constant", curve, "none", updates))
    return models


def _updates(end: int, duration: int, count: int) -> tuple[int, ...]:
    interval = duration // count
    return tuple(end - interval * (count - 1 - index) for index in range(count))


class Files:
    """The files that the workflow declares for one configuration of the paper.

    Paths keep the wildcards {scale} and {seed}.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Take the whole configuration."""
        self.rows: list[str] = config["papers"]["wsm"]["rows"]
        self.train = {row: resolve(config, "wsm", "train", row) for row in self.rows}
        self.merge = resolve(config, "wsm", "merge")
        self.prepare = resolve(config, "wsm", "prepare")

    def corpora(self, name: str) -> list[str]:
        """Return the corpus, made from assets, that `general` or `anneal` is."""
        return corpus_files(self.prepare[name])

    def checkpoints(self, row: str) -> list[str]:
        """Return the checkpoint files that training `row` leaves."""
        folder = f"results/{{scale}}/wsm/train/{row}/seed{{seed}}"
        names = [checkpoint_name(update) for update in saved_updates(self.train[row])]
        return [f"{folder}/{name}/{file}" for name in names for file in CHECKPOINT]

    def sources(self) -> list[str]:
        """Return the checkpoint files of all rows."""
        return [file for row in self.rows for file in self.checkpoints(row)]

    def merged(self) -> list[str]:
        """Return the files of all merged models of a seed."""
        end = saved_updates(self.train["constant"])[-1]
        folder = "results/{scale}/wsm/merge/seed{seed}"
        names = [model.name for model in merged_models(self.merge, end)]
        return [f"{folder}/{name}/{file}" for name in names for file in CHECKPOINT]
