"""QUEST's figures draw the rows and forms that there are."""

from pathlib import Path

import numpy as np
import pytest

from steps.quest import toy_figures
from steps.quest.images_figures import PANELS, robustness
from steps.quest.row_names import ROWS
from steps.shared.plots import style
from steps.shared.runtime import write_csv

LABELS = {row: row for row in ROWS}


@pytest.fixture(autouse=True)
def house_style():
    style()


def run(row: str, table: str, split: str, seed: int, value: float, x: str = "") -> dict:
    names = {"table": table, "dataset": "minimal", "split": split, "row": row, "x": x}
    return {**names, "metric": "accuracy", "seed": str(seed), "value": str(value)}


@pytest.mark.parametrize("rows", [("standard", "quest"), ("qnorm", "quest")])
def test_robustness_is_drawn_against_standard_attention_if_it_is_there(rows):
    values = dict(zip(rows, (60.0, 63.0), strict=True))
    runs = [
        run(row, table, split, seed, values[row], x)
        for table, split, x in (("images", "clean", ""), *((t, s, "1") for t, s, _ in PANELS))
        for row in rows
        for seed in range(2)
    ]
    figure = robustness(runs, LABELS)
    dots = [line for ax in figure.axes for line in ax.lines if line.get_marker() == "o"]
    expected = [3.0] if rows[0] == "standard" else [60.0, 63.0]
    assert sorted({float(y) for line in dots for y in line.get_ydata()}) == pytest.approx(expected)


@pytest.mark.parametrize("form", ["minimal", "full"])
def test_a_toy_of_one_form_is_drawn(form, tmp_path):
    line = {"step": 1, f"{form}/lr0.01/wd0/max_logit": 10.0, f"{form}/lr0.01/wd0.1/max_logit": 40.0}
    history = tmp_path / "quest" / "seed0" / "history.csv"
    write_csv(history, list(line), [line, {**line, "step": 2}])
    names = ("dataset", "split", "row", "sample", "token", "is_answer", "attention")
    maps = [
        dict(zip(names, (form, split, "quest", 0, token, int(not token), 0.5), strict=True))
        for split in ("robust", "biased")
        for token in range(2)
    ]
    write_csv(tmp_path / "toy_seed0_maps.csv", names, maps)
    runs = [
        run("quest", "toy_rate", split, 0, 50.0, "0.01") | {"dataset": form}
        for split in ("robust", "biased")
    ]
    figures = toy_figures.draw(runs, LABELS, trained=tmp_path, measured=Path(tmp_path))
    (ax,) = figures["toy_logits"].axes
    assert ax.get_title("left") == f"{toy_figures.FORMS[form]}, learning rate 0.01"
    assert np.allclose(ax.lines[0].get_ydata(), np.log10(20.0))  # the geometric mean of 10 and 40
    assert len(figures["toy_rates"].axes) == 2
