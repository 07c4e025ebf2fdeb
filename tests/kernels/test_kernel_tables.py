"""The committed kernel tables: made from these sources, for every target, without spills."""

import csv

import pytest

from kernels.compile_table import KERNELS, TARGETS, main, source_digest

OPS = sorted(file.parent.name for file in KERNELS.glob("*/variants.py"))
# bytes of shared memory that one program may have
SHARED_BYTES = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10, "gfx942": 64 << 10}


@pytest.mark.parametrize("op", OPS)
def test_a_table_is_of_these_sources_and_shows_no_spills(op):
    with (KERNELS / op / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["sources"] for row in rows} == {source_digest(op)}, "run make kernel-table"
    assert {row["target"] for row in rows} == set(TARGETS)
    for row in rows:
        assert int(row["spills"]) == 0, row
        assert int(row["shared_bytes"]) <= SHARED_BYTES[row["target"]], row


def test_an_operator_without_variants_is_refused():
    with pytest.raises(SystemExit, match="kernels/nothing/variants.py does not exist"):
        main(["nothing"])
