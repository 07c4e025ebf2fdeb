"""The device script where there is no device, and its comparisons on the CPU's path."""

import pytest
import torch

from kernels import device_check
from kernels.quest import device


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the script itself would run")
def test_without_a_gpu_it_says_so_and_succeeds(capsys):
    device_check.main([])
    assert "no GPU here" in capsys.readouterr().out


def test_an_unknown_operator_is_refused():
    with pytest.raises(SystemExit):
        device_check.main(["nothing"])


def test_what_it_compares_is_compared(tmp_path):
    size = (1, 2, 1, 9, 7, 16)
    rows = list(device.compare(size, torch.float16, True, "full", backend="torch", device="cpu"))
    assert [row["tensor"] for row in rows] == ["o", "dq", "dk", "dv"]
    assert device_check.run(rows, tmp_path / "rows.csv") == []
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 5
    wrong = [{**rows[0], "error": error} for error in (1.0, float("nan"))]
    assert device_check.run(wrong, None) == wrong
