"""Batches of answers, and what is measured, against closed forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from steps.shared.loss import bits_per_byte
from steps.shared.runtime import InputError
from steps.shared.token_files import sequential_batches
from steps.wsm.data import padded
from steps.wsm.measure import answer_batches, choose
from steps.wsm.model import GPT, answer_loss, next_token_loss, target_logits, token_statistics

VOCABULARY = 96


class Bigram(nn.Module):
    """The logits of a token depend on the one before it alone."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table = table

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table[ids]


def favouring(*pairs: tuple[int, int], size: int = 8) -> Bigram:
    """Return a model for which each (before, after) is far likelier than anything else."""
    table = torch.zeros(size, size)
    for before, after in pairs:
        table[before, after] = 10.0
    return Bigram(table)


# answers
# -------
def targets_of(row: torch.Tensor) -> list[int]:
    return [int(value) for value in row if value >= 0]


def test_only_the_answer_is_a_target_and_padding_is_not():
    ids, targets = padded([([1, 2, 3, 4], 2), ([5, 6], 1)], context=8)
    assert ids.tolist() == [[1, 2, 3], [5, 0, 0]]
    assert targets.tolist() == [[-100, 3, 4], [6, -100, -100]]


def test_a_long_answer_loses_its_end_and_a_long_prompt_its_beginning():
    answer_too_long = (list(range(20)), 2)
    prompt_too_long = (list(range(100, 120)), 17)  # three tokens of answer
    both_too_long = (list(range(200, 230)), 12)
    ids, targets = padded([answer_too_long, prompt_too_long, both_too_long], context=8)
    assert ids.shape == (3, 8)
    assert (ids[0, 0], targets_of(targets[0])) == (0, [2, 3, 4, 5, 6, 7, 8])
    assert (ids[1, 0], targets_of(targets[1])) == (111, [117, 118, 119])
    # half the context is left to the prompt
    assert (ids[2, 0], targets_of(targets[2])) == (208, [212, 213, 214, 215, 216])


@given(prompt=st.integers(1, 40), answer=st.integers(1, 40), context=st.integers(2, 16))
def test_every_item_keeps_some_of_its_answer_beginning_with_its_first_token(
    prompt, answer, context
):
    tokens = list(range(1, prompt + answer + 1))
    ids, targets = padded([(tokens, prompt)], context)
    kept = targets_of(targets[0])
    assert kept == tokens[prompt : prompt + len(kept)]
    assert len(kept) >= min(answer, context - context // 2)
    assert ids.shape[1] <= context
    assert torch.equal((ids[0] + 1)[targets[0] >= 0], targets[0][targets[0] >= 0])


@pytest.mark.parametrize("tokens, start", [([1, 2], 2), ([1, 2], 0), ([1], 1)])
def test_an_item_without_prompt_or_answer_is_refused(tokens, start):
    with pytest.raises(InputError, match="at least one token"):
        padded([([1, 2, 3], 1), (tokens, start)], 8)


# multiple choice
# ---------------
def test_the_likeliest_option_is_chosen():
    model = favouring((1, 2), (2, 3))
    options = [[4, 5], [2, 3], [2, 5], [5]]
    items = [{"prompt": [7, 1], "options": options, "answer": answer} for answer in range(4)]
    assert choose(model, items, batch=3, context=8) == [0, 1, 0, 0]


def test_options_are_compared_by_their_mean_per_token():
    # the sum would prefer the short one: 1 token at -1 nat against 4 at -0.5
    table = torch.full((8, 8), -1e9)
    table[1, 2], table[1, 3], table[1, 0] = -1.0, -0.5, math.log(1 - math.exp(-1) - math.exp(-0.5))
    table[3, 3], table[3, 0] = -0.5, math.log(1 - math.exp(-0.5))
    item = {"prompt": [1], "options": [[2], [3, 3, 3, 3]], "answer": 1}
    assert choose(Bigram(table), [item], batch=8, context=8) == [1]


def test_a_prompt_beyond_the_context_is_still_judged_by_its_end():
    item = {"prompt": [5] * 40 + [1], "options": [[4], [4, 4], [2]], "answer": 2}
    assert choose(favouring((1, 2)), [item], batch=8, context=8) == [1]
    ((ids, targets),) = answer_batches([item], batch=8, context=8)
    assert targets_of(targets[0]) == [2]
    assert math.isfinite(token_statistics(favouring((1, 2)), [(ids, targets)])["nats"])


def test_choices_do_not_depend_on_the_batch_size():
    torch.manual_seed(0)
    model = GPT(vocabulary=8, context=8, width=8, layers=1, heads=2)
    rng = np.random.default_rng(0)
    items = [
        {
            "prompt": rng.integers(0, 8, rng.integers(1, 12)).tolist(),
            "options": [rng.integers(0, 8, rng.integers(1, 6)).tolist() for _ in range(4)],
            "answer": int(rng.integers(4)),
        }
        for _ in range(30)
    ]
    found = choose(model, items, batch=1, context=8)
    assert choose(model, items, batch=17, context=8) == found
    assert 0 < sum(found) < 30


# losses
# ------
def test_a_uniform_model_needs_log2_of_the_vocabulary_bits_per_character():
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, 500)
    batches = sequential_batches(tokens, batch=4, context=16)
    found = token_statistics(favouring(size=VOCABULARY), batches)
    assert found["tokens"] == 499 // 16 * 16
    bits = bits_per_byte(found["nats"], bytes_per_token=1.0)
    assert bits == pytest.approx(math.log2(96), rel=1e-6)
    assert bits_per_byte(found["nats"], bytes_per_token=4.0) == pytest.approx(bits / 4)


def test_accuracy_is_the_share_of_targets_ranked_first():
    model = favouring((1, 2), (2, 3), (3, 1))
    ids = torch.tensor([[1, 2, 3, 1]])
    targets = torch.tensor([[2, 3, 5, -100]])
    found = token_statistics(model, [(ids, targets)])
    assert found["accuracy"] == pytest.approx(2 / 3)
    rest = math.log(math.exp(10) + 7)
    assert found["nats"] == pytest.approx(((rest - 10) * 2 + rest) / 3, rel=1e-5)


def test_logits_of_the_targets_alone_are_those_of_the_whole():
    torch.manual_seed(0)
    model = GPT(vocabulary=9, context=8, width=8, layers=2, heads=2)
    ids, targets = padded([([1, 2, 3, 4, 5], 2), ([5, 6, 7], 1), ([8, 1, 2, 3], 3)], context=8)
    found, kept = target_logits(model, ids, targets)
    assert kept.tolist() == [3, 4, 5, 6, 7, 3]
    torch.testing.assert_close(found, model(ids)[targets >= 0])
    whole, alone = (
        torch.autograd.grad(loss(model, (ids, targets)), list(model.parameters()))
        for loss in (next_token_loss, answer_loss)
    )
    torch.testing.assert_close(alone, whole)
