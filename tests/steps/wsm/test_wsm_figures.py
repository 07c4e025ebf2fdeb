"""WSM's figures draw the rows that there are."""

import pytest

from steps.wsm.figures import SHOWN, by_row, sweeps


def run(row: str, table: str, dataset: str, metric: str, seed: int, x: str = "") -> dict:
    names = {"table": table, "dataset": dataset, "split": "test", "row": row, "metric": metric}
    return {**names, "seed": str(seed), "x": x, "value": str(2.0 + 0.1 * seed)}


def test_the_main_table_has_a_dot_for_each_row_that_was_run():
    runs = [
        run(row, "main", dataset, metric, seed)
        for row in ("constant", "wsm_mean")
        for dataset, metric, _ in SHOWN
        for seed in range(3)
    ]
    labels = {"constant": "Constant", "wsd_cosine": "WSD, cosine", "wsm_mean": "WSM"}
    axes = by_row(runs, labels).axes
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["Constant", "WSM"]
    for ax in axes:
        dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
        assert dots == pytest.approx([2.1, 2.1])


def test_a_sweep_is_drawn_over_its_x_in_order():
    runs = [
        run("wsm_mean", table, "anneal", "bits_per_byte", seed, x)
        for table in ("duration", "count")
        for x in ("128", "16")
        for seed in range(2)
    ]
    for ax in sweeps(runs).axes:
        assert list(ax.lines[0].get_xdata()) == [16, 128]
