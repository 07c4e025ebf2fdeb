"""The loss against torch's own: value and gradient, ignored targets, far logits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from steps.shared.loss import cross_entropy


@settings(max_examples=40)
@given(
    count=st.integers(1, 40),
    vocabulary=st.integers(1, 60),
    scale=st.sampled_from([0.0, 1.0, 300.0]),
    seed=st.integers(0, 99),
)
def test_value_and_gradient_are_those_of_torch(count, vocabulary, scale, seed):
    rng = torch.Generator().manual_seed(seed)
    logits = (scale * torch.randn(count, vocabulary, generator=rng)).requires_grad_()
    targets = torch.randint(0, vocabulary, (count,), generator=rng)
    targets[torch.rand(count, generator=rng) < 0.3] = -100
    targets[0] = 0
    expected = F.cross_entropy(logits, targets, ignore_index=-100)
    found = cross_entropy(logits, targets)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    (one,) = torch.autograd.grad(expected * 3, logits)
    (two,) = torch.autograd.grad(found * 3, logits)
    torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-6)


def test_gradient_is_exact_in_float64():
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 6, -100, 3, 3])
    losses = cross_entropy(logits, targets), F.cross_entropy(logits, targets, ignore_index=-100)
    found, expected = (torch.autograd.grad(loss, logits)[0] for loss in losses)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-15)


def test_a_second_backward_fails_rather_than_lies():
    logits = torch.randn(3, 4, requires_grad=True)
    loss = cross_entropy(logits, torch.tensor([0, 1, 2]))
    loss.backward(retain_graph=True)
    with pytest.raises(TypeError):
        loss.backward()
