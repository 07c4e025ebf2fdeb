"""Plain English corpora from two raw assets: GCIDE (Webster 1913) and WordNet 3.0.

Entries are one line of printable ASCII each, every text once. GCIDE holds definitions copied from
WordNet; those are left out, so that the two corpora share no text. Both write headwords in lower
case, which makes them comparable.
"""

import argparse
import bisect
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steps.shared.gcide import articles, fold, joined
from steps.shared.runtime import InputError, atomic_path, log, reading, run_step

_SALT = "retable corpora"  # another one would draw other splits
# WordNet's lexicographer files of nouns, by number
_NOUNS = """top act animal artifact attribute body cognition communication event feeling food group
location motive object person phenomenon plant possession process quantity relation shape state
substance time"""
CATEGORIES = dict(enumerate(_NOUNS.split(), start=3))
_SEPARATORS = {code: " " for code in range(128) if not chr(code).isalnum()}
_EXAMPLE = re.compile(r'[;:,] ?(?:e\.g\.,? ?)?"')


class Entry(NamedTuple):
    """One dictionary article: `text` is "headword: definition", one sense after another."""

    headword: str
    text: str


class Synset(NamedTuple):
    """One WordNet synset.

    `pos` is n, v, a or r (adverb); `category` is that of `CATEGORIES` for a noun, else empty.
    `gloss` is the definition, then any examples in quotes.
    """

    pos: str
    category: str
    lemmas: tuple[str, ...]
    gloss: str


class SynsetEntry(NamedTuple):
    """One synset as text, "headword: gloss", without examples.

    The first lemma, in lower case, stands for the synset.
    """

    headword: str
    text: str
    pos: str
    gloss: str
    category: str


def normalised(text: str) -> str:
    """Return the form in which two texts count as the same: lower case letters and digits only."""
    return " ".join(fold(text).lower().translate(_SEPARATORS).split())


def gcide_entries(path: str | Path, *, known: Iterable[str] = ()) -> Iterator[Entry]:
    """Yield the articles of a dictd GCIDE file (gzip), each definition once.

    `known` holds normalised texts to leave out, such as the `glosses` of WordNet.
    """
    seen = set(known)
    for headword, definitions in articles(path):
        fresh = [text for text in definitions if _first_time(text, seen)]
        if fresh:
            yield Entry(headword, f"{headword}: {joined(fresh)}")


def _first_time(text: str, seen: set[str]) -> bool:
    key = normalised(text)
    if key in seen:
        return False
    seen.add(key)
    return True


def synsets(paths: Iterable[str | Path]) -> Iterator[Synset]:
    """Yield every synset of WordNet `data.*` files, in file order."""
    for path in paths:
        with reading(path, "WordNet data"), open(path, encoding="utf-8") as file:
            line = ""
            for line in file:
                if line.startswith(" "):
                    continue
                try:
                    yield _synset(line)
                except (ValueError, LookupError):
                    raise InputError(f"{path}: not a line of WordNet data: {line[:60]!r}") from None
            if not line.endswith("\n"):
                raise ValueError("is empty or cut short: must end with a whole line")


def _synset(line: str) -> Synset:
    data, _, gloss = line.partition("|")
    fields = data.split()
    end = 4 + 2 * int(fields[3], 16)
    lemmas = (re.sub(r"\((?:a|p|ip)\)$", "", word) for word in fields[4:end:2])
    return Synset(
        pos=fields[2].replace("s", "a"),  # s: an adjective close to another one
        category=CATEGORIES[int(fields[1])] if fields[2] == "n" else "",
        lemmas=tuple(fold(word.replace("_", " ")) for word in lemmas),
        gloss=fold(" ".join(gloss.replace("`", "'").split())),
    )


def wordnet_entries(paths: Iterable[str | Path]) -> Iterator[SynsetEntry]:
    """Yield each synset of WordNet `data.*` files as text, each gloss once."""
    seen: set[str] = set()
    for synset in synsets(paths):
        gloss = definition(synset.gloss)
        if _first_time(gloss, seen):
            name = synset.lemmas[0].lower()
            yield SynsetEntry(name, f"{name}: {gloss}", synset.pos, gloss, synset.category)


def definition(gloss: str) -> str:
    """Return a WordNet gloss without its quoted examples; quotes within parentheses stay."""
    for match in _EXAMPLE.finditer(gloss):
        before = gloss[: match.start()]
        if before.count("(") <= before.count(")"):
            return before.rstrip(";:, ")
    return gloss.rstrip(";:, ")


def glosses(paths: Iterable[str | Path]) -> set[str]:
    """Return the normalised WordNet glosses, whole and without their quoted examples."""
    texts = [synset.gloss for synset in synsets(paths)]
    return {normalised(part) for text in texts for part in (text, definition(text))}


def split_of(headword: str, fractions: dict[str, float]) -> str:
    """Return the split of a headword: by a hash of it alone, upper and lower case being equal.

    Entries may so come and go without moving the others, and two corpora agree on a word.
    `fractions` must be positive and sum to 1.
    """
    if any(share <= 0 for share in fractions.values()) or abs(sum(fractions.values()) - 1) > 1e-9:
        raise InputError(f"fractions {fractions}: each must be above 0 and their sum 1")
    digest = hashlib.sha256(f"{_SALT}\n{headword.strip().casefold()}".encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64
    *bounds, _ = itertools.accumulate(fractions.values())
    return list(fractions)[bisect.bisect(bounds, point)]


def read_corpus(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a file made by this module; a broken one is an `InputError`."""
    with reading(path, "a corpus of JSON lines"), open(path, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            yield _entry(line, f"{path}, line {number}")


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not a corpus of JSON lines ({error})") from None
    texts = (
        [entry.get(name) for name in ("headword", "text")] if isinstance(entry, dict) else [None]
    )
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: not a corpus entry: needs a headword and a text")
    return entry


def main(argv: Sequence[str] | None = None) -> None:
    """Write a corpus as JSON lines, one entry a line (fields of Entry or SynsetEntry)."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("corpus", choices=("gcide", "wordnet"))
    parser.add_argument("--input", nargs="+", required=True, type=Path)
    parser.add_argument("--exclude", nargs="+", default=[], type=Path, help="WordNet data files")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args(argv)
    for path in [*args.input, *args.exclude]:
        if not path.is_file():
            raise InputError(f"{path}: no such file; give the unpacked members of the asset")
    entries: Iterable[Entry | SynsetEntry]
    if args.corpus == "wordnet":
        entries = wordnet_entries(args.input)
    else:
        known = glosses(args.exclude)
        entries = (entry for path in args.input for entry in gcide_entries(path, known=known))
    with atomic_path(args.out) as temporary:
        count = _write(temporary, entries)
        if not count:
            raise InputError(f"{args.input[0]}: no {args.corpus} entries found in it")
    log(f"{args.corpus}: {count} entries in {args.out.name}")


def _write(path: Path, entries: Iterable[Entry | SynsetEntry]) -> int:
    count = 0
    with open(path, "w", encoding="ascii", newline="\n") as file:
        for entry in entries:
            file.write(json.dumps(entry._asdict()) + "\n")
            count += 1
    return count


if __name__ == "__main__":
    run_step(main)
