"""The fast path in training: the losses of the reference, update by update."""

import pytest

from kernels.quest.device import losses


def test_fifty_updates_have_the_losses_of_the_reference():
    fast, reference = losses("torch", device="cpu"), losses("reference", device="cpu")
    assert len(fast) == 50 and reference[-1] < 0.7 * reference[0]
    assert fast == pytest.approx(reference, rel=1e-4)
