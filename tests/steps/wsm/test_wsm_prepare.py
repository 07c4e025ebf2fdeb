"""Prepared data: splits by headword, token files, the tokenizer, from small made-up corpora."""

import copy
import functools
import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from steps.shared.config_files import load
from steps.shared.corpora import split_of
from steps.shared.runtime import InputError, read_json, sha256_file
from steps.shared.text_config import Source
from steps.shared.texts import FRACTIONS, corpus_file, documents
from steps.wsm import prepare
from steps.wsm.plan import Files

CONFIG = load("mini")["papers"]["wsm"]["prepare"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word(number: int) -> str:
    """Return the name of entry `number`: four letters, all different."""
    return "".join(LETTERS[number // 26**place % 26] for place in range(4))


def entry(number: int, pos: str = "n", **changes) -> dict:
    name = word(number)
    gloss = f"the proper meaning of {name}"
    fields = {"headword": name, "text": f"{name}: {gloss}", "pos": pos, "gloss": gloss}
    return {**fields, "category": ["act", "food"][number % 4 > 1] if pos == "n" else "", **changes}


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
    config = {**CONFIG, "tokenizer": "bpe:300", "num_choice_items": 20, "num_questions": 40}
    config |= {name: CONFIG[name] | limits for name in ("general", "anneal")}
    prepare.main(
        ["--config", json.dumps(config), "--general", "general.jsonl", "--anneal", "lexicon.jsonl"]
        + ["--lexicon", "lexicon.jsonl", "--out", out]
    )
    return Path(out)


@functools.cache
def tokenizer_of(text: str) -> Tokenizer:
    return Tokenizer.from_str(text)


def decoded(tokens) -> str:
    tokenizer = tokenizer_of(Path("out/tokenizer.json").read_text())
    return tokenizer.decode(np.asarray(tokens).tolist())


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
    found = list(documents("wsm", source, Path("lexicon.jsonl")))
    expected = [(split_of(word(n), FRACTIONS), entry(n)["text"]) for n in range(1500)]
    assert sorted(found) == sorted(expected)
    assert found != expected  # shuffled


def test_a_packaged_corpus_is_one_file_and_a_hub_corpus_none():
    packaged, hub = (Source(**{**CONFIG["anneal"], "kind": kind}) for kind in ("asset", "hub"))
    assert corpus_file(packaged, [Path("a.jsonl")], "--anneal") == Path("a.jsonl")
    assert corpus_file(hub, [], "--anneal") is None
    for source, paths in ((packaged, []), (hub, [Path("a.jsonl")])):
        with pytest.raises(InputError, match=f"--anneal: {len(paths)} files"):
            corpus_file(source, paths, "--anneal")


def test_the_workflow_hands_over_the_corpora_that_are_named():
    config = copy.deepcopy(load("mini"))
    assert Files(config).corpora("general") == ["assets/corpora/gcide.jsonl"]
    config["papers"]["wsm"]["prepare"]["general"]["name"] = "wordnet"
    assert Files(config).corpora("general") == ["assets/corpora/wordnet.jsonl"]
    assert Files(load("paper")).corpora("general") == []


# files
# -----
def test_the_same_corpora_give_the_same_bytes(work):
    one, two = run("one"), run("two")
    names = sorted(path.name for path in one.iterdir())
    assert len(names) == 11
    assert [(one / name).read_bytes() for name in names] == [
        (two / name).read_bytes() for name in names
    ]


def test_the_manifest_describes_the_token_files(work):
    manifest = read_json(run("out") / "manifest.json")
    assert (manifest["vocabulary"], manifest["tokenizer"]) == (300, "bpe:300")
    assert manifest["tasks"] == {"choices": 20, "questions_train": 32, "questions_test": 8}
    for corpus in ("general", "anneal"):
        for split in FRACTIONS:
            path = Path("out") / f"{corpus}_{split}.npy"
            tokens, facts = np.load(path), manifest[corpus][split]
            most = {"train": 20000, "validation": 1000, "test": 500}[split]
            assert facts["tokens"] == len(tokens) <= most
            text = decoded(tokens)
            assert (facts["bytes"], facts["documents"]) == (len(text), text.count("\n"))
            assert facts["sha256"] == sha256_file(path)


def test_a_corpus_too_small_for_its_splits_is_refused(work):
    Path("general.jsonl").write_text(json.dumps({"headword": "a", "text": "a: b"}) + "\n")
    with pytest.raises(InputError, match="corpus gcide: no document of its"):
        run("out")
