"""What of CellDuality's configuration does not fit together is named."""

import pytest
from cellduality_runs import EVALUATE, PREPARE, ROWS

from steps.cellduality.config import Evaluate, Merge, Prepare, Train, check
from steps.shared.config import Block


def problems(rows: dict, selected: list[str] | None = None) -> list[tuple]:
    whole = Block(
        seeds=[0],
        rows=selected or list(rows),
        prepare=Prepare.model_validate(PREPARE),
        train={name: Train.model_validate(row) for name, row in rows.items()},
        merge=Merge(),
        evaluate=Evaluate.model_validate(EVALUATE),
    )
    return [(key, rule) for key, _, rule in check(whole)]


def test_what_does_not_fit_together_is_named():
    assert problems(ROWS) == []
    grpo = {**ROWS["cellduality"]["grpo"], "batch_size": 6, "micro_batch": 6, "checkpoint_every": 3}
    changed = {
        "base": ROWS["base"],
        "sft": {**ROWS["sft"], "start": "nowhere"},
        "rl_gt": ROWS["rl_gt"],
        "cellduality": {**ROWS["cellduality"], "start": "base"},
    }
    found = problems(changed)
    assert ("train.rows.sft.start", "must be a row of stage base") in found
    assert ("train.rows.cellduality.start", "must be a row of stage sft") in found
    (one,) = problems({**ROWS, "cellduality": {**ROWS["cellduality"], "reasoning": False}})
    assert one == ("train.rows.cellduality.reasoning", "must be that of the row it starts from")
    found = problems({**ROWS, "cellduality": {**ROWS["cellduality"], "grpo": grpo}})
    assert {key for key, _ in found} == {"train.rows.cellduality.grpo.checkpoint_every"}


@pytest.mark.parametrize(
    ("stage", "key", "value", "rule"),
    [
        ("grpo", "steps", 3, "must be a multiple of updates_per_batch = 2"),
        ("grpo", "num_generations", 16, "must give a prompt of each of the 4 tasks"),
        ("grpo", "log_every", 3, "probe_every"),
        ("grpo", "log_every", 5, "must be at most the 4 updates"),
        ("sft", "log_every", 41, "must be at most the 40 updates"),
        ("sft", "micro_batch", 5, "must divide batch_size = 16"),
    ],
)
def test_a_stage_that_cannot_run_or_says_nothing_is_named(stage, key, value, rule):
    row = {**ROWS["sft"], stage: {**ROWS["sft"][stage], key: value}}
    if stage == "grpo":
        row = {**ROWS["cellduality"], "grpo": row["grpo"]}
    found = problems({**ROWS, "cellduality" if stage == "grpo" else "sft": row})
    assert any(rule in f"{place}: {text}" for place, text in found), found


def test_rows_that_are_missing_or_of_another_dual_are_named():
    without = {name: row for name, row in ROWS.items() if name != "rl_gt"}
    assert problems(without) == [("rows", "must name rl_gt, which figures and claims read")]
    other = {**ROWS, "cellduality": {**ROWS["cellduality"], "dual_target": "cell_type"}}
    place = "train.rows.cellduality.dual_target"
    assert problems(other) == [(place, "must be that of the other rows")]


def test_a_row_that_starts_from_one_that_is_not_trained_is_named():
    rows = {**ROWS, "other": ROWS["sft"], "cellduality": {**ROWS["cellduality"], "start": "other"}}
    assert problems(rows, list(ROWS)) == [("train.rows.cellduality.start", "must be among rows")]
    assert problems(rows) == []
