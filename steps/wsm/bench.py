"""Everything measured of one model: the corpora, the two tasks, and the continuation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from steps.shared.loss import bits_per_byte
from steps.shared.runs import Run, run_of
from steps.shared.runtime import read_json, reading
from steps.shared.token_files import open_tokens, sequential_batches
from steps.wsm.config import Evaluate
from steps.wsm.continuation import continue_training
from steps.wsm.measure import answer_batches, choose
from steps.wsm.model import load, token_statistics
from steps.wsm.plan import SWEEPS

Measured = tuple[Run, list[int]]


class Bench:
    """The test data of one configuration, loaded once, and what is measured on it."""

    def __init__(self, config: Evaluate, manifest: Path, context: int, device: str) -> None:
        """Read what prepare left, beside its manifest; sequences are cut at `context` tokens."""
        self.config, self.context, self.device = config, context, device
        self.bytes, self.corpora = {}, {}
        note, prepared = read_json(manifest, "vocabulary", "anneal", "general"), manifest.parent
        for name in ("anneal", "general"):
            tokens = open_tokens(prepared / f"{name}_test.npy", context, note["vocabulary"])
            self.corpora[name] = sequential_batches(
                tokens, batch=config.batch_size, context=context
            )
            with reading(manifest, "prepare's manifest"):
                facts = note[name]["test"]
                self.bytes[name] = facts["bytes"] / facts["tokens"]
        self.choices = read_items(prepared / "choices.json")
        self.questions = {
            split: read_items(prepared / f"questions_{split}.json") for split in ("train", "test")
        }

    def measure(self, row: str, folder: Path, seed: int) -> Iterator[Measured]:
        """Yield (run, outcome per test item or none) of the model in `folder`."""
        model = load(folder).to(self.device)
        for table in SWEEPS:
            if row.startswith(table):
                place = {"table": table, "row": "wsm_mean", "x": int(row.removeprefix(table))}
                yield self._bits(model, "anneal") | place | {"seed": seed}, []
                choice, _ = self._choice(model, "choices", self.choices)
                yield choice | place | {"seed": seed}, []
                return
        for run, outcomes in self._main(model):
            yield run | {"row": row, "seed": seed}, outcomes
        if row in self.config.continuation.rows:
            continue_training(
                model,
                self.questions["train"],
                self.config.continuation,
                seed,
                label=f"wsm evaluate {row} seed {seed}, continuation",
                cpu=self.device == "cpu",
            )
            place = {"table": "continuation", "row": row, "seed": seed}
            for run, outcomes in self._after(model):
                yield run | place, outcomes

    def _main(self, model: nn.Module) -> Iterator[Measured]:
        found = token_statistics(model, self.corpora["anneal"])
        bits = bits_per_byte(found["nats"], bytes_per_token=self.bytes["anneal"])
        yield _run("anneal", "bits_per_byte", bits), []
        yield _run("anneal", "next_token_accuracy", 100 * found["accuracy"]), []
        yield self._bits(model, "general"), []
        yield self._choice(model, "choices", self.choices)

    def _after(self, model: nn.Module) -> Iterator[Measured]:
        batches = answer_batches(
            self.questions["test"], batch=self.config.batch_size, context=self.context
        )
        found = token_statistics(model, batches)
        size = sum(item["answer_bytes"] for item in self.questions["test"])
        bits = bits_per_byte(found["nats"], bytes_per_token=size / found["tokens"])
        yield _run("questions", "bits_per_byte", bits), []
        yield self._choice(model, "questions", self.questions["test"])
        yield self._bits(model, "anneal"), []

    def _bits(self, model: nn.Module, dataset: str) -> Run:
        nats = token_statistics(model, self.corpora[dataset])["nats"]
        bits = bits_per_byte(nats, bytes_per_token=self.bytes[dataset])
        return _run(dataset, "bits_per_byte", bits)

    def _choice(self, model: nn.Module, dataset: str, items: list[dict]) -> Measured:
        hits = choose(model, items, batch=self.config.batch_size, context=self.context)
        percent = 100 * sum(hits) / len(hits)
        return _run(dataset, "choice_accuracy", percent), [100 * hit for hit in hits]


def read_items(path: Path) -> list[dict[str, Any]]:
    """Read the items of a task: prompts and options as tokens, and which option is right."""
    items = read_json(path)
    with reading(path, "items of a task as prepare writes them"):
        if not items or not all({"prompt", "options", "answer"} <= item.keys() for item in items):
            raise ValueError("needs items of prompt, options and answer")
    return items


def _run(dataset: str, metric: str, value: float) -> Run:
    return run_of("main", "test", metric, value) | {"dataset": dataset}
