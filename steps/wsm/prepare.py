"""Prepare WSM's data: a tokenizer, token files of both corpora by split, and the two tasks."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steps.shared.corpora import read_corpus, split_of
from steps.shared.flags import read_config, step_parser
from steps.shared.runtime import (
    atomic_path,
    progress,
    run_step,
    write_json,
)
from steps.wsm.config import Prepare

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CORPORA = ("general", "anneal")


def main(argv: list[str] | None = None) -> None:
    """Write {general,anneal}_{train,validation,test}.npy, tokenizer, tasks and a manifest."""
    parser = step_parser(__doc__, "threads")
    corpus = "the corpus, of an asset; none of the hub"
    parser.add_argument("--general", type=Path, nargs="*", default=[], help=corpus)
    parser.add_argument("--anneal", type=Path, nargs="*", default=[], help=corpus)
    parser.add_argument("--lexicon", type=Path, required=True, help="WordNet corpus file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Prepare)
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)  # read when the tokenizers first work
    from steps.shared.texts import corpus_file, training_texts, write_corpus
    from steps.shared.tokenizer import make_tokenizer

    sources = {}
    for name in CORPORA:
        source = getattr(config, name)
        sources[name] = (source, corpus_file(source, getattr(args, name), f"--{name}"))
    tokenizer = make_tokenizer(config.tokenizer, training_texts("wsm", sources.values()))
    manifest: dict[str, Any] = {
        "tokenizer": config.tokenizer,
        "vocabulary": tokenizer.get_vocab_size(),
    }
    for name, (source, path) in sources.items():
        manifest[name] = write_corpus("wsm", source, path, tokenizer, args.out / name)
    manifest["tasks"] = _write_tasks(config, args.lexicon, tokenizer, args.out)
    with atomic_path(args.out / "tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    write_json(args.out / "manifest.json", manifest)


def _write_tasks(
    config: Prepare, lexicon: Path, tokenizer: "Tokenizer", out: Path
) -> dict[str, int]:
    from steps.shared.texts import FRACTIONS
    from steps.wsm.tasks import gloss_items, question_items

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
    from steps.shared.tokenizer import encode

    prompt, *options = (
        ids.tolist() for ids in encode(tokenizer, [item["prompt"], *item["options"]])
    )
    size = len(item["options"][item["answer"]].encode())
    return {"prompt": prompt, "options": options, "answer": item["answer"], "answer_bytes": size}


if __name__ == "__main__":
    run_step(main)
