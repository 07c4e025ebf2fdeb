"""The merge phase on folders that training has not filled."""

import pytest

from steps.shared.runtime import InputError
from steps.wsm import merge

CONFIG = ["--config", "params.yaml:papers.wsm.merge"]


def test_rows_without_checkpoints_are_named(tmp_path):
    (tmp_path / "wsd_linear/seed0").mkdir(parents=True)
    flags = [*CONFIG, "--trained", str(tmp_path), "--out", str(tmp_path / "out"), "--rows"]
    with pytest.raises(InputError, match="must name constant"):
        merge.main([*flags, "wsd_linear"])
    with pytest.raises(InputError, match=r"constant/seed0: holds no checkpoint \(step\*\)"):
        merge.main([*flags, "constant"])
    assert not (tmp_path / "out").exists()
