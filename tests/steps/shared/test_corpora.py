"""Corpora: the two dictionary formats on small hand-written files, and the split by headword."""

import gzip
import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.shared import corpora
from steps.shared.gcide import fold
from steps.shared.runtime import InputError

GCIDE = r"""

00-database-info
   This file was converted from an older one.
      A dictionary needs many hands.              --Author.
Apple \Ap"ple\ ([a^]p"p'l), n. [OE. appel, AS. [ae]ppel; akin to
   Fries. appel, Gr. 'a`pion. See {Pome}.]
   1. (Bot.) The fleshy fruit of a tree ({Pyrus malus}), eaten
      raw; as, an apple a day. [Obs. or R.] --Shak. ii. 3.
      [1913 Webster]

            An apple fell on the
            philosopher's head.                   --Anon.
      [1913 Webster]

   2. Any tree bearing apples. [Written also {appel}.]
      [Webster 1913 Suppl.] Applehood

   Note: There are caf['e]s where [ae]sthetes eat them at
         20[deg].
         [1913 Webster]

   {Apple pie}, a pie made of apples. See {Pie}, n., 2.
      [1913 Webster]

   Syn: pome, pippin.
        [1913 Webster]

apple-jack \apple-jack\ n.
   a spirit that came from the other dictionary.
   [WordNet 1.5]

   2. A second spirit, of mixed origin.
      [1913 Webster + WordNet 1.5]

   3. A third spirit, this one old and [WordNet sense 2]
      strong.
      [PJC]

   4. A fourth spirit, of good origin.
      [PJC]

Bolus \Bo"lus\, Bolis \Bo"lis\ (b[=o]"l[u^]s), n.; pl. {Boluses}.
   [L., fr. Gr. ? lump.]
   (a) A rounded mass of anything, small or large. -- {Bo"lus*ly}, adv.

   (b) An eternal ? of the soul.
   [1913 Webster]

Bolused \Bo"lused\, a.
   Same as {Bolus}.
   [1913 Webster]

Bolic \Bo"lic\, a. (Med.)
   Like a mass. -- n. (Med.) The mass which is meant here.
   [1913 Webster]

Copy \Cop"y\, n.
   The fleshy fruit of a tree (Pyrus malus), eaten raw; as, an
   APPLE a day.
   [1913 Webster]
"""

EXPECTED = {
    "Apple": [
        "The fleshy fruit of a tree (Pyrus malus), eaten raw; as, an apple a day.",
        "Any tree bearing apples.",
        "There are cafes where aesthetes eat them at 20 degrees.",
        "Apple pie, a pie made of apples.",
    ],
    "apple-jack": ["A fourth spirit, of good origin."],
    "Bolus": ["A rounded mass of anything, small or large."],
    "Bolic": ["Like a mass. The mass which is meant here."],
}

NOUN = """  1 This software and database is provided to you, the LICENSEE.
00000101 03 n 01 entity 0 001 ~ 00000202 n 0000 | that which is; "an entity is"
00000202 03 n 02 living_thing 0 caf\u00e9 1 003 @ 00000101 n 0000 + 00000404 a 0101 ~ 00000303 n 0000 | a thing that lives (called `alive')
00000303 15 n 01 Rome 0 002 @i 00000101 n 0000 @ 00000202 n 0000 | the   capital of Italy
"""  # noqa: E501
ADJECTIVE = """  1 This software and database is provided to you, the LICENSEE.
00000404 00 s 02 live(p) 0 alive(a) 0 000 | That which is: "an entity is".
00000505 00 a 0b a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 k 0 001 & 00000404 a 0000 | of letters
"""


@pytest.fixture
def gcide(tmp_path):
    path = tmp_path / "gcide.dict.dz"
    path.write_bytes(gzip.compress(GCIDE.encode() + b"Bad \\Bad\\, a.\n   A bad\x92 byte in it.\n"))
    return path


@pytest.fixture
def wordnet(tmp_path):
    paths = [tmp_path / "data.noun", tmp_path / "data.adj"]
    for path, text in zip(paths, (NOUN, ADJECTIVE), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _definitions(entries):
    return {name: text.removeprefix(f"{name}: ").split("\n") for name, text in entries}


def test_gcide_keeps_definitions_and_nothing_else(gcide):
    entries = list(corpora.gcide_entries(gcide))
    assert all(entry.text.startswith(f"{entry.headword}: ") for entry in entries)
    found = _definitions(entries)
    assert found.pop("Bad") == ["A bad byte in it."]
    # a sense of Bolus is damaged, Bolused is a mere reference, Copy a repetition
    assert found == EXPECTED


def test_gcide_leaves_out_known_texts(gcide):
    known = {corpora.normalised("any tree BEARING apples")}
    found = _definitions(corpora.gcide_entries(gcide, known=known))
    assert found["Apple"] == [text for text in EXPECTED["Apple"] if not text.startswith("Any")]
    assert found["Bolic"] == EXPECTED["Bolic"]


def test_synsets_have_lemmas_gloss_and_hypernyms(wordnet):
    entity, living, rome, live, letters = corpora.synsets(wordnet)
    assert entity == (101, "n", ("entity",), 'that which is; "an entity is"', ())
    assert living.lemmas == ("living thing", "cafe")
    assert (living.gloss, living.hypernyms) == ("a thing that lives (called 'alive')", (101,))
    # an instance is not a kind: '@i' is left out
    assert (rome.gloss, rome.hypernyms) == ("the capital of Italy", (202,))
    assert live.lemmas == ("live", "alive") and live.pos == "s"
    assert letters.lemmas == tuple("abcdefghijk")  # the count of words is hexadecimal


def test_wordnet_entries_name_their_hypernyms_and_come_once(wordnet):
    entries = list(corpora.wordnet_entries(wordnet))
    assert [entry.headword for entry in entries] == ["entity", "living thing", "Rome", "a"]
    assert entries[2] == (
        "Rome", "Rome: the capital of Italy", "n", "the capital of Italy", ("living thing",),
    )  # fmt: skip


def test_glosses_are_known_with_and_without_their_examples(wordnet):
    found = corpora.glosses(wordnet)
    assert {"that which is", "that which is an entity is", "of letters"} <= found


@given(st.text())
def test_fold_leaves_printable_ascii_and_newline(text):
    folded = fold(text)
    assert set(folded) <= set(string.printable) - set("\t\r\x0b\x0c")
    assert fold(folded) == folded


def test_fold_keeps_the_letters_under_accents():
    assert fold("Besan\u00e7on, na\u00efve\n\u03b1 \ufb01n\t") == "Besancon, naive\n fin"


WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=40)


