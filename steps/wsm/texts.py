"""Documents of WSM: what the model reads, and the two tasks made from WordNet.

Both corpora split by a hash of the headword, so a word whose gloss is tested is defined in neither
training set.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steps.shared.corpora import read_corpus, split_of
from steps.shared.runtime import InputError, stream
from steps.wsm.config import Source

FRACTIONS = {"train": 0.94, "validation": 0.02, "test": 0.04}
NUM_OPTIONS = 4
MOST_DRAWS = 1000  # a pool that gives no three wrong options in so many has too few
Item = dict[str, Any]


def documents(source: Source, path: Path | None) -> Iterator[tuple[str, str]]:
    """Yield (split, text) of a corpus: a file made by steps.shared.corpora, or a hub data set."""
    if source.kind == "hub":
        for index, text in enumerate(_hub_texts(source)):
            yield split_of(str(index), FRACTIONS), text
        return
    if path is None:
        raise InputError(f"corpus {source.name}: an asset needs its file, given by a flag")
    for entry in read_corpus(path):
        yield split_of(entry["headword"], FRACTIONS), entry["text"]


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


def gloss_items(entries: list[dict[str, Any]], count: int) -> list[Item]:
    """Return `count` items: which of four glosses of one part of speech is that of the lemma?"""
    rng = stream("wsm", "gloss-items", 0)
    pools, true = defaultdict(list), defaultdict(set)
    for entry in entries:
        pools[entry["pos"]].append(entry["gloss"])
        true[entry["headword"]].add(entry["gloss"])
    chosen = rng.permutation(len(entries))[:count]
    items = []
    for entry in (entries[index] for index in chosen):
        others = _others(pools[entry["pos"]], true[entry["headword"]], rng)
        items.append(_item(f"{entry['headword']}: ", [entry["gloss"], *others], rng))
    return _enough(items, count, "gloss_items")


def question_items(entries: list[dict[str, Any]], count: int, purpose: str) -> list[Item]:
    """Return `count` items: what is the noun a kind of? Options are hypernyms."""
    rng = stream("wsm", purpose, 0)
    known = [entry for entry in entries if entry["pos"] == "n" and entry["hypernyms"]]
    pool, true = [entry["hypernyms"][0] for entry in known], defaultdict(set)
    for entry in known:
        true[entry["headword"]].update(entry["hypernyms"])
    items = []
    for index in rng.permutation(len(known))[:count]:
        entry = known[index]
        others = _others(pool, true[entry["headword"]], rng)
        options = [f"a kind of {text}." for text in (pool[index], *others)]
        items.append(_item(f"Q: what is {entry['headword']}?\nA: ", options, rng))
    return _enough(items, count, purpose)


def _others(pool: list[str], true: set[str], rng: np.random.Generator) -> list[str]:
    """Draw different wrong options; `true` holds what is right for any sense of the word."""
    texts: list[str] = []
    for _ in range(MOST_DRAWS):
        text = pool[int(rng.integers(len(pool)))]
        if text not in true and text not in texts:
            texts.append(text)
        if len(texts) == NUM_OPTIONS - 1:
            return texts
    raise InputError(
        f"lexicon: {len(pool)} entries of one kind in a split are too few for items of"
        f" {NUM_OPTIONS} different options"
    )


def _item(prompt: str, options: list[str], rng: np.random.Generator) -> Item:
    order = rng.permutation(len(options))
    return {
        "prompt": prompt,
        "options": [options[index] + "\n" for index in order],
        "answer": int(np.flatnonzero(order == 0)[0]),
    }


def _enough(items: list[Item], count: int, name: str) -> list[Item]:
    if len(items) < count:
        raise InputError(f"{name}: {count} items asked for, the corpus gives {len(items)}")
    return items
