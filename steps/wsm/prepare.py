"""Prepare WSM's data: token files of both corpora by split, and the two tasks made from WordNet."""

from pathlib import Path
from typing import Any

import numpy as np

from steps.shared.config import read_config, step_parser
from steps.shared.corpora import read_corpus, split_of
from steps.shared.runtime import (
    InputError,
    atomic_path,
    run_step,
    sha256_file,
    stream,
    write_json,
)
from steps.wsm.config import Prepare, Source
from steps.wsm.texts import FRACTIONS, Item, documents, gloss_items, question_items
from steps.wsm.tokenizer import Tokenizer, load_tokenizer


def main(argv: list[str] | None = None) -> None:
    """Write {general,anneal}_{train,validation,test}.npy, choices, questions and a manifest."""
    parser = step_parser(__doc__)
    parser.add_argument("--general", type=Path, help="general corpus (asset sources only)")
    parser.add_argument("--anneal", type=Path, help="annealing corpus (asset sources only)")
    parser.add_argument("--lexicon", type=Path, required=True, help="WordNet corpus file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Prepare)
    tokenizer = load_tokenizer(config.tokenizer)
    manifest: dict[str, Any] = {"tokenizer": config.tokenizer, "vocabulary": tokenizer.vocabulary}
    for name in ("general", "anneal"):
        source = getattr(config, name)
        manifest[name] = _write_corpus(name, source, getattr(args, name), tokenizer, args.out)
    manifest["tasks"] = _write_tasks(config, args.lexicon, tokenizer, args.out)
    write_json(args.out / "manifest.json", manifest)


def _write_corpus(
    name: str, source: Source, path: Path | None, tokenizer: Tokenizer, out: Path
) -> dict[str, Any]:
    limits = {"train": source.train_tokens, "test": source.test_tokens}
    limits["validation"] = max(1000, source.test_tokens // 4)
    facts = {}
    for split, texts in _by_split(source, path, limits).items():
        if not texts:
            raise InputError(f"corpus {source.name}: too small, no document falls in its {split}")
        text = "\n".join(texts)
        everything = tokenizer.encode(text)
        tokens = everything[: limits[split]]
        # a token file cut short keeps its share of the bytes
        size = round(len(text.encode()) * len(tokens) / len(everything))
        with atomic_path(out / f"{name}_{split}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, tokens)
        digest = sha256_file(out / f"{name}_{split}.npy")
        facts[split] = {
            "documents": len(texts),
            "tokens": len(tokens),
            "bytes": size,
            "sha256": digest,
        }
    return facts


def _by_split(source: Source, path: Path | None, limits: dict[str, int]) -> dict[str, list[str]]:
    """Return shuffled texts by split, with at least `limits` characters each where there are."""
    texts: dict[str, list[str]] = {split: [] for split in limits}
    sizes = dict.fromkeys(limits, 0)
    streaming = source.kind == "hub"
    for split, text in documents(source, path):
        # an endless stream is read until every split is full, at 8 characters a token or fewer
        if streaming and all(sizes[name] > 8 * limits[name] for name in limits):
            break
        texts[split].append(text)
        sizes[split] += len(text)
    rng = stream("wsm", "split", 0)
    return {split: [own[i] for i in rng.permutation(len(own))] for split, own in texts.items()}


def _write_tasks(config: Prepare, lexicon: Path, tokenizer: Tokenizer, out: Path) -> dict[str, int]:
    entries: dict[str, list[dict[str, Any]]] = {"train": [], "validation": [], "test": []}
    for entry in read_corpus(lexicon):
        entries[split_of(entry["headword"], FRACTIONS)].append(entry)
    held_out = max(1, config.num_questions // 5)
    tasks = {
        "choices": gloss_items(entries["test"], config.num_choice_items),
        "questions_train": question_items(
            entries["train"], config.num_questions - held_out, "train-questions"
        ),
        "questions_test": question_items(entries["test"], held_out, "test-questions"),
    }
    for name, items in tasks.items():
        write_json(out / f"{name}.json", [_encoded(item, tokenizer) for item in items])
    return {name: len(items) for name, items in tasks.items()}


def _encoded(item: Item, tokenizer: Tokenizer) -> Item:
    return {
        "prompt": tokenizer.encode(item["prompt"]).tolist(),
        "options": [tokenizer.encode(option).tolist() for option in item["options"]],
        "answer": item["answer"],
    }


if __name__ == "__main__":
    run_step(main)
