"""The two downstream tasks of WSM, made from WordNet entries that no training text defines.

An item is {prompt, options, answer}: four texts of which one, at index `answer`, is right.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from steps.shared.corpora import CATEGORIES
from steps.shared.runtime import InputError, stream

NUM_OPTIONS = 4
FEWEST_WORDS = 5  # of a gloss that is spoiled in three ways
MOST_DRAWS = 1000  # a pool that gives no three wrong options in so many has too few
Entry = dict[str, Any]
Item = dict[str, Any]


def gloss_items(entries: list[Entry], count: int) -> list[Item]:
    """Return `count` items: which of four texts is the gloss of the lemma?

    The wrong ones are the gloss itself with two neighbouring words exchanged (even items) or with
    one word replaced by a word of another gloss (odd items).
    """
    rng = stream("wsm", "gloss-items", 0)
    words = [word for entry in entries for word in entry["gloss"].split() if word.isalpha()]
    items: list[Item] = []
    for index in rng.permutation(len(entries)):
        spoil = _replaced(words) if len(items) % 2 else _exchanged
        gloss = entries[index]["gloss"].split()
        wrong = spoil(gloss, rng) if len(gloss) >= FEWEST_WORDS else []
        if len(wrong) == NUM_OPTIONS - 1:
            options = [" ".join(gloss), *wrong]
            items.append(_item(f"{entries[index]['headword']}: ", options, rng))
        if len(items) == count:
            return items
    return _enough(items, count, "gloss_items")


def question_items(entries: list[Entry], count: int, purpose: str) -> list[Item]:
    """Return `count` items: of which of four categories is the noun, given its gloss?"""
    rng = stream("wsm", purpose, 0)
    # "top" holds the few most general nouns, which are of no kind
    nouns = [entry for entry in entries if entry["category"] not in ("", "top")]
    kinds = [name for name in CATEGORIES.values() if name != "top"]
    true = defaultdict(set)
    for entry in nouns:
        true[entry["headword"]].add(entry["category"])
    items = []
    for index in rng.permutation(len(nouns))[:count]:
        entry = nouns[index]
        others = [kind for kind in rng.permutation(kinds) if kind not in true[entry["headword"]]]
        options = [f"a kind of {k}." for k in (entry["category"], *others[: NUM_OPTIONS - 1])]
        prompt = f"Q: what is {entry['headword']}, {entry['gloss']}?\nA: "
        items.append(_item(prompt, options, rng))
    return _enough(items, count, purpose)


def _exchanged(gloss: list[str], rng: np.random.Generator) -> list[str]:
    """Return up to three different texts, each with two neighbouring words of `gloss` exchanged."""
    right, wrong = " ".join(gloss), []
    for at in rng.permutation(len(gloss) - 1):
        text = " ".join([*gloss[:at], gloss[at + 1], gloss[at], *gloss[at + 2 :]])
        if text != right and text not in wrong:
            wrong.append(text)
    return wrong[: NUM_OPTIONS - 1]


def _replaced(words: list[str]) -> Callable[[list[str], np.random.Generator], list[str]]:
    """Return a function that replaces one word of a gloss, after its first, by three of `words`."""

    def spoil(gloss: list[str], rng: np.random.Generator) -> list[str]:
        """Return three texts, each with one word of `gloss` replaced; none if no word can be."""
        places = [at for at, word in enumerate(gloss) if at and word.isalpha()]
        if not places:
            return []
        at, others = int(rng.choice(places)), []
        for _ in range(MOST_DRAWS):
            word = words[int(rng.integers(len(words)))]
            if word not in (gloss[at], *others):
                others.append(word)
            if len(others) == NUM_OPTIONS - 1:
                break
        return [" ".join([*gloss[:at], word, *gloss[at + 1 :]]) for word in others]

    return spoil


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
