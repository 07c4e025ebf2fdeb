"""The task `language` on a few made-up words: the model, its files, interruption, its measures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from job_helpers import contents
from phase_runs import merged

from steps.quest import blocks, evaluate, language_model, prepare, train
from steps.quest.language_train import loss, measure, token_file
from steps.quest.model_config import BlockShape
from steps.quest.plan import Files
from steps.quest.row_names import ROWS
from steps.shared.fit import Fit
from steps.shared.runtime import InputError, read_csv, read_json
from steps.shared.token_files import sequential_batches

SHAPE = {"width": 8, "layers": 2, "heads": 2, "mlp_ratio": 2}
DATA = {
    **{"kind": "asset", "name": "gcide", "subset": "", "train_tokens": 4000, "test_tokens": 400},
    "tokenizer": "bpe:270",
}
LANGUAGE = {
    **{"shape": SHAPE, "context": 8, "steps": 4, "warmup_share": 0.25},
    **{"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "clip_norm": 1.0},
    **{"batch_size": 4, "micro_batch": 4, "precision": "no"},
    **{"log_every": 2, "checkpoint_every": 2},
}
WORDS = ["cat", "dog", "sees", "hears", "a", "bird", "and"]


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with the token files of 600 made-up entries."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with open("corpus.jsonl", "w") as file:
        for number in range(600):
            text = " ".join(rng.choice(WORDS, 8))
            file.write(json.dumps({"headword": f"w{number}", "text": text}) + "\n")
    prepared("prepare")
    return tmp_path


def prepared(out: str, *assets: str) -> None:
    flags = ["--task", "language", "--config", json.dumps({"language": DATA}), "--out", out]
    prepare.main([*flags, "--assets", *(assets or ["corpus.jsonl"])])


def trained(out: str, *rows: str, **change) -> Path:
    config = json.dumps({"language": {**LANGUAGE, **change}})
    flags = ["--task", "language", "--config", config, "--data", "prepare/language.json"]
    train.main([*flags, "--rows", *rows, "--out", out])
    return Path(out)


def small_model(row: str, *, seed: int = 0) -> language_model.LanguageModel:
    shape = BlockShape.model_validate(SHAPE)
    return language_model.build(row, shape, seed=seed, vocabulary=20, context=8)


# the model
# ---------
@pytest.mark.parametrize("row", ROWS)
def test_no_token_sees_those_after_it_and_both_forms_agree(row):
    model = small_model(row)
    ids = torch.arange(16).view(2, 8) % 20
    changed = ids.clone()
    changed[:, 5:] = 7
    with torch.no_grad():
        found, other = model(ids), model(changed)
        explicit, logits = model(ids, explicit=True)
    torch.testing.assert_close(found[:, :5], other[:, :5])
    assert not torch.allclose(found[:, 5:], other[:, 5:])
    torch.testing.assert_close(explicit, found, rtol=1e-4, atol=1e-5)
    assert logits.shape == (2, 2, 2, 8, 8)
    assert (logits.isneginf() == torch.ones(8, 8).triu(1).bool()).all()


def test_rows_of_a_seed_start_from_the_same_matrices():
    one, two, other = small_model("standard"), small_model("quest"), small_model("quest", seed=1)
    assert torch.equal(one.head.weight, two.head.weight)
    assert not torch.equal(one.head.weight, other.head.weight)


def test_a_sequence_beyond_the_context_is_refused():
    with pytest.raises(InputError, match="9 tokens: the model takes at most 8"):
        small_model("quest")(torch.zeros(1, 9, dtype=torch.int64))


def test_the_loss_of_a_uniform_model_is_that_of_guessing():
    model = small_model("quest")
    torch.nn.init.zeros_(model.head.weight)
    windows = sequential_batches(np.arange(100, dtype=np.uint16) % 20, batch=3, context=8)
    found = measure(model, windows)
    assert found["loss"] == pytest.approx(math.log(20), rel=1e-6)
    assert float(loss(model, windows[0]).detach()) == pytest.approx(math.log(20), rel=1e-6)
    largest = max(
        model(ids, explicit=True)[1].nan_to_num(neginf=0).abs().max().item() for ids, _ in windows
    )
    assert found["max_logit"] == pytest.approx(largest)


# the phases
# ----------
def test_preparing_twice_leaves_the_same_bytes_and_only_its_corpus_will_do(work):
    prepared("again")
    assert contents(work / "again") == contents(work / "prepare")
    note = read_json("prepare/language.json")
    assert note["vocabulary"] == 270
    tokens = {
        split: len(np.load(token_file(Path("prepare/language.json"), split)))
        for split in note["splits"]
    }
    assert tokens == {split: facts["tokens"] for split, facts in note["splits"].items()}
    with pytest.raises(InputError, match="--assets: 2 files"):
        prepared("again", "corpus.jsonl", "corpus.jsonl")


def test_a_job_leaves_the_files_that_the_workflow_declares(work):
    rows = {"standard": {"tasks": ["language"]}, "quest": {"tasks": ["language"]}}
    block = {"rows": [*rows], "train": {"common": {"language": LANGUAGE}, "rows": rows}}
    files = Files({"scale": "mini", "papers": {"quest": {**block, "prepare": {"language": DATA}}}})
    folder = trained("out", *rows)
    names = [name.format(scale="mini", seed=0) for name in files.trained("language")]
    names = [name.removeprefix("results/mini/quest/train/language/") for name in names]
    assert sorted(contents(folder)) == sorted(names)
    made = [name.format(scale="mini") for name in files.prepared("language")]
    assert sorted(contents(work / "prepare")) == sorted(Path(name).name for name in made)


def test_a_job_cut_in_its_second_row_ends_with_the_same_bytes(work, monkeypatch):
    whole = contents(trained("whole", "standard", "quest"))
    step, done = Fit._step, []

    def cut(self, update):
        done.append(update)
        if len(done) == 7:
            raise KeyboardInterrupt
        return step(self, update)

    monkeypatch.setattr(Fit, "_step", cut)
    with pytest.raises(KeyboardInterrupt):
        trained("cut", "standard", "quest")
    assert contents(trained("cut", "standard", "quest")) == whole
    # 4 of one row and 3 of the next, its third failing; then what its last checkpoint lacked
    assert done == [1, 2, 3, 4, 1, 2, 3, 3, 4]


def test_bits_per_byte_are_those_of_the_test_tokens(work):
    trained("out", "standard", "quest")
    selection = merged("out", "standard", "quest")
    config = json.dumps({"language": {"batch_size": 5}})
    flags = ["--task", "language", "--config", config, "--data", "prepare/language.json"]
    evaluate.main([*flags, "--selection", str(selection), "--out", "evaluate"])
    runs = read_csv("evaluate/language_seed0.csv")
    assert [(run["row"], run["metric"]) for run in runs] == [
        (row, metric) for row in ("quest", "standard") for metric in ("bits_per_byte", "max_logit")
    ]
    tokens = np.load("prepare/language_test.npy").astype(np.int64)
    count = (len(tokens) - 1) // 8 * 8
    model = language_model.load(Path("out/quest/seed0/model.safetensors"))
    with torch.no_grad():
        scores = model(torch.from_numpy(tokens[:count]).view(-1, 8)).log_softmax(-1)
    targets = torch.from_numpy(tokens[1 : count + 1]).view(-1, 8)
    nats = -scores.gather(2, targets[..., None]).mean().item()
    facts = read_json("prepare/language.json")["splits"]["test"]
    expected = nats / math.log(2) / (facts["bytes"] / facts["tokens"])
    assert float(runs[0]["value"]) == pytest.approx(expected, rel=1e-5)


def test_a_file_that_is_no_language_model_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    blocks.save(path, small_model("quest"))
    assert language_model.load(path).settings["row"] == "quest"
    path.write_bytes(b"none")
    with pytest.raises(InputError, match="not a language model as train writes it"):
        language_model.load(path)
