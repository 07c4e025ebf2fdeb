"""Token files and batches, against closed forms."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from steps.shared.runtime import InputError
from steps.shared.token_files import (
    open_tokens,
    random_batches,
    sequential_batches,
    token_writer,
)


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
        np.arange(length),
        paper="wsm",
        purpose="data",
        seed=seed,
        first=3,
        last=5,
        batch=batch,
        context=context,
    )
    for update in (3, 5):
        ids, targets = read(update)
        assert ids.shape == targets.shape == (batch, context)
        assert torch.equal(ids + 1, targets)
        assert torch.equal(ids[:, 1:], targets[:, :-1])
        assert targets.max() < length


def test_a_batch_is_decided_by_seed_and_update():
    def read(first, last, seed=0, **names):
        return random_batches(
            np.arange(10000),
            **{"paper": "wsm", "purpose": "data", **names},
            seed=seed,
            first=first,
            last=last,
            batch=4,
            context=8,
        )

    whole, shorter = read(1, 10), read(1, 5)
    assert torch.equal(whole(4)[0], shorter(4)[0])
    assert torch.equal(whole(4)[0], whole(4)[0])
    others = [whole(5), read(1, 10, seed=1)(4), read(1, 10, purpose="anneal-data")(4)]
    others.append(read(1, 10, paper="quest")(4))
    assert all(not torch.equal(whole(4)[0], other[0]) for other in others)


@given(length=st.integers(10, 120), batch=st.integers(1, 7), context=st.integers(1, 9))
def test_sequential_batches_predict_every_token_once(length, batch, context):
    batches = sequential_batches(np.arange(length, dtype=np.uint32), batch=batch, context=context)
    targets = torch.cat([targets.flatten() for _, targets in batches])
    # the tokens after the last whole window are left out
    assert targets.tolist() == list(range(1, (length - 1) // context * context + 1))
    assert all(torch.equal(ids + 1, target) for ids, target in batches)
    assert all(len(ids) <= batch for ids, _ in batches)
