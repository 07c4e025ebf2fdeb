"""Histories: by row and seed, and the curve of a column that is blank on some lines."""

from pathlib import Path

import pytest

from steps.shared.histories import curve, histories
from steps.shared.runtime import InputError


def write(folder: Path, row: str, seed: int, *lines: str) -> None:
    path = folder / row / f"seed{seed}" / "history.csv"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(["step,loss,reward", *lines, ""]))


@pytest.fixture
def trained(tmp_path):
    write(tmp_path, "a", 0, "10,3.0,", "20,2.0,0.5")
    write(tmp_path, "a", 1, "10,5.0,", "20,4.0,0.7")
    return tmp_path


def test_histories_are_by_row_in_the_order_of_the_seeds(trained):
    write(trained, "b", 0, "10,1.0,")
    write(trained, "b", 1, "10,6.0,")
    found = histories(trained, ["b", "a"], [1, 0], "loss")
    assert list(found) == ["b", "a"]
    assert [[line["loss"] for line in own] for own in found["a"]] == [
        ["5.0", "4.0"],
        ["3.0", "2.0"],
    ]
    assert [len(own) for own in found["b"]] == [1, 1]


def test_a_curve_leaves_out_the_lines_without_a_number(trained):
    own = histories(trained, ["a"], [0, 1])["a"]
    assert curve(own, "loss") == ([10, 20], [[3.0, 2.0], [5.0, 4.0]])
    assert curve(own, "reward") == ([20], [[0.5], [0.7]])


def test_a_missing_column_is_named(trained):
    with pytest.raises(InputError, match="kl"):
        histories(trained, ["a"], [0], "kl")
