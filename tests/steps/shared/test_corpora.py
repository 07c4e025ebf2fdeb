"""Corpora: the two dictionary formats on small hand-written files, and the split by headword."""

import gzip
import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_dictionaries import ADJECTIVE, EXPECTED, GCIDE, NOUN, TREE

from steps.shared import corpora
from steps.shared.gcide import fold, joined
from steps.shared.runtime import InputError


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
    return {name: text.removeprefix(f"{name}: ") for name, text in entries}


def test_gcide_keeps_definitions_and_nothing_else(gcide):
    entries = list(corpora.gcide_entries(gcide))
    assert all(entry.text.startswith(f"{entry.headword}: ") for entry in entries)
    found = _definitions(entries)
    assert found.pop("bad") == "A bad byte in it."
    # a sense of Bolus is damaged, Bolused is a mere reference, Copy a repetition
    assert found == EXPECTED


def test_gcide_leaves_out_known_texts(gcide):
    known = {corpora.normalised("any tree BEARING apples")}
    found = _definitions(corpora.gcide_entries(gcide, known=known))
    assert found["apple"] == EXPECTED["apple"].replace(TREE, "")
    assert found["bolic"] == EXPECTED["bolic"]


@pytest.mark.parametrize(
    ("definitions", "line"),
    [
        (["Having three lights", "A lamp."], "Having three lights. A lamp."),
        (["One of four, called", "counter."], "One of four, called counter."),
        (["Of the sea;"], "Of the sea."),
        (['It is "so"', "Is it?"], 'It is "so" Is it?'),
    ],
)
def test_senses_become_one_line_of_whole_sentences(definitions, line):
    assert joined(definitions) == line


def test_synsets_have_lemmas_gloss_and_category(wordnet):
    entity, living, rome, live, letters = corpora.synsets(wordnet)
    assert entity == ("n", "top", ("entity",), 'that which is; "an entity is"')
    assert living.lemmas == ("living thing", "cafe")
    assert (living.gloss, living.category) == ("a thing that lives (called 'alive')", "top")
    assert (rome.gloss, rome.category) == ("the capital of Italy", "location")
    assert live.category == letters.category == ""  # adjectives
    assert live.lemmas == ("live", "alive") and live.pos == letters.pos == "a"
    assert letters.lemmas == tuple("abcdefghijk")  # the count of words is hexadecimal


def test_wordnet_entries_come_once(wordnet):
    entries = list(corpora.wordnet_entries(wordnet))
    # the gloss of `live` is that of `entity`, but for its example
    assert [entry.headword for entry in entries] == ["entity", "living thing", "rome", "a"]
    assert entries[0].text == "entity: that which is"
    assert entries[2] == (
        "rome", "rome: the capital of Italy", "n", "the capital of Italy", "location",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gloss", "definition"),
    [
        ('harmful; of evil; "malefic stars"; "a curse"- Shaw', "harmful; of evil"),
        ('go under, "The raft sank"', "go under"),
        ('not movable; e.g. "frozen prices"', "not movable"),
        (
            '(said of a ball; "in play") in bounds; "a ball"',
            '(said of a ball; "in play") in bounds',
        ),
        ('progress (as in "make strides")', 'progress (as in "make strides")'),
        ("to eat ;", "to eat"),
    ],
)
def test_a_definition_has_no_examples(gloss, definition):
    assert corpora.definition(gloss) == definition


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


FRACTIONS = {"train": 0.94, "validation": 0.02, "test": 0.04}


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_a_headword_falls_in_one_split_however_it_is_written(word):
    split = corpora.split_of(word, FRACTIONS)
    assert split in FRACTIONS
    assert corpora.split_of(f" {word.casefold()}\n", FRACTIONS) == split


def test_the_splits_have_their_shares_and_never_move():
    words = [f"word {number}" for number in range(20_000)]
    splits = [corpora.split_of(word, FRACTIONS) for word in words]
    for name, share in FRACTIONS.items():
        # five standard deviations of a binomial share
        tolerance = 5 * (share * (1 - share) / len(words)) ** 0.5
        assert abs(splits.count(name) / len(words) - share) < tolerance
    # a changed hash or salt would move published test sets
    halves = {"train": 0.5, "test": 0.5}
    assert "".join(corpora.split_of(word, halves)[:2] for word in words[:8]) == "tetetrtrtetetrte"


@pytest.mark.parametrize("fractions", [{"a": 0.5, "b": 0.4}, {"a": 1.1, "b": -0.1}, {}])
def test_fractions_that_are_none_are_refused(fractions):
    with pytest.raises(InputError, match="sum 1"):
        corpora.split_of("word", fractions)


def test_no_definition_falls_in_two_splits(tmp_path):
    rng = random.Random(0)
    articles = [
        f"W{rng.randrange(50)} \\W\\, n.\n   A thing of kind {rng.randrange(60)} here.\n   [PJC]\n"
        for _ in range(300)
    ]
    path = tmp_path / "gcide.dict.dz"
    path.write_bytes(gzip.compress("\n".join(articles).encode()))
    texts = {"train": set(), "test": set()}
    for headword, text in corpora.gcide_entries(path):
        split = corpora.split_of(headword, {"train": 0.5, "test": 0.5})
        texts[split].add(text.partition(": ")[2])
    assert texts["train"] and texts["test"] and not texts["train"] & texts["test"]


def test_the_command_line_writes_the_same_lines_each_time(gcide, wordnet, tmp_path):
    data = [str(path) for path in wordnet]
    runs = []
    for name in ("one", "two"):
        out = tmp_path / f"{name}.jsonl"
        corpora.main(["gcide", "--input", str(gcide), "--exclude", *data, "--out", str(out)])
        runs.append(out.read_bytes())
    assert runs[0] == runs[1]
    assert [entry["headword"] for entry in corpora.read_corpus(out)] == [*EXPECTED, "bad"]
    corpora.main(["wordnet", "--input", *data, "--out", str(out)])
    first = json.loads(out.read_text().splitlines()[0])
    assert first == {
        "headword": "entity", "text": "entity: that which is", "pos": "n",
        "gloss": "that which is", "category": "top",
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


@pytest.mark.parametrize("line", ["3", '["headword", "text"]', '{"headword": "a"}', '{"head', ""])
def test_a_broken_line_of_a_corpus_is_named(line, tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text(f'{{"headword": "a", "text": "a: b"}}\n{line}\n')
    with pytest.raises(InputError, match="corpus.jsonl, line 2: not a corpus"):
        list(corpora.read_corpus(path))
