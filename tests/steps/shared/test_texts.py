"""Documents of a hub data set, from a local folder in the hub's form."""

import json
from pathlib import Path

import pytest

from steps.shared.runtime import InputError
from steps.shared.text_config import Source
from steps.shared.texts import documents, training_texts

SOURCE = {"kind": "hub", "name": "corpus", "subset": "", "train_tokens": 3000, "test_tokens": 100}


def make_corpus(counts, column="text"):
    """Write a data set whose texts name their split and place."""
    Path("corpus").mkdir()
    for split, count in counts.items():
        lines = (json.dumps({column: f"{split} {index}"}) + "\n" for index in range(count))
        Path(f"corpus/{split}.jsonl").write_text("".join(lines))
    return Source(**SOURCE)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))


def test_the_splits_of_a_data_set_are_kept():
    """Rows beside each other may be of one article: a hash would put them on both sides."""
    source = make_corpus({"train": 40, "validation": 5, "test": 7})
    found = list(documents("quest", source, None))
    assert all(text.split()[0] == split for split, text in found)
    assert [split for split, _ in found] == ["validation"] * 5 + ["test"] * 7 + ["train"] * 40
    assert list(training_texts("quest", [(source, None)])) == [f"train {n}\n" for n in range(40)]


def test_a_data_set_of_one_split_is_split_by_a_hash():
    source = make_corpus({"train": 1000})
    found = list(documents("quest", source, None))
    counts = {name: sum(split == name for split, _ in found) for name in ("test", "validation")}
    # binomial: 40 and 20 of 1000 expected, with deviations of 6.2 and 4.4
    assert 15 < counts["test"] < 65
    assert 2 < counts["validation"] < 38
    assert found == list(documents("quest", source, None))


def test_a_data_set_without_text_is_refused():
    with pytest.raises(InputError, match="corpus corpus: has no column 'text'"):
        list(documents("quest", make_corpus({"train": 3}, column="body"), None))
