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
Item = dict[str, Any]


def documents(source: Source, path: Path | None) -> Iterator[tuple[str, str]]:
    """Yield (split, text) of a corpus: a file made by steps.shared.corpora, or a hub data set."""
    if source.kind == "hub":
        from datasets import load_dataset

        rows = load_dataset(source.name, source.subset or None, split="train", streaming=True)
        for index, row in enumerate(rows):
            yield split_of(str(index), FRACTIONS), row["text"]
        return
    if path is None:
        raise InputError(f"corpus {source.name}: an asset needs its file, given by a flag")
    for entry in read_corpus(path):
        yield split_of(entry["headword"], FRACTIONS), entry["text"]


def gloss_items(entries: list[dict[str, Any]], count: int) -> list[Item]:
    """Return `count` items: which of four glosses of one part of speech is that of the lemma?"""
    rng = stream("wsm", "gloss-items", 0)
    pools = defaultdict(list)
    for entry in entries:
        pools[entry["pos"]].append(entry)
    chosen = rng.permutation(len(entries))[:count]
    items = []
    for entry in (entries[index] for index in chosen):
        others = _others(pools[entry["pos"]], "gloss", entry["gloss"], rng)
        items.append(_item(f"{entry['headword']}: ", [entry["gloss"], *others], rng))
    return _enough(items, count, "gloss_items")


def question_items(entries: list[dict[str, Any]], count: int, purpose: str) -> list[Item]:
    """Return `count` items: what is the noun a kind of? Options are hypernyms."""
    rng = stream("wsm", purpose, 0)
    known = [entry for entry in entries if entry["pos"] == "n" and entry["hypernyms"]]
    items = []
    for index in rng.permutation(len(known))[:count]:
        entry = known[index]
        kind = {"kind": entry["hypernyms"][0]}
        pool = [{"kind": other["hypernyms"][0]} for other in known]
        others = _others(pool, "kind", kind["kind"], rng)
        options = [f"a kind of {text}." for text in (kind["kind"], *others)]
        items.append(_item(f"Q: what is {entry['headword']}?\nA: ", options, rng))
    return _enough(items, count, purpose)


def _others(pool: list[dict], key: str, true: str, rng: np.random.Generator) -> list[str]:
    texts: list[str] = []
    while len(texts) < NUM_OPTIONS - 1:
        text = pool[int(rng.integers(len(pool)))][key]
        if text != true and text not in texts:
            texts.append(text)
    return texts


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
