"""Figures: the same bytes again, nothing that dates them, labels that do not overlap."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.shared import plots
from steps.shared.intervals import t_interval
from steps.shared.runtime import InputError

FIGURE = """
import sys
import numpy as np
from steps.shared import plots
plots.style()
import matplotlib.pyplot as plt
figure, (left, right) = plt.subplots(1, 2)
values = np.random.default_rng(0).normal(size=(5, 3))
plots.sweep(left, [1, 2, 4], {"a": values, "b": values + 1}, x_name="x", y_name="y", log_x=True)
plots.dot_interval(right, ["p", "q"], [1, 2], [0, 1], [2, 3], highlight=["q"])
for name in sys.argv[1:]:
    plots.save(figure, name)
"""


@pytest.fixture
def ax():
    plots.style()
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_bytes_repeat_in_another_process_and_hold_no_date(tmp_path):
    for run in ("1", "2"):
        names = [str(tmp_path / f"{run}.{kind}") for kind in ("svg", "png")]
        subprocess.run([sys.executable, "-c", FIGURE, *names], check=True)
    for kind in ("svg", "png"):
        first, second = ((tmp_path / f"{run}.{kind}").read_bytes() for run in "12")
        assert first == second
    text = (tmp_path / "1.svg").read_text()
    assert "dc:date" not in text and "Matplotlib" not in text and "<text" not in text
    assert b"Matplotlib" not in (tmp_path / "1.png").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.png", "1.svg", "2.png", "2.svg"]


def test_the_band_is_the_t_interval(ax):
    values = np.random.default_rng(1).normal(size=(6, 4))
    plots.line_with_band(ax, range(4), values, "a")
    mean, _, low, high = t_interval(values)
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), mean)
    edge = ax.collections[0].get_paths()[0].vertices
    for x in range(4):
        ends = edge[edge[:, 0] == x, 1]
        assert (ends.min(), ends.max()) == pytest.approx((low[x], high[x]))


def test_one_seed_has_a_line_and_no_band(ax):
    plots.line_with_band(ax, [0, 1], [1.0, 2.0], "a")
    assert len(ax.get_lines()) == 1 and not ax.collections


def test_wrong_inputs_are_refused(ax, tmp_path):
    with pytest.raises(InputError, match="points of x"):
        plots.line_with_band(ax, [0, 1, 2], [[1.0, 2.0]], "a")
    with pytest.raises(InputError, match="svg or .png"):
        plots.save(ax.figure, tmp_path / "a.pdf")
    with pytest.raises(InputError, match="highlight"):
        plots.dot_interval(ax, ["a"], [1], [0], [2], highlight=["b"])


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_labels_are_a_gap_apart_in_order_and_unmoved_where_there_is_room(heights):
    placed = plots.spread(heights, 10.0)
    order = np.argsort(heights, kind="stable")
    assert (np.diff(placed[order]) >= 10.0 - 1e-6).all()
    assert placed.mean() == pytest.approx(np.mean(heights), abs=1e-6)
    if (np.diff(np.sort(heights)) >= 10.0).all():
        np.testing.assert_allclose(placed, heights)


def test_labels_are_drawn_apart_at_the_ends_of_close_lines(ax):
    for label, level in (("a", 1.0), ("b", 1.001), ("c", 5.0)):
        plots.line_with_band(ax, [0, 1], [level, level], label)
    plots.label_lines(ax)
    shifts = {text.get_text(): text.xyann[1] for text in ax.texts}
    assert shifts["b"] - shifts["a"] == pytest.approx(11.0, abs=0.2)
    assert shifts["c"] == pytest.approx(0.0, abs=1e-6)


def test_dots_stand_at_means_with_the_first_on_top(ax):
    plots.dot_interval(ax, ["p", "q"], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5], highlight=["q"])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["p", "q"]
    assert ax.yaxis_inverted()
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert [(float(d.get_xdata()[0]), d.get_color()) for d in dots] == [
        *((1.0, plots.GREY), (2.0, plots.PALETTE[0]))
    ]


def test_rows_have_their_mean_and_interval_and_a_single_seed_a_dot_alone(ax):
    by_row = {"a": [[1.0], [2.0], [3.0]], "b": [[5.0]]}  # S x 1, as `series` returns them
    labels = {"a": "A", "b": "B", "absent": "C"}
    plots.row_intervals(ax, by_row, labels, highlight=["b", "absent"])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["A", "B"]
    span_a, dot_a, span_b, dot_b = ax.get_lines()
    assert span_a.get_xdata() == pytest.approx(t_interval([1.0, 2.0, 3.0])[2:])
    assert (dot_a.get_xdata()[0], dot_a.get_color()) == (2.0, plots.GREY)
    assert (dot_b.get_xdata()[0], dot_b.get_color()) == (5.0, plots.BLUE)
    assert np.isnan(span_b.get_xdata()).all()


def test_an_interval_that_is_not_known_leaves_no_trace(ax):
    nan = float("nan")
    plots.dot_interval(ax, ["a", "b"], [1, 2], [nan, nan], [nan, nan], highlight=[])
    unknown = ax.get_lines()[0]
    assert not np.isfinite(unknown.get_path().vertices[:, 0]).any()
    assert np.isfinite(ax.get_xlim()).all() and ax.get_xlim()[0] < 1 < 2 < ax.get_xlim()[1]
