"""Rewards: the formula by sets, its bounds, repeated genes, no true output."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steps.cellduality.rewards import rank_weighted_jaccard
from steps.shared.runtime import InputError

PAD = -1


def by_sets(hidden: list[int], guessed: list[int]) -> float:
    """Return the formula as it is written, on Python's sets."""
    hidden = list(dict.fromkeys(g for g in hidden if g != PAD))
    guessed = list(dict.fromkeys(g for g in guessed if g != PAD))
    true_w = {g: 1 / rank for rank, g in enumerate(hidden, 1)}
    found_w = {g: 1 / rank for rank, g in enumerate(guessed, 1)}
    common = set(hidden) & set(guessed)
    shared = sum((true_w[g] + found_w[g]) / 2 for g in common)
    whole = sum(true_w.values()) + sum(found_w[g] for g in set(guessed) - set(hidden))
    return shared / whole if whole else 0.0


GENES = st.lists(st.integers(PAD, 9), min_size=0, max_size=8)


@given(st.lists(st.tuples(GENES, GENES), min_size=1, max_size=12))
@settings(max_examples=300)
def test_the_batch_equals_the_formula_on_sets(pairs):
    hidden = np.full((len(pairs), 8), PAD)
    guessed = np.full((len(pairs), 10), PAD)
    for row, (mine, other) in enumerate(pairs):
        hidden[row, : len(mine)] = mine
        guessed[row, : len(other)] = other
    found = rank_weighted_jaccard(hidden, guessed)
    assert found.dtype == np.float64
    assert found == pytest.approx([by_sets(*pair) for pair in pairs], abs=1e-14)
    assert ((found >= 0) & (found <= 1 + 1e-15)).all()


def one(hidden: list[int], guessed: list[int]) -> float:
    return float(rank_weighted_jaccard(np.array([hidden]), np.array([guessed]))[0])


def test_known_values():
    assert one([4, 2, 7], [4, 2, 7]) == 1
    assert one([4, 2, 7], [7, 4, 2]) == pytest.approx(1)  # any order of the same set
    assert one([4, 2, 7], [5, 1, 0]) == 0
    assert one([0, 1, 2], [2, 7, 8]) == pytest.approx(0.25)
    assert one([2, 7, 8], [0, 1, 2]) == pytest.approx(0.20)  # not symmetric
    assert one([PAD, PAD], [1, 2]) == one([1, 2], [PAD, PAD]) == one([PAD], [PAD]) == 0


def test_repeating_a_gene_gains_nothing():
    assert one([1, 2, 3], [1, 1, 2]) == one([1, 2, 3], [1, 2, PAD])
    assert one([1, 2, 3], [9, 1, 9]) == one([1, 2, 3], [9, 1, PAD])
    assert one([1, 2, 3], [PAD, 1, PAD]) == one([1, 2, 3], [1, PAD, PAD])


def test_an_early_hit_is_worth_more():
    assert one([1, 2, 3], [1, 8, 9]) > one([1, 2, 3], [3, 8, 9]) > one([1, 2, 3], [8, 9, 3]) > 0


def test_other_candidates_change_no_bit():
    rng = np.random.default_rng(0)
    hidden = np.array([rng.permutation(40)[:12] for _ in range(50)])
    guessed = rng.integers(PAD, 40, (50, 12))
    whole = rank_weighted_jaccard(hidden, guessed)
    order = rng.permutation(50)
    assert (rank_weighted_jaccard(hidden[order], guessed[order]) == whole[order]).all()
    alone = [one(mine, other) for mine, other in zip(hidden, guessed, strict=True)]
    assert (whole == alone).all()
    assert len(rank_weighted_jaccard(np.zeros((0, 3), int), np.zeros((0, 4), int))) == 0


def test_renaming_the_genes_changes_no_bit():
    rng = np.random.default_rng(1)
    hidden, guessed = (rng.integers(0, 30, (20, 9)) for _ in range(2))
    names = rng.permutation(500)[:30]
    found = rank_weighted_jaccard(names[hidden], names[guessed])
    assert (found == rank_weighted_jaccard(hidden, guessed)).all()


def test_lists_that_do_not_pair_are_refused():
    with pytest.raises(InputError, match="as many"):
        rank_weighted_jaccard(np.zeros((2, 3), int), np.zeros((3, 3), int))


def test_the_reward_takes_no_true_output():
    taken = set(inspect.signature(rank_weighted_jaccard).parameters)
    assert taken == {"hidden_NH", "guessed_NJ"}
