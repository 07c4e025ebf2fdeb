"""Prepare WSM's data: a tokenizer, token files of both corpora by split, and the two tasks."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steps.shared.config import read_config, step_parser
from steps.shared.corpora import read_corpus, split_of
from steps.shared.runtime import (
    InputError,
    atomic_path,
    progress,
    run_step,
    sha256_file,
    write_json,
)
from steps.wsm.config import Prepare, Source

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CORPORA = ("general", "anneal")
BATCH = 1000  # documents encoded at once


def main(argv: list[str] | None = None) -> None:
    """Write {general,anneal}_{train,validation,test}.npy, tokenizer, tasks and a manifest."""
    parser = step_parser(__doc__)
    parser.add_argument("--general", type=Path, help="general corpus (asset sources only)")
    parser.add_argument("--anneal", type=Path, help="annealing corpus (asset sources only)")
    parser.add_argument("--lexicon", type=Path, required=True, help="WordNet corpus file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    config = read_config(args, Prepare)
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)  # read when the tokenizers first work
    from steps.wsm.tokenizer import make_tokenizer

    sources = {name: (getattr(config, name), getattr(args, name)) for name in CORPORA}
    tokenizer = make_tokenizer(config.tokenizer, _training_texts(sources))
    manifest: dict[str, Any] = {
        "tokenizer": config.tokenizer,
        "vocabulary": tokenizer.get_vocab_size(),
    }
    for name, (source, path) in sources.items():
        manifest[name] = _write_corpus(name, source, path, tokenizer, args.out)
    manifest["tasks"] = _write_tasks(config, args.lexicon, tokenizer, args.out)
    with atomic_path(args.out / "tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    write_json(args.out / "manifest.json", manifest)


def _training_texts(sources: dict[str, tuple[Source, Path | None]]) -> Iterator[str]:
    """Yield training documents of the corpora in turn, until one of them ends."""
    from steps.wsm.texts import documents

    streams = (
        (text + "\n" for split, text in documents(source, path) if split == "train")
        for source, path in sources.values()
    )
    for texts in zip(*streams, strict=False):
        yield from texts


def _write_corpus(
    name: str, source: Source, path: Path | None, tokenizer: "Tokenizer", out: Path
) -> dict[str, Any]:
    """Write a file per split, of whole documents, until all are full or the corpus ends."""
    from steps.wsm.data import token_writer
    from steps.wsm.texts import FRACTIONS, documents
    from steps.wsm.tokenizer import encode, id_type

    limits = {"train": source.train_tokens, "test": source.test_tokens}
    limits["validation"] = max(1000, source.test_tokens // 4)
    paths = {split: out / f"{name}_{split}.npy" for split in FRACTIONS}
    with ExitStack() as stack:
        writers = {
            split: stack.enter_context(
                token_writer(paths[split], dtype=id_type(tokenizer), limit=limits[split])
            )
            for split in FRACTIONS
        }
        pairs = documents(source, path)
        while not all(writer.full for writer in writers.values()):
            batch = [(split, text + "\n") for split, text in islice(pairs, BATCH)]
            if not batch:
                break
            wanted = [(split, text) for split, text in batch if not writers[split].full]
            encoded = encode(tokenizer, [text for _, text in wanted])
            for (split, text), ids in zip(wanted, encoded, strict=True):
                writers[split].add(text, ids)
        for split, writer in writers.items():
            if not writer.documents:
                raise InputError(
                    f"corpus {source.name}: no document of its {split} split within"
                    f" {limits[split]} tokens"
                )
    return {
        split: {
            "documents": writer.documents,
            "tokens": writer.tokens,
            "bytes": writer.bytes,
            "sha256": sha256_file(paths[split]),
        }
        for split, writer in writers.items()
    }


def _write_tasks(
    config: Prepare, lexicon: Path, tokenizer: "Tokenizer", out: Path
) -> dict[str, int]:
    from steps.wsm.tasks import gloss_items, question_items
    from steps.wsm.texts import FRACTIONS

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
    for name, items in progress(tasks.items(), total=len(tasks), label="wsm tasks"):
        write_json(out / f"{name}.json", [_encoded(item, tokenizer) for item in items])
    return {name: len(items) for name, items in tasks.items()}


def _encoded(item: dict[str, Any], tokenizer: "Tokenizer") -> dict[str, Any]:
    from steps.wsm.tokenizer import encode

    prompt, *options = (
        ids.tolist() for ids in encode(tokenizer, [item["prompt"], *item["options"]])
    )
    size = len(item["options"][item["answer"]].encode())
    return {"prompt": prompt, "options": options, "answer": item["answer"], "answer_bytes": size}


if __name__ == "__main__":
    run_step(main)
