"""The documents of a corpus, split and in the order in which they are kept, and its token files.

The corpora of dictionaries split by a hash of the headword, the same in all: a word of one's test
split is defined in no training split.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from steps.shared.corpora import read_corpus, split_of
from steps.shared.errors import one_line
from steps.shared.runtime import InputError, remedy, sha256_file, stream
from steps.shared.text_config import Source
from steps.shared.token_files import token_writer
from steps.shared.tokenizer import encode, id_type

FRACTIONS = {"train": 0.94, "validation": 0.02, "test": 0.04}
BATCH = 1000  # documents encoded at once
MIN_VALIDATION = 1000  # tokens; a quarter of the test tokens where that is more
Part = tuple[Source, Path | None]  # a corpus and, of an asset, its file


def corpus_file(source: Source, paths: Sequence[Path], flag: str) -> Path | None:
    """Return the one file that a flag gives of a packaged corpus; None of a hub data set."""
    if len(paths) != (source.kind == "asset"):
        raise InputError(f"{flag}: {len(paths)} files: a packaged corpus is one, else none")
    return paths[0] if paths else None


def documents(paper: str, source: Source, path: Path | None) -> Iterator[tuple[str, str]]:
    """Yield (split, text) of a corpus: a file made by steps.shared.corpora, or a hub data set.

    A file is shuffled, by the stream (paper, split, 0); a hub data set, which may be larger than
    memory, is streamed as it comes.
    """
    if source.kind == "hub":
        yield from _hub_documents(source)
        return
    assert path is not None  # `corpus_file` has seen to it
    entries = list(read_corpus(path))
    if not entries:
        raise InputError(f"{path}: holds no entry{remedy(path)}")
    for index in stream(paper, "split", 0).permutation(len(entries)):
        yield split_of(entries[index]["headword"], FRACTIONS), entries[index]["text"]


def _hub_documents(source: Source) -> Iterator[tuple[str, str]]:
    """Yield (split, text) by the data set's own splits, or by a hash if it has only `train`.

    Its own, because neighbouring rows may be of one article, as in WikiText.
    """
    from datasets import get_dataset_split_names, load_dataset

    place = (source.name, source.subset or None)
    try:
        names = get_dataset_split_names(*place)
        own = set(FRACTIONS) <= set(names)
        # the small ones first, so that reading can end when `train` is full
        for split in ["validation", "test", "train"] if own else ["train"]:
            for index, row in enumerate(load_dataset(*place, split=split, streaming=True)):
                yield split if own else split_of(str(index), FRACTIONS), row["text"]
    except KeyError:
        raise InputError(f"corpus {source.name}: has no column 'text'") from None
    except (OSError, ValueError) as error:
        raise InputError(f"corpus {source.name}: cannot be read ({one_line(error)})") from None


def training_texts(paper: str, parts: Iterable[Part]) -> Iterator[str]:
    """Yield training documents of the corpora in turn, until one of them ends."""
    streams = (
        (text + "\n" for split, text in documents(paper, *part) if split == "train")
        for part in parts
    )
    for texts in zip(*streams, strict=False):
        yield from texts


def write_corpus(
    paper: str, source: Source, path: Path | None, tokenizer: Tokenizer, stem: Path
) -> dict[str, Any]:
    """Write <stem>_<split>.npy, of whole documents, until all are full or the corpus ends.

    Returns documents, tokens, bytes and sha256 of every split.
    """
    limits = {"train": source.train_tokens, "test": source.test_tokens}
    limits["validation"] = max(MIN_VALIDATION, source.test_tokens // 4)
    paths = {split: stem.with_name(f"{stem.name}_{split}.npy") for split in FRACTIONS}
    with ExitStack() as stack:
        writers = {
            split: stack.enter_context(
                token_writer(paths[split], dtype=id_type(tokenizer), limit=limits[split])
            )
            for split in FRACTIONS
        }
        pairs = documents(paper, source, path)
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
