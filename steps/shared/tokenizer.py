"""Tokenizers: byte-level BPE trained on the corpora themselves, or one of the hub by id."""

from collections.abc import Iterable
from itertools import islice

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from steps.shared.errors import one_line
from steps.shared.runtime import InputError

SAMPLE = 40_000  # documents that BPE is trained on: a few CPU seconds, whatever the corpus


def make_tokenizer(name: str, documents: Iterable[str]) -> Tokenizer:
    """Return the tokenizer that params.yaml names; `documents` are read only to train BPE.

    `bpe:N` is a byte-level BPE of at most N tokens (all 256 bytes included, so that any text can
    be encoded); anything else a hub id or a folder.
    """
    if not name.startswith("bpe:"):
        return _from_hub(name)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=int(name.removeprefix("bpe:")),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(islice(documents, SAMPLE), trainer)
    return tokenizer


def _from_hub(name: str) -> Tokenizer:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name).backend_tokenizer
    except (OSError, ValueError) as error:
        raise InputError(f"tokenizer {name}: cannot be loaded ({one_line(error)})") from None


def encode(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    """Return the token ids of each text, without special tokens."""
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [np.array(one.ids, id_type(tokenizer)) for one in encoded]


def id_type(tokenizer: Tokenizer) -> np.dtype:
    """Return the smallest of uint16 and uint32 that holds every id."""
    return np.dtype(np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.uint32)
