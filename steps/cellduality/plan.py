"""The files that the workflow declares and the steps make: no torch here."""

import json
from collections.abc import Callable, Mapping
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

    def seeds(self, row: str) -> list[int]:
        """Return the seeds of a row: the first of the paper's."""
        return self.block["seeds"][: self.train[row]["num_seeds"]]

    def rows(self, seed: int) -> list[str]:
        """Return the rows of a seed, in the order of training."""
        return [row for row in self.train if seed in self.seeds(row)]

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
        """Return what prepare leaves for a seed, the manifest first."""
        return [f"results/{{scale}}/cellduality/prepare/seed{{seed}}/{name}" for name in PREPARED]

    def trained(self, row: str) -> list[str]:
        """Return what training a row leaves for a seed, the history first."""
        folder = f"results/{{scale}}/cellduality/train/{row}/seed{{seed}}"
        names = trained_files(self.train[row]["stage"], lora=self.lora(row))
        return [f"{folder}/{name}" for name in ("history.csv", *names)]

    def merged(self, row: str) -> list[str]:
        """Return what merging leaves of a row: a whole model where training left an adapter."""
        folder = f"results/{{scale}}/cellduality/merge/{row}/seed{{seed}}"
        return [f"{folder}/{name}" for name in MODEL_FILES] if self.lora(row) else []

    def selection(self, seed: int) -> str:
        """Return what merging leaves for a seed: the model of every row."""
        return f"results/{{scale}}/cellduality/merge/seed{seed}/selection.json"

    def starts(self, seed: int) -> list[str]:
        """Return the row that each row of a seed starts from; the base model, from itself."""
        return [self.train[row]["start"] or row for row in self.rows(seed)]

    def train_config(self, seed: int) -> str:
        """Return the JSON of what the training job of a seed reads."""
        rows = {row: dict(self.train[row]) for row in self.rows(seed)}
        for own in rows.values():
            del own["num_seeds"]
        return json.dumps({"rows": rows})

    def target(self) -> str:
        """Return what the dual of a perturbation reconstructs."""
        return self.block["train"]["common"]["dual_target"]

    def of_seed(self, files: Callable[[str], list[str]], seed: int) -> list[str]:
        """Return the files that `files` gives for a row, of every row of a seed."""
        return [file.replace("{seed}", str(seed)) for row in self.rows(seed) for file in files(row)]

    def of_all(self, files: Callable[[int], list[str]]) -> list[str]:
        """Return the files that `files` gives for a seed, of every seed."""
        return [file for seed in self.block["seeds"] for file in files(seed)]

    def prepared_of(self, seed: int) -> list[str]:
        """Return what prepare leaves for one seed."""
        return [file.replace("{seed}", str(seed)) for file in self.prepared()]

    def histories(self) -> list[str]:
        """Return the histories of every seed and row."""
        return [
            self.trained(row)[0].replace("{seed}", str(seed))
            for seed in self.block["seeds"]
            for row in self.rows(seed)
        ]

    def runs(self, seed: int) -> list[str]:
        """Return what evaluating a seed leaves: runs for the tables, answers for the figures."""
        stem = f"results/{{scale}}/cellduality/evaluate/seeds/seed{seed}"
        return [f"{stem}.csv", f"{stem}_answers.json"]
