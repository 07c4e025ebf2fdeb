"""A file that is not what a step reads is refused in one line that names it."""

import gzip
import io
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from steps.shared.errors import InputError, reading, remedy
from steps.shared.histories import read_history
from steps.shared.job_state import training_state
from steps.shared.ledger import read_ledger
from steps.shared.pretrained import load_pretrained
from steps.shared.runtime import read_csv, read_json

ITEM = {"headword": 1, "text": 2}
RUN = "table,dataset,split,row,metric,seed,x,value\n"


def npy(values) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def call(place: str, *args):
    """Return a function of one path: `module:name`, with further arguments."""
    module, _, name = place.partition(":")

    def reader(path):
        found = import_module(f"steps.{module}")
        for part in name.split("."):
            found = getattr(found, part)
        return found(path, *args)

    return reader


def tokens(path):
    return call("shared.token_files:open_tokens", 4, 300)(path)


def model(path):
    return call("wsm.model:load")(path.parent)


def images(path):
    return import_module("steps.quest.images_data").open_images(path, workers=0)


def synsets(path):
    return list(import_module("steps.shared.corpora").synsets([path]))


def corpus(path):
    from steps.shared.text_config import Source

    source = Source.model_construct(kind="asset", name="gcide")
    return list(import_module("steps.shared.texts").documents("quest", source, path))


CASES = [
    (read_json, "a.json", None, "No such file"),
    (read_json, "a.json", b"{", "not a readable JSON file"),
    (lambda path: read_json(path, "a"), "a.json", b"[1]", "must be a JSON object, is a list"),
    (lambda path: read_json(path, "a", "b"), "a.json", b'{"a": 1}', "lacks b"),
    (lambda path: read_csv(path, "b", "c"), "a.csv", b"a,b\n1,2\n", "lacks the column c"),
    (read_csv, "a.csv", b"a,b\n1,2\n1,2.5", "cut short"),
    (read_history, "a.csv", b"step,loss\n", "no line below its header"),
    (read_history, "a.csv", b"step,loss\n1,\n2,x\n", "record 2: loss = 'x': must be a number"),
    (read_history, "a.csv", b"step,loss\n,1\n", "record 1: step = '': must be a number"),
    (
        lambda path: read_history(path, "norm"),
        "a.csv",
        b"step,loss\n1,2\n",
        "lacks the column norm",
    ),
    (call("shared.reports:_read"), "a.csv", (RUN + "t,d,s,r,m,0,,x\n").encode(), "value = 'x'"),
    (call("shared.reports:_read", "item"), "a.csv", RUN.encode(), "lacks the column item"),
    (lambda path: read_ledger([path]), "claims.json", b"[1]", "not the claims of a paper"),
    (lambda path: read_ledger([path]), "claims.json", b'[{"verdict": "holds"}]', "lacks id"),
    (call("shared.claim_spec:load_claims"), "claims.yaml", b"\xff", "not readable"),
    (tokens, "a.npy", b"", "not a token file"),
    (tokens, "a.npy", npy(np.zeros(9)), "needs unsigned integers"),
    (tokens, "a.npy", npy(np.full(9, 300, "u2")), "token 300: must be below 300"),
    (synsets, "data.noun", b"", "empty or cut short"),
    (synsets, "data.noun", b"\xff", "not WordNet data"),
    (corpus, "a.jsonl", b"", "holds no entry"),
    (corpus, "a.jsonl", json.dumps(ITEM).encode(), "needs a headword and a text"),
    (call("shared.digits:read_digits"), "a.gz", gzip.compress(b""), "not a gzipped table"),
    (call("shared.digits:read_digits"), "a.gz", b"", "not a gzipped table"),
    (call("n2l.emoji_data:read_names"), "emoji.json", b"[{}]", "lacks 'category'"),
    (call("n2l.emoji_data:sheet"), "a.png", b"\x89PNG", "not an image"),
    (call("n2l.efficientnet:load"), "a.pth", b"", "not the weights of EfficientNet-Lite0"),
    (call("cellduality.questions:read"), "questions.json", b'{"labelled": []}', "lacks unlabelled"),
    (call("cellduality.vocabulary:Vocabulary.read"), "vocabulary.json", b"[]", "not a vocabulary"),
    (images, "images.json", b"1", "must be a JSON object, is a int"),
    (call("wsm.bench:read_items"), "choices.json", b"[]", "needs items of prompt"),
    (call("wsm.bench:read_items"), "choices.json", b"[1]", "not items of a task"),
    (model, "config.json", b"{}", "lacks model_type"),
]


@pytest.mark.parametrize(("reader", "name", "content", "said"), CASES)
def test_it_is_named_with_what_is_wrong(tmp_path, reader, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        reader(tmp_path / name)
    text = str(refused.value)
    assert f"{tmp_path}/{name}" in text and said in text and "\n" not in text


def test_what_to_do_depends_on_who_made_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("results", "assets", "cache"):
        Path(folder).mkdir()
    assert remedy("results/a") == "; snakemake makes it"
    for name in ("results/a", "cache/a", "mine"):
        Path(name).write_text("")
    Path("assets/a").symlink_to(Path("cache/a").resolve())
    assert remedy("results/a") == "; remove results/a and run snakemake again"
    assert remedy("assets/a") == f"; remove {tmp_path}/cache/a and run snakemake again"
    assert remedy("assets") == f"; remove {tmp_path}/cache and run snakemake again"
    assert remedy("mine") == ""
    said = "results/a: not text \\(of two lines\\); remove"
    with pytest.raises(InputError, match=said), reading("results/a", "text"):
        raise RuntimeError("of\n two lines")


class Halved:
    """A kind of model whose folder holds a part of its weights, which transformers accepts."""

    @staticmethod
    def from_pretrained(folder, **options):
        return "model", {"missing_keys": {"b", "a"} if options["half"] else set()}


def test_a_model_without_some_of_its_weights_is_refused():
    assert load_pretrained(Halved, Path("m"), "a model", half=False) == "model"
    with pytest.raises(InputError, match="m: not a model .lacks 2 tensors, such as a."):
        load_pretrained(Halved, Path("m"), "a model", half=True)


def test_bad_input_of_a_training_job_leaves_no_state_folder(tmp_path):
    key = {"paper": "p", "row": "r", "seed": 0}
    with pytest.raises(InputError), training_state(tmp_path, key):
        raise InputError("bad")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError), training_state(tmp_path, key) as state:
        (state / "checkpoint").touch()
        raise InputError("bad")
    assert (state / "checkpoint").exists()  # what can be resumed stays
