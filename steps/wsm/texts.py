"""The documents of WSM's corpora, split and in the order in which they are kept.

Both corpora split by a hash of the headword, so a word whose gloss is tested is defined in neither
training set.
"""

from collections.abc import Iterator
from pathlib import Path

from steps.shared.corpora import read_corpus, split_of
from steps.shared.runtime import InputError, stream
from steps.wsm.config import Source

FRACTIONS = {"train": 0.94, "validation": 0.02, "test": 0.04}


def documents(source: Source, path: Path | None) -> Iterator[tuple[str, str]]:
    """Yield (split, text) of a corpus: a file made by steps.shared.corpora, or a hub data set.

    A file is shuffled; a hub data set, which may be larger than memory, is streamed as it comes.
    """
    if source.kind == "hub":
        for index, text in enumerate(_hub_texts(source)):
            yield split_of(str(index), FRACTIONS), text
        return
    if path is None:
        raise InputError(f"corpus {source.name}: an asset needs its file, given by a flag")
    entries = list(read_corpus(path))
    for index in stream("wsm", "split", 0).permutation(len(entries)):
        yield split_of(entries[index]["headword"], FRACTIONS), entries[index]["text"]


def _hub_texts(source: Source) -> Iterator[str]:
    from datasets import load_dataset

    try:
        rows = load_dataset(source.name, source.subset or None, split="train", streaming=True)
        for row in rows:
            yield row["text"]
    except KeyError:
        raise InputError(f"corpus {source.name}: has no column 'text'") from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"corpus {source.name}: cannot be read ({reason})") from None
