"""Prepared data: splits by headword, the two tasks, token files, from small made-up corpora."""

import json
from pathlib import Path

import numpy as np
import pytest

from steps.shared.config import load
from steps.shared.corpora import split_of
from steps.shared.runtime import InputError, read_json, sha256_file
from steps.wsm import prepare
from steps.wsm.config import Source
from steps.wsm.texts import FRACTIONS, documents, gloss_items, question_items
from steps.wsm.tokenizer import Characters

CONFIG = load("mini")["papers"]["wsm"]["prepare"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word(number: int) -> str:
    """Return the name of entry `number`: four letters, all different."""
    return "".join(LETTERS[number // 26**place % 26] for place in range(4))


def entry(number: int, pos: str = "n", **changes) -> dict:
    name = word(number)
    gloss = f"the meaning of {name}"
    kinds = [f"kind {word(number % 40)}"]
    fields = {"headword": name, "text": f"{name}: {gloss}", "pos": pos, "gloss": gloss}
    return {**fields, "hypernyms": kinds, **changes}


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with two corpora of 1500 entries that share 500 headwords."""
    monkeypatch.chdir(tmp_path)
    lexicon = [entry(number, "nv"[number % 2]) for number in range(1500)]
    general = [
        {"headword": word(n).upper(), "text": f"{word(n)} is old"} for n in range(1000, 2500)
    ]
    for name, entries in (("lexicon", lexicon), ("general", general)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in entries))
    return tmp_path


def run(out: str, *, test_tokens: int = 500) -> Path:
    """Prepare the folder's corpora and return the outputs."""
    limits = {"train_tokens": 20000, "test_tokens": test_tokens}
    config = {**CONFIG, "num_choice_items": 20, "num_questions": 40}
    config |= {name: CONFIG[name] | limits for name in ("general", "anneal")}
    prepare.main(
        ["--config", json.dumps(config), "--general", "general.jsonl", "--anneal", "lexicon.jsonl"]
        + ["--lexicon", "lexicon.jsonl", "--out", out]
    )
    return Path(out)


def decoded(tokens) -> str:
    return Characters().decode(np.asarray(tokens))


def lines_of(folder: Path, name: str) -> set[str]:
    return set(decoded(np.load(folder / f"{name}.npy")).split("\n"))


# splits
# ------
def test_no_headword_is_in_two_splits_of_either_corpus(work):
    folder = run("out", test_tokens=20000)
    words = {
        split: {
            line[:4]
            for corpus in ("general", "anneal")
            for line in lines_of(folder, f"{corpus}_{split}")
            if len(line) >= 4
        }
        for split in FRACTIONS
    }
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not words[one] & words[other]
    # 2500 headwords, 4 % of them for the test: 100 expected, standard deviation 10
    assert 60 < len(words["test"]) < 140


def test_what_the_tasks_test_is_defined_in_no_training_text(work):
    folder = run("out")
    trained = lines_of(folder, "anneal_train") | lines_of(folder, "general_train")
    for item in read_json(folder / "choices.json"):
        assert not any(line.startswith(decoded(item["prompt"])[:4]) for line in trained)
    asked = {
        split: {decoded(item["prompt"]) for item in read_json(folder / f"questions_{split}.json")}
        for split in ("train", "test")
    }
    assert not asked["train"] & asked["test"]
    assert (len(asked["train"]), len(asked["test"])) == (32, 8)  # a fifth is held out


def test_documents_follow_the_split_of_their_headword(work):
    source = Source(**CONFIG["anneal"])
    found = list(documents(source, Path("lexicon.jsonl")))
    expected = [(split_of(word(n), FRACTIONS), entry(n)["text"]) for n in range(1500)]
    assert found == expected
    with pytest.raises(InputError, match="wordnet: an asset needs its file"):
        list(documents(source, None))


# tasks
# -----
def test_gloss_items_have_four_different_options_and_the_right_answer():
    entries = [entry(number, "nv"[number % 2]) for number in range(400)]
    items = gloss_items(entries, 200)
    parts = {one["gloss"]: one["pos"] for one in entries}
    assert len({item["prompt"] for item in items}) == 200
    for item in items:
        options = [option.rstrip("\n") for option in item["options"]]
        assert len(set(options)) == 4
        assert options[item["answer"]] == f"the meaning of {item['prompt'][:4]}"
        assert len({parts[option] for option in options}) == 1
    # 200 answers over 4 positions: 50 expected, standard deviation 6
    counts = np.bincount([item["answer"] for item in items], minlength=4)
    assert counts.min() > 25


def test_question_items_ask_for_the_hypernym():
    entries = [entry(number) for number in range(400)]
    entries += [entry(number, "v") for number in range(400, 500)]
    entries += [entry(number, hypernyms=[]) for number in range(500, 600)]
    items = question_items(entries, 400, "test-questions")
    kinds = {one["headword"]: one["hypernyms"] for one in entries}
    for item in items:
        name = item["prompt"].removeprefix("Q: what is ").removesuffix("?\nA: ")
        assert len(set(item["options"])) == 4
        assert item["options"][item["answer"]] == f"a kind of {kinds[name][0]}.\n"
    assert np.bincount([item["answer"] for item in items], minlength=4).min() > 60


def test_no_wrong_option_is_right_for_another_sense():
    # one word with eight senses among four others: any draw could hit a true one
    senses = [entry(0, gloss=f"sense {n}", hypernyms=[f"sense {n}", "more"]) for n in range(8)]
    more = [entry(n, hypernyms=["more", f"kind {n}"][n % 2 :]) for n in range(1, 9)]
    true = {f"sense {n}" for n in range(8)}
    for item in gloss_items(senses + more, 16):
        if item["prompt"].startswith(word(0)):
            assert len({option.strip() for option in item["options"]} & true) == 1
    for item in question_items(senses + more, 16, "test-questions"):
        if f" {word(0)}?" in item["prompt"]:
            right = true | {"more"}
            assert sum(o[len("a kind of ") : -2] in right for o in item["options"]) == 1


def test_too_few_items_or_options_are_refused_in_one_line():
    entries = [entry(number) for number in range(30)]
    with pytest.raises(InputError, match="gloss_items: 31 items asked for, the corpus gives 30"):
        gloss_items(entries, 31)
    with pytest.raises(InputError, match="test-questions: 31 items asked for"):
        question_items(entries, 31, "test-questions")
    alike = [entry(number, gloss="same", hypernyms=["thing"]) for number in range(30)]
    for make in (gloss_items, lambda entries, n: question_items(entries, n, "x")):
        with pytest.raises(InputError, match="too few for items of 4 different options"):
            make(alike, 3)


# files
# -----
def test_the_same_corpora_give_the_same_bytes(work):
    one, two = run("one"), run("two")
    names = sorted(path.name for path in one.iterdir())
    assert len(names) == 10
    assert [(one / name).read_bytes() for name in names] == [
        (two / name).read_bytes() for name in names
    ]


def test_the_manifest_describes_the_token_files(work):
    manifest = read_json(run("out") / "manifest.json")
    assert (manifest["vocabulary"], manifest["tokenizer"]) == (96, "characters")
    assert manifest["tasks"] == {"choices": 20, "questions_train": 32, "questions_test": 8}
    for corpus in ("general", "anneal"):
        for split in FRACTIONS:
            path = Path("out") / f"{corpus}_{split}.npy"
            tokens, facts = np.load(path), manifest[corpus][split]
            most = {"train": 20000, "validation": 1000, "test": 500}[split]
            assert facts["tokens"] == len(tokens) <= most
            assert facts["bytes"] == len(tokens)  # one byte a character
            assert facts["sha256"] == sha256_file(path)


def test_the_texts_are_shuffled(work):
    tokens = np.load(run("out") / "anneal_train.npy")
    first = decoded(tokens[:400]).split("\n")[:-1]
    assert all(entry(0)["text"][6:-4] in line for line in first)
    assert first != sorted(first, key=lambda line: line[3::-1])


def test_a_corpus_too_small_for_its_splits_is_refused(work):
    Path("general.jsonl").write_text(json.dumps({"headword": "a", "text": "a: b"}) + "\n")
    with pytest.raises(InputError, match="corpus gcide: too small, no document"):
        run("out")
