"""Schedules, at their corners."""

import pytest

from steps.shared.schedules import warmup, warmup_cosine


def test_a_warm_up_is_linear_and_then_constant():
    rate = warmup(200, 0.1)
    assert [rate(update) for update in (1, 10, 20, 21, 200)] == [0.05, 0.5, 1, 1, 1]


def test_the_rate_rises_to_one_and_falls_along_a_cosine():
    rate = warmup_cosine(100, 0.1)
    assert [rate(update) for update in (1, 5, 10)] == pytest.approx([0.1, 0.5, 1.0])
    assert rate(55) == pytest.approx(0.5, abs=0.01)  # half of the 90 updates after it
    assert 0 < rate(100) < 1e-3
    assert all(rate(update + 1) < rate(update) for update in range(10, 100))
