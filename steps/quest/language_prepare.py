"""Prepare the language model's corpus: a tokenizer, and token files by split."""

import argparse
import os

from steps.quest.language_config import TextData
from steps.shared.runtime import atomic_path, write_json


def run(args: argparse.Namespace, config: TextData) -> None:
    """Write language.json (a manifest), language_<split>.npy and language_tokenizer.json."""
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)  # read when the tokenizers first work
    from steps.shared.texts import corpus_file, training_texts, write_corpus
    from steps.shared.tokenizer import make_tokenizer

    path = corpus_file(config, args.assets, "--assets")
    tokenizer = make_tokenizer(config.tokenizer, training_texts("quest", [(config, path)]))
    splits = write_corpus("quest", config, path, tokenizer, args.out / "language")
    with atomic_path(args.out / "language_tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    note = {**config.model_dump(), "vocabulary": tokenizer.get_vocab_size(), "splits": splits}
    write_json(args.out / "language.json", note)
