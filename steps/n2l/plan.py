"""The files that the workflow declares and the steps make: no torch here. A row is a data set."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from steps.n2l.data_config import MODULES
from steps.shared.config import resolve

ASSETS = {
    "glyphs": ["mnist_5k"],
    "emoji": ["emoji_sheets", "noto_emoji", "efficientnet_lite0", "minilm_l6"],
    "hub": [],
}
FIGURES = ("over_tasks", "rows", "confusion", "singular", "theta")


class Files:
    """The files of one configuration of the paper; paths keep the wildcards {scale} and {seed}."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Take the whole configuration."""
        self.config = config
        self.block: Mapping[str, Any] = config["papers"]["n2l"]
        self.rows: list[str] = self.block["rows"]

    def kind(self, row: str) -> str:
        """Return the kind of a data set."""
        return self.block["prepare"][row]["kind"]

    def assets(self, row: str) -> list[str]:
        """Return the assets that a data set is made of."""
        return ASSETS[self.kind(row)]

    def module(self, row: str) -> str:
        """Return the module that prepares a data set."""
        return f"steps.n2l.{MODULES[self.kind(row)]}"

    def merge_config(self, row: str) -> Callable[[Any], str]:
        """Return a params function: the JSON of merge's parameters, with this data set's protocols.

        So a change of one data set's protocols does not rerun another.
        """

        def resolved(wildcards: Any) -> str:
            value = resolve(self.config, "n2l", "merge")
            value["protocols"] = {row: value["protocols"][row]}
            return json.dumps(value, sort_keys=True)

        return resolved

    def prepared(self, row: str) -> list[str]:
        """Return what prepare leaves, the manifest first."""
        stem = f"results/{{scale}}/n2l/prepare/{row}"
        return [f"{stem}.json", f"{stem}.safetensors"]

    def trained(self, row: str) -> dict[str, str]:
        """Return what training a seed leaves."""
        folder = f"results/{{scale}}/n2l/train/{row}/seed{{seed}}"
        names = {"learn": "learn.safetensors", "test": "test.safetensors", "history": "history.csv"}
        return {key: f"{folder}/{name}" for key, name in names.items()}

    def merged(self, row: str) -> dict[str, str]:
        """Return what the learner leaves for a seed: its labels, and what is known of them."""
        folder = f"results/{{scale}}/n2l/merge/{row}/seed{{seed}}"
        return {
            "labels": f"{folder}/labels.safetensors",
            "known": f"{folder}/labels.csv",
        }

    def runs(self, row: str) -> str:
        """Return what evaluating a seed leaves."""
        return f"results/{{scale}}/n2l/evaluate/seeds/{row}_seed{{seed}}.csv"

    def tables(self) -> str:
        """Return the tables' declaration: that of the data made here, or of the paper's."""
        paper = all(self.kind(row) == "hub" for row in self.rows)
        return f"steps/n2l/tables{'_paper' if paper else ''}.yaml"

    def shown(self) -> list[str]:
        """Return what figures of one class order show of every data set: that of the first seed."""
        seed = self.block["seeds"][0]
        return [self.merged(row)["labels"].format(scale="{scale}", seed=seed) for row in self.rows]

    def of_all(self, files: Callable[[str], Any]) -> list[str]:
        """Return the files that `files` gives for a row, of every row and seed."""
        return [
            file.format(scale="{scale}", seed=seed)
            for row in self.rows
            for seed in self.block["seeds"]
            for file in _listed(files(row))
        ]


def _listed(files: Any) -> list[str]:
    if isinstance(files, str):
        return [files]
    return list(files.values()) if isinstance(files, dict) else list(files)
