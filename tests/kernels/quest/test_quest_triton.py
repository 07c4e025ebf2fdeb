"""The Triton kernels: interpreted against the reference, and compiled ahead of time.

On a device they are checked by `python -m kernels.device_check`.
"""

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from quest_cases import CASES, assert_close, inputs, truth

from kernels.compile_table import compile_variant, resources, variants

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    out = tmp_path_factory.mktemp("quest") / "results.pt"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore::RuntimeWarning", HERE / "interpret.py", out]
    subprocess.run(command, env=environment, check=True)
    return torch.load(out)


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_give_the_output_and_every_gradient_of_the_reference(interpreted, name):
    assert_close(interpreted["results"][name], truth(CASES[name]))


def test_the_forward_pass_keeps_the_logarithm_of_each_rows_sum(interpreted):
    """In base 2, over the keys that the query may see; +inf where there are none."""
    q, k, mask = (inputs(CASES["full-mask"])[name] for name in ("q", "k", "mask"))
    logits = (q @ F.normalize(k, dim=-1).mT).masked_fill(~mask, -torch.inf)
    expected = logits.logsumexp(dim=-1) / math.log(2)
    assert expected.isneginf().any()
    expected = expected.masked_fill(expected.isneginf(), torch.inf)
    torch.testing.assert_close(interpreted["results"]["full-mask"]["lse"], expected)


def test_the_same_call_gives_the_same_bits(interpreted):
    first = interpreted["results"]["causal-gqa"]
    assert all(torch.equal(first[name], x) for name, x in interpreted["again"].items())


def test_autograd_runs_the_kernels_with_their_own_blocks(interpreted):
    assert_close(interpreted["whole"], truth(CASES["causal-gqa"]))


def test_the_package_imports_neither_triton_nor_transformers(interpreted):
    assert interpreted["lazy"]


@pytest.mark.parametrize("index", range(3), ids=["forward", "queries", "keys"])
def test_a_representative_compiles_for_hopper_without_spills(index, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compiled = compile_variant(variants("quest", "sm_90")[index], "sm_90")
    used = resources(compiled, "sm_90")
    assert used.spills == 0 and used.matrix_instructions > 0


def test_the_table_shows_that_half_types_use_the_matrix_units():
    with (ROOT / "kernels/quest/table.csv").open(encoding="utf-8") as file:
        halves = [row for row in csv.DictReader(file) if row["dtype"] != "fp32"]
    assert halves and all(int(row["matrix_instructions"]) > 0 for row in halves)
