"""What WSM's block may not say is found before any job starts, at the key that says it."""

import pytest
from job_helpers import changed

from steps.shared.config import validate
from steps.shared.config_files import load
from steps.shared.runtime import InputError

MEAN = {"source": "constant", "curve": "linear", "control": "none"}


@pytest.mark.parametrize("scale", ["mini", "smoke", "paper"])
def test_the_scales_are_valid(scale):
    assert validate(load(scale)) is None


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("train.common.heads", 3, "width = 64 must be a multiple of heads = 3"),
        ("train.common.warmup_steps", 9999, "warmup_steps = 9999 must be at most"),
        ("train.common.anneal_steps", 500, "must be a multiple of save_every"),
        ("train.rows.wsd_cosine.decay", "cosin", "cosin"),
        ("merge.rows.wsm_mean.curve", "liner", "liner"),
        ("merge.rows.wsm_mean.source", "wsd", "must be one of rows"),
        ("merge.durations", [128, 0], "greater than or equal to 1"),
        ("merge.durations", [128, 2], "must be a multiple of duration_count = 4"),
        ("merge.count", 7, "must divide window = 512"),
        ("merge.counts", [1, 3], "must divide window = 512"),
        ("merge.rows.constant", MEAN, "must not have the name of a trained row"),
        ("merge.rows.count_weighted", MEAN, "begin the sweeps' names"),
        ("merge.durations", [1024], "duration1024 needs the checkpoint of update"),
        ("merge.counts", [64], "count64 needs the checkpoint of update"),
        ("merge.sweep_curve", "ema", "ema"),
        ("train.rows.constant.keep", "last", "which keep and save_every do not give"),
        ("rows", ["wsd_linear", "wsd_cosine", "wsd_1_sqrt"], "must hold 'constant'"),
        ("evaluate.continuation.rows", ["wsm_mode"], "must name trained or merged rows"),
        ("prepare.tokenizer", "bpe:12", "from 257 to 65536"),
    ],
)
def test_what_does_not_fit_is_named(path, value, told):
    with pytest.raises(InputError) as error:
        validate(changed("wsm", path, value))
    lines = str(error.value).splitlines()
    assert any(told in line and line.startswith("params.yaml: papers.wsm.") for line in lines)
