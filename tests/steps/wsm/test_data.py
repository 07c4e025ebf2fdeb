"""Token files, batches, and what is measured, against closed forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from steps.shared.runtime import InputError
from steps.wsm.data import (
    open_tokens,
    padded,
    random_batches,
    sequential_batches,
    token_writer,
)
from steps.wsm.measure import answer_batches, bits_per_byte, choose
from steps.wsm.model import GPT, token_statistics

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


# batches
# -------
def test_a_token_file_that_cannot_serve_is_refused(tmp_path):
    np.save(tmp_path / "short.npy", np.zeros(9, np.uint8))
    np.save(tmp_path / "flat.npy", np.zeros((20, 20), np.uint8))
    (tmp_path / "other.npy").write_text("tokens")
    for name, message in (("short", "over 9"), ("flat", "one dimension"), ("other", "not a token")):
        with pytest.raises(InputError, match=f"{name}.npy: .*{message}"):
            open_tokens(tmp_path / f"{name}.npy", 8)
    np.save(tmp_path / "enough.npy", np.zeros(10, np.uint8))
    assert len(open_tokens(tmp_path / "enough.npy", 8)) == 10


@given(sizes=st.lists(st.integers(1, 400), max_size=30), limit=st.integers(1, 3000))
def test_a_token_file_holds_whole_documents_up_to_its_limit(tmp_path_factory, sizes, limit):
    path = tmp_path_factory.mktemp("tokens") / "t.npy"
    whole = [np.full(size, index, np.uint16) for index, size in enumerate(sizes)]
    with token_writer(path, dtype=np.dtype(np.uint16), limit=limit) as writer:
        for ids in whole:
            writer.add("é" * len(ids), ids)
    totals = np.cumsum([0, *sizes])
    kept = int((totals <= limit).sum()) - 1
    expected = np.concatenate([np.empty(0, np.uint16), *whole[:kept]])
    found = np.load(path)
    assert found.dtype == np.uint16 and np.array_equal(found, expected)
    assert (writer.documents, writer.tokens, writer.bytes) == (kept, totals[kept], 2 * totals[kept])
    assert writer.full == (kept < len(sizes))


def test_a_token_file_cut_off_while_written_is_not_there(tmp_path):
    opened = token_writer(tmp_path / "t.npy", dtype=np.dtype(np.uint16), limit=9)
    with pytest.raises(RuntimeError), opened as writer:
        writer.add("a", np.zeros(1, np.uint16))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@given(
    length=st.integers(10, 200),
    batch=st.integers(1, 5),
    context=st.integers(1, 8),
    seed=st.integers(0, 9),
)
def test_random_batches_are_windows_of_the_corpus_shifted_by_one(length, batch, context, seed):
    read = random_batches(
        np.arange(length), purpose="data", seed=seed, first=3, last=5, batch=batch, context=context
    )
    for update in (3, 5):
        ids, targets = read(update)
        assert ids.shape == targets.shape == (batch, context)
        assert torch.equal(ids + 1, targets)
        assert torch.equal(ids[:, 1:], targets[:, :-1])
        assert targets.max() < length


def test_a_batch_is_decided_by_seed_and_update():
    def read(first, last, seed=0, purpose="data"):
        tokens = np.arange(10000)
        return random_batches(
            tokens, purpose=purpose, seed=seed, first=first, last=last, batch=4, context=8
        )

    whole, shorter = read(1, 10), read(1, 5)
    assert torch.equal(whole(4)[0], shorter(4)[0])
    assert torch.equal(whole(4)[0], whole(4)[0])
    others = [whole(5), read(1, 10, seed=1)(4), read(1, 10, purpose="anneal-data")(4)]
    assert all(not torch.equal(whole(4)[0], other[0]) for other in others)


@given(length=st.integers(10, 120), batch=st.integers(1, 7), context=st.integers(1, 9))
def test_sequential_batches_predict_every_token_once(length, batch, context):
    batches = sequential_batches(np.arange(length, dtype=np.uint32), batch=batch, context=context)
    targets = torch.cat([targets.flatten() for _, targets in batches])
    # the tokens after the last whole window are left out
    assert targets.tolist() == list(range(1, (length - 1) // context * context + 1))
    assert all(torch.equal(ids + 1, target) for ids, target in batches)
    assert all(len(ids) <= batch for ids, _ in batches)


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
