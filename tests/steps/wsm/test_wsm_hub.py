"""The paper's scale in miniature: a hub data set, a hub tokenizer and a Llama, all in folders."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import wsm_runs

from steps.shared.checkpoints import merge_checkpoints
from steps.shared.runtime import InputError, read_json
from steps.shared.text_config import Source
from steps.shared.texts import documents
from steps.shared.tokenizer import encode, make_tokenizer
from steps.wsm import model as models
from steps.wsm import prepare, train
from steps.wsm.config import Trunk
from steps.wsm.measure import choose

WORDS = ["the", "cat", "dog", "sees", "hears", "a", "bird", "and", ":", ".", "?", "Q", "A"]
TRUNK = {
    **wsm_runs.TRUNK,
    "model": "llama",
    "micro_batch": 2,
    "warmup_steps": 1,
    "stable_steps": 2,
    "log_every": 1,
    "checkpoint_every": 1,
}
BRANCH = {**wsm_runs.BRANCH, **TRUNK, "anneal_steps": 2, "save_every": 1}
SOURCE = {"kind": "hub", "name": "corpus", "subset": "", "train_tokens": 3000, "test_tokens": 100}


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with a data set, a tokenizer and a lexicon."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(500)]
    Path("corpus").mkdir()
    lines = (json.dumps({"text": text, "url": "x"}) + "\n" for text in texts)
    Path("corpus/train.jsonl").write_text("".join(lines))
    core = Tokenizer(
        models.WordLevel({"?unk": 0, **{w: i + 1 for i, w in enumerate(WORDS)}}, "?unk")
    )
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=core, unk_token="?unk").save_pretrained("tokenizer")
    with open("lexicon.jsonl", "w") as file:
        for n in range(600):
            gloss = "the cat sees a dog and " + " ".join(rng.choice(WORDS[:7], 3))
            fields = {"headword": f"w{n}", "text": f"w{n} : a", "pos": "n", "gloss": gloss}
            file.write(json.dumps({**fields, "category": ["act", "food"][n % 2]}) + "\n")
    return tmp_path


def prepared() -> Path:
    config = {"general": SOURCE, "anneal": SOURCE, "tokenizer": "tokenizer"}
    config |= {"num_choice_items": 5, "num_questions": 10}
    flags = ["--lexicon", "lexicon.jsonl", "--out", "prepared"]
    prepare.main(["--config", json.dumps(config), *flags])
    return Path("prepared")


def trained(out: str, config: dict, *flags: str) -> Path:
    train.main(
        ["--config", json.dumps(config), "--tokens", "prepared/general_train.npy", "--out", out]
        + ["--validation", "prepared/general_validation.npy", *flags]
        + ["--data", "prepared/manifest.json"]
    )
    return Path(out)


def texts_of(name: str) -> list[tuple[str, str]]:
    return list(documents("wsm", Source(**{**SOURCE, "name": name}), None))


def test_a_hub_data_set_is_read_from_its_folder(work):
    found = texts_of("corpus")
    lines = Path("corpus/train.jsonl").read_text().splitlines()
    assert [text for _, text in found] == [json.loads(line)["text"] for line in lines]
    # 500 documents, 4 % for the test: 20 expected, standard deviation 4
    assert 5 < sum(split == "test" for split, _ in found) < 40


def test_a_hub_tokenizer_is_read_from_its_folder(work):
    tokenizer = make_tokenizer("tokenizer", [])
    assert tokenizer.get_vocab_size() == len(WORDS) + 1
    (ids,) = encode(tokenizer, ["the cat sees a zebra ."])
    assert (ids.dtype, ids.tolist()) == (np.uint16, [1, 2, 4, 6, 0, 10])


def test_what_is_missing_or_wrong_is_said_in_one_line(work):
    Path("columns").mkdir()
    Path("columns/train.jsonl").write_text('{"content": "x"}\n')
    cases = [
        (
            lambda: list(documents("wsm", Source(**{**SOURCE, "name": "columns"}), None)),
            "column 'text'",
        ),
        (
            lambda: list(documents("wsm", Source(**{**SOURCE, "name": "no/where"}), None)),
            "cannot be read",
        ),
        (lambda: make_tokenizer("no/where", []), "tokenizer no/where: cannot be loaded"),
    ]
    for read, message in cases:
        with pytest.raises(InputError) as error:
            read()
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_prepare_counts_tokens_and_bytes_of_a_hub_corpus(work):
    manifest = read_json(prepared() / "manifest.json")
    assert manifest["vocabulary"] == len(WORDS) + 1
    for split, most in (("train", 3000), ("test", 100), ("validation", 1000)):
        facts = manifest["general"][split]
        tokens = np.load(f"prepared/general_{split}.npy")
        assert (tokens.dtype, len(tokens)) == (np.uint16, facts["tokens"])
        assert 0 < facts["tokens"] <= most
        # words of 1 to 5 characters, and what parts them
        assert 2 < facts["bytes"] / facts["tokens"] < 6
    assert max(np.load("prepared/general_train.npy")) <= len(WORDS)


def test_a_llama_is_trained_merged_and_measured(work):
    prepared()
    trunk = trained("trunk", TRUNK)
    flags = ["--row", "constant", "--trunk", str(trunk / "state.safetensors")]
    one, two = (trained(out, BRANCH, *flags) for out in ("one", "two"))
    folders = [one / "step0000003", one / "step0000004"]
    for folder in folders:
        other = two / folder.name / "model.safetensors"
        assert (folder / "model.safetensors").read_bytes() == other.read_bytes()
    merge_checkpoints(folders, [[0.25, 0.75]], ["merged"], accumulate="float64", threads=1)
    before, after, merged = (models.load(path) for path in (*folders, Path("merged")))
    assert models.context_of(merged) == TRUNK["context"]
    changed = 0
    for name, value in merged.state_dict().items():
        old, new = (model.state_dict()[name].double() for model in (before, after))
        torch.testing.assert_close(value.double(), 0.25 * old + 0.75 * new, rtol=1e-7, atol=1e-9)
        changed += not torch.equal(old, new)
    assert changed > 5
    hits = choose(merged, read_json(Path("prepared/choices.json")), batch=4, context=8)
    assert set(hits) <= {0, 1}


def test_a_llama_comes_back_as_it_was_saved(work):
    model = models.build(Trunk(**TRUNK), 14, seed=3)
    models.save(Path("saved"), model)
    ids = torch.arange(8)[None]
    with torch.no_grad():
        found, expected = models.logits(models.load(Path("saved")), ids), models.logits(model, ids)
    assert torch.equal(found, expected)
    # the stream of the seed decides it, whatever was drawn before
    torch.manual_seed(5)
    again = models.build(Trunk(**TRUNK), 14, seed=3)
    other = models.build(Trunk(**TRUNK), 14, seed=4)
    assert torch.equal(again.lm_head.weight, model.lm_head.weight)
    assert not torch.equal(other.lm_head.weight, model.lm_head.weight)
