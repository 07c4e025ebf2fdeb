"""The scales of the paper and SmolLM2 on stand-ins: h5ad files, a pretrained model with pieces."""

import json
from pathlib import Path

import numpy as np
import pytest
from cellduality_runs import PREPARE, ROWS, evaluated, merged, trained
from job_helpers import contents
from safetensors.numpy import load_file

from steps.cellduality import prepare
from steps.cellduality.vocabulary import Vocabulary
from steps.shared import selection
from steps.shared.runtime import InputError, read_csv, read_json

GENES = [f"GENE{i}" for i in range(30)]


def file(path: str, seed: int, **columns) -> dict[str, str]:
    """Write cells of two kinds to an h5ad file; return how the configuration names it."""
    from anndata import AnnData

    rng = np.random.default_rng(seed)
    (count,) = {len(values) for values in columns.values()}
    expression = rng.exponential(size=(count, len(GENES))).astype(np.float32)
    expression[rng.random(expression.shape) < 0.3] = 0
    cells = AnnData(expression, obs={key: list(values) for key, values in columns.items()})
    # odd seeds are of mice, whose symbols are written otherwise
    common = [name.capitalize() if seed % 2 else name for name in GENES[:20]]
    cells.var_names = common + [f"{seed}-{name}" for name in GENES[20:]]
    cells.write_h5ad(path)
    return {"repo": ".", "file": path}


def hub() -> dict:
    """Write the four files that stand for the paper's, and return the configuration."""
    types = ["alpha cell", "beta"] * 30
    answers = ["sensitive", "resistant"] * 30
    targets = ["control"] * 20 + ["drug A", "drug B", "drug C"] * 20
    shares = {"length": 6, "validation_share": 0.1, "test_share": 0.2}
    return {
        "cells": {
            "known": file("known.h5ad", 0, kind=types),
            "ood": file("ood.h5ad", 1, kind=[*types, "unknown"]),
            **{"type_column": "kind", "num_genes": 12, **shares},
        },
        "drugs": {
            "known": file("drugs.h5ad", 2, drug=["Gefitinib"] * 60, answer=answers),
            "ood": file("other.h5ad", 3, drug=["Docetaxel", "Gefitinib"] * 30, answer=answers),
            **{"drug_column": "drug", "response_column": "answer", "num_genes": 12, **shares},
        },
        "perturbations": {
            "known": file("after.h5ad", 4, target=targets, line=["K562", "A549"] * 40),
            **{"operation": "drug", "target_column": "target", "control": "control"},
            **{"type_column": "line", "num_held_out": 1, "num_genes": 10, **shares},
        },
    }


def counted(path: str) -> dict[str, str]:
    """Write cells whose expression is counts; return how the configuration names the file."""
    from anndata import AnnData

    cells = AnnData(np.full((4, len(GENES)), 90.0), obs={"kind": ["beta"] * 4})
    cells.var_names = GENES
    cells.write_h5ad(path)
    return {"repo": ".", "file": path}


def tiny_model(folder: str) -> None:
    """Write a model with a byte-level tokenizer to a folder, as a hub's model lies there."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = trainers.BpeTrainer(special_tokens=["<|end|>"], initial_alphabet=alphabet)
    inner.train_from_iterator([" cell: type: =>", " GENE1 GENE2"], special)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer), **sizes, **heads, eos_token_id=0, bos_token_id=0)
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        config = json.dumps({**PREPARE, "hub": hub()})
        prepare.main(["--config", config, "--out", "prepare/seed0"])
        tiny_model("tiny")
        yield folder


def test_files_of_a_hub_become_questions(work):
    words = Vocabulary.read(Path("prepare/seed0/vocabulary.json"))
    assert words.types == ("alpha_cell", "beta") and words.drugs == ("Docetaxel", "Gefitinib")
    assert words.operations == ("drug",) and words.targets == ("drug_A", "drug_B", "drug_C")
    assert set(words.genes) <= set(GENES[:20])  # common to both files
    note = read_json("prepare/seed0/manifest.json")
    assert note["questions"]["ood"]["annotation"] == 16
    assert note["sources"]["perturbation"] == "measured: ."
    arrays = load_file("prepare/seed0/arrays.safetensors")
    held = arrays["perturbations/perturbation_N"][arrays["perturbations/split_N"] == 3]
    assert len(set(held.tolist())) == 1 and len(held) == 20


def test_a_pretrained_model_goes_through_all_phases(work):
    small = {"steps": 2, "checkpoint_every": 2}
    given = {"name": "tiny", "gguf": "", "dtype": "float32"}
    change = {"pretrained": given, "sft_lora": {"rank": 2, "alpha": 4.0}}
    rows = {name: {**row, **change} for name, row in ROWS.items()}
    for row in rows.values():
        row["sft"] = {**row["sft"], **small}
        row["grpo"] = {**row["grpo"], **small}
    trained("train", rows)
    assert "adapter_model.safetensors" in contents("train/sft/seed0")
    models = merged("train", "merge", rows)
    for row in ("sft", "cellduality"):
        start = selection.read(models)[rows[row]["start"]].folder
        one, two = (
            load_file(f"{path}/model.safetensors") for path in (start, f"merge/{row}/seed0")
        )
        assert set(one) == set(two)
    runs = read_csv(evaluated("train", models, "runs", rows) / "seed0.csv")
    assert {run["row"] for run in runs} >= set(rows)


def test_what_is_not_there_is_named_in_one_line(work, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    config = {**PREPARE, "hub": hub()}
    config["hub"]["cells"]["known"] = {"repo": "nobody/nothing", "file": "x.h5ad"}
    with pytest.raises(InputError, match="data set nobody/nothing, file x.h5ad: "):
        prepare.main(["--config", json.dumps(config), "--out", "none"])
    config["hub"]["cells"] = {**hub()["cells"], "known": counted("counts.h5ad")}
    with pytest.raises(InputError, match="up to 90, must be log-normalised"):
        prepare.main(["--config", json.dumps(config), "--out", "none"])
    config["hub"]["cells"] = {**hub()["cells"], "type_column": "absent"}
    with pytest.raises(InputError, match="not cells with absent"):
        prepare.main(["--config", json.dumps(config), "--out", "none"])