@given(WORDS, st.text(max_size=4))
def test_a_headword_falls_in_one_split_and_every_entry_in_one(keys, salt):
    keys = keys + [f" {key.swapcase()} " for key in keys]
    fractions = {"train": 0.5, "validation": 0.25, "test": 0.25}
    parts = corpora.split_by_entry(keys, fractions=fractions, salt=salt)
    assert sorted(i for part in parts.values() for i in part) == list(range(len(keys)))
    split = {index: name for name, part in parts.items() for index in part}
    by_word = {}
    for index, key in enumerate(keys):
        assert by_word.setdefault(key.strip().casefold(), split[index]) == split[index]


def test_the_shares_are_kept_the_salt_matters_and_other_entries_do_not():
    keys = [f"word {number}" for number in range(20_000)]
    fractions = {"train": 0.94, "validation": 0.02, "test": 0.04}
    parts = corpora.split_by_entry(keys, fractions=fractions, salt="a")
    for name, share in fractions.items():
        # five standard deviations of a binomial share
        tolerance = 5 * (share * (1 - share) / len(keys)) ** 0.5
        assert abs(len(parts[name]) / len(keys) - share) < tolerance
    assert corpora.split_by_entry(keys, fractions=fractions, salt="b") != parts
    fewer = corpora.split_by_entry(keys[:100], fractions=fractions, salt="a")
    assert fewer["train"] == [index for index in parts["train"] if index < 100]
    assert corpora.split_of("Word", fractions) == corpora.split_of(" word", fractions)


@pytest.mark.parametrize("fractions", [{"a": 0.5, "b": 0.4}, {"a": 1.1, "b": -0.1}, {}])
def test_fractions_that_are_none_are_refused(fractions):
    with pytest.raises(InputError, match="sum 1"):
        corpora.split_of("word", fractions)


def test_no_text_falls_in_two_splits(tmp_path):
    rng = random.Random(0)
    articles = [
        f"W{rng.randrange(50)} \\W\\, n.\n   A thing of kind {rng.randrange(60)} here.\n   [PJC]\n"
        for _ in range(300)
    ]
    path = tmp_path / "gcide.dict.dz"
    path.write_bytes(gzip.compress("\n".join(articles).encode()))
    entries = list(corpora.gcide_entries(path))
    halves = {"train": 0.5, "test": 0.5}
    parts = corpora.split_by_entry([e.headword for e in entries], fractions=halves, salt="")
    texts = {
        name: {line for i in part for line in entries[i].text.partition(": ")[2].split("\n")}
        for name, part in parts.items()
    }
    assert texts["train"] and texts["test"] and not texts["train"] & texts["test"]


def test_the_command_line_writes_the_same_lines_each_time(gcide, wordnet, tmp_path):
    data = [str(path) for path in wordnet]
    runs = []
    for name in ("one", "two"):
        out = tmp_path / f"{name}.jsonl"
        corpora.main(["gcide", "--input", str(gcide), "--exclude", *data, "--out", str(out)])
        runs.append(out.read_bytes())
    assert runs[0] == runs[1]
    assert [entry["headword"] for entry in corpora.read_corpus(out)] == [*EXPECTED, "Bad"]
    corpora.main(["wordnet", "--input", *data, "--out", str(out)])
    first = json.loads(out.read_text().splitlines()[0])
    assert first == {
        "headword": "entity", "text": 'entity: that which is; "an entity is"', "pos": "n",
        "gloss": 'that which is; "an entity is"', "hypernyms": [],
    }  # fmt: skip


def test_bad_input_is_named_and_writes_nothing(tmp_path):
    empty, out = tmp_path / "empty.dz", tmp_path / "out.jsonl"
    empty.write_bytes(gzip.compress(b"nothing here"))
    for source, told in [(empty, "no gcide entries"), (tmp_path / "none", "no such file")]:
        with pytest.raises(InputError, match=told):
            corpora.main(["gcide", "--input", str(source), "--out", str(out)])
    empty.write_bytes(b"not gzip")
    with pytest.raises(InputError, match="empty.dz"):
        corpora.main(["gcide", "--input", str(empty), "--out", str(out)])
    with pytest.raises(InputError, match="data.noun"):
        (tmp_path / "data.noun").write_text("no synset in this line\n")
        corpora.main(["wordnet", "--input", str(tmp_path / "data.noun"), "--out", str(out)])
    with pytest.raises(InputError, match="not a corpus"):
        list(corpora.read_corpus(empty))
    assert not out.exists()
