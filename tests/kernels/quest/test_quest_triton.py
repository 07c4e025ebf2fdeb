"""The Triton kernels: interpreted against the reference, compiled ahead of time, and their table.

On a device they are checked by `python -m kernels.device_check`.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from quest_cases import CASES, assert_close, truth

from kernels.compile_table import TARGETS, compile_variant, resources, source_digest, variants

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# bytes of shared memory that one program may have
SHARED_BYTES = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10, "gfx942": 64 << 10}


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
    assert used.shared_bytes <= SHARED_BYTES["sm_90"]


def test_the_kernel_table_is_of_these_sources_and_shows_no_spills():
    with (ROOT / "kernels/quest/table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["sources"] for row in rows} == {source_digest("quest")}, "run make kernel-table"
    assert {row["target"] for row in rows} == set(TARGETS)
    for row in rows:
        assert int(row["spills"]) == 0, row
        assert int(row["matrix_instructions"]) > 0 or row["dtype"] == "fp32", row
        assert int(row["shared_bytes"]) <= SHARED_BYTES[row["target"]], row
