"""Schedules, at their corners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.shared.runtime import InputError
from steps.shared.schedules import epochs, warmup, warmup_cosine


def test_a_warm_up_is_linear_and_then_constant():
    rate = warmup(200, 0.1)
    assert [rate(update) for update in (1, 10, 20, 21, 200)] == [0.05, 0.5, 1, 1, 1]


def test_the_rate_rises_to_one_and_falls_along_a_cosine():
    rate = warmup_cosine(100, 0.1)
    assert [rate(update) for update in (1, 5, 10)] == pytest.approx([0.1, 0.5, 1.0])
    assert rate(55) == pytest.approx(0.5, abs=0.01)  # half of the 90 updates after it
    assert 0 < rate(100) < 1e-3
    assert all(rate(update + 1) < rate(update) for update in range(10, 100))


@given(count=st.integers(1, 20), share=st.floats(0.01, 1), updates=st.integers(1, 30))
def test_every_epoch_reads_every_example_once(count, share, updates):
    batch_size = max(1, int(share * count))
    order = epochs(np.random.default_rng(0), count, batch_size, updates)
    assert order.shape == (updates, batch_size)
    for epoch in range(order.size // count):
        own = order.ravel()[epoch * count : (epoch + 1) * count]
        assert sorted(own.tolist()) == list(range(count))


@pytest.mark.parametrize("batch_size", [0, 6])
def test_a_batch_is_no_larger_than_an_epoch(batch_size):
    with pytest.raises(InputError, match=f"batch_size = {batch_size}: must be 1 to the 5"):
        epochs(np.random.default_rng(0), 5, batch_size, 3)
