"""The files that the workflow declares and the steps make: no torch here."""

import json
from collections.abc import Mapping
from typing import Any

from steps.shared.config import resolve

DATA_ASSETS = ("gdsc_v17",)
MODEL_FILES = (
    *("config.json", "generation_config.json", "model.safetensors"),
    *("tokenizer.json", "tokenizer_config.json"),
)
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
PREPARED = ("manifest.json", "vocabulary.json", "questions.json", "arrays.safetensors")
SPECIALISTS = ("logistic", "knn", "mean_shift")


def trained_files(stage: str, *, lora: bool) -> tuple[str, ...]:
    """Return the names of the files of a trained model, or of its adapter."""
    return ADAPTER_FILES if lora and stage != "base" else MODEL_FILES


class Files:
    """The files of one configuration of the paper; paths keep the wildcards {scale} and {seed}."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Take the whole configuration."""
        self.block: Mapping[str, Any] = config["papers"]["cellduality"]
        self.train = {
            row: resolve(config, "cellduality", "train", row) for row in self.block["rows"]
        }

    def lora(self, row: str) -> bool:
        """Say whether training a row leaves an adapter."""
        own = self.train[row]
        return own["stage"] != "base" and own[f"{own['stage']}_lora"] is not None

    def assets(self) -> list[str]:
        """Return the assets that the data are made of."""
        return [] if self.block["prepare"]["hub"] else list(DATA_ASSETS)

    def figures(self) -> list[str]:
        """Return the names of the figures; the quality of cells is known of packaged ones."""
        names = ["training", "rows", "confusion", "generated", "embedding"]
        return names if self.block["prepare"]["hub"] else [*names, "quality"]

    def model_assets(self) -> list[str]:
        """Return the assets that the base model is made of."""
        given = self.block["train"]["common"]["pretrained"]
        packaged = given and given["name"].startswith("assets/")
        return [given["name"].removeprefix("assets/")] if packaged else []

    def prepared(self) -> list[str]:
        """Return what prepare leaves, the manifest first."""
        return [f"results/{{scale}}/cellduality/prepare/seed{{seed}}/{name}" for name in PREPARED]

    def trained(self) -> list[str]:
        """Return what training leaves: every row's history, and its model or adapter."""
        return [
            f"results/{{scale}}/cellduality/train/{row}/seed{{seed}}/{name}"
            for row, own in self.train.items()
            for name in ("history.csv", *trained_files(own["stage"], lora=self.lora(row)))
        ]

    def merged(self) -> list[str]:
        """Return the whole models that merging leaves, of the rows that left an adapter."""
        return [
            f"results/{{scale}}/cellduality/merge/{row}/seed{{seed}}/{name}"
            for row in self.adapters()
            for name in MODEL_FILES
        ]

    def adapters(self) -> list[str]:
        """Return the rows whose training leaves an adapter."""
        return [row for row in self.train if self.lora(row)]

    def starts(self) -> list[str]:
        """Return the row that each row starts from; the base model, from itself."""
        return [own["start"] or row for row, own in self.train.items()]

    def train_config(self, wildcards: Any) -> str:
        """Return the JSON of what a training job reads: the configuration of every row."""
        return json.dumps({"rows": self.train}, sort_keys=True)

    def target(self) -> str:
        """Return what the dual of a perturbation reconstructs."""
        return self.block["train"]["common"]["dual_target"]
