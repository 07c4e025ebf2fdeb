"""Cell sentences: a naive sort, what keeps the order, the way back by the rank line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from steps.cellduality import sentences
from steps.cellduality.sentences import PAD, RankLine, ranked_genes
from steps.shared.runtime import InputError

# few distinct values, so that ties are common
MATRICES = arrays(
    np.float32,
    st.tuples(st.integers(1, 9), st.integers(1, 12)),
    elements=st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0000001, 3.5, 1e-30, 6e4]),
)


def naive(matrix: np.ndarray, length: int) -> list[list[int]]:
    """Return what a reader of the definition would write."""
    found = []
    for row in matrix.tolist():
        genes = sorted((g for g, v in enumerate(row) if v > 0), key=lambda g: (-row[g], g))
        found.append((genes + [PAD] * length)[:length])
    return found


@given(MATRICES, st.integers(1, 15))
@settings(max_examples=200)
def test_sentences_equal_a_naive_sort(matrix, length):
    found = ranked_genes(sparse.csr_matrix(matrix), length)
    assert found.dtype == np.int32
    assert found.tolist() == naive(matrix, length)
    assert (ranked_genes(matrix, length) == found).all()


def test_blocks_unsorted_columns_and_stored_zeros_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    matrix = rng.poisson(0.7, (50, 30)).astype(np.float32)
    expected = naive(matrix, 8)
    csr = sparse.csr_matrix(matrix)
    shuffled = csr.copy()
    for row in range(50):
        part = slice(shuffled.indptr[row], shuffled.indptr[row + 1])
        order = rng.permutation(part.stop - part.start)
        shuffled.indices[part] = shuffled.indices[part][order]
        shuffled.data[part] = shuffled.data[part][order]
    stored = sparse.csr_matrix((np.r_[0.0, 2.0], np.r_[0, 1], np.r_[0, 2]), shape=(1, 2))
    monkeypatch.setattr(sentences, "BLOCK", 7)
    assert ranked_genes(shuffled, 8).tolist() == expected
    assert ranked_genes(csr.tocsc(), 8).tolist() == expected
    assert ranked_genes(stored, 2).tolist() == [[1, PAD]]


def test_normalisation_and_log_keep_the_order_but_standardising_does_not():
    rng = np.random.default_rng(1)
    counts = rng.poisson(2.0, (20, 15)).astype(np.float32)
    expected = ranked_genes(counts, 15)
    assert (
        ranked_genes(np.log1p(counts / counts.sum(1, keepdims=True) * 1e4), 15) == expected
    ).all()
    with pytest.raises(InputError, match="standardised"):
        ranked_genes((counts - counts.mean(0)) / counts.std(0), 15)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_values_that_have_no_rank_are_refused(value):
    with pytest.raises(InputError, match="finite and not negative"):
        ranked_genes(np.array([[1.0, value]]), 2)
    with pytest.raises(InputError, match="at least 1"):
        ranked_genes(np.ones((1, 2)), 0)


def test_no_cell_and_no_expressed_gene():
    assert ranked_genes(np.zeros((0, 3)), 2).shape == (0, 2)
    assert ranked_genes(np.zeros((2, 3)), 2).tolist() == [[PAD, PAD]] * 2


def test_the_rank_line_is_least_squares_and_gives_exact_values_back():
    sentence = np.array([[3, 0, 2, PAD], [1, 3, PAD, PAD]])
    matrix = np.zeros((2, 4))
    for row in range(2):
        for place, gene in enumerate(g for g in sentence[row] if g != PAD):
            matrix[row, gene] = 2.0 - 0.5 * np.log(place + 1)
    assert (ranked_genes(matrix, 4) == sentence).all()
    line = RankLine.fit(sparse.csr_matrix(matrix), sentence)
    assert (line.slope, line.intercept) == pytest.approx((-0.5, 2.0))
    assert line.expression(sentence, 4) == pytest.approx(matrix, abs=1e-6)
    # again: the sentence of what comes back is the sentence
    assert (ranked_genes(line.expression(sentence, 4), 4) == sentence).all()


def test_the_rank_line_on_noise_equals_numpys_fit_and_never_goes_below_zero():
    rng = np.random.default_rng(2)
    matrix = rng.exponential(1.0, (30, 20)) * (rng.random((30, 20)) < 0.5)
    sentence = ranked_genes(matrix, 20)
    x, y = [], []
    for row in range(30):
        for place, gene in enumerate(g for g in sentence[row] if g != PAD):
            x.append(np.log(place + 1))
            y.append(matrix[row, gene])
    slope, intercept = np.linalg.lstsq(np.c_[x, np.ones(len(x))], y, rcond=None)[0]
    line = RankLine.fit(sparse.csr_matrix(matrix), sentence)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    assert RankLine(-5.0, 1.0).expression(np.array([[0, 1, 2]]), 3).tolist() == [[1.0, 0.0, 0.0]]


def test_a_repeated_gene_has_the_value_of_its_first_place():
    line = RankLine(-1.0, 9.0)
    found = line.expression(np.array([[1, 0, 1, PAD]]), 2)
    assert found[0].tolist() == pytest.approx([9 - np.log(2), 9.0])


def test_a_rank_line_needs_ranks():
    with pytest.raises(InputError, match="two genes"):
        RankLine.fit(np.ones((2, 3)), np.array([[0, PAD], [1, PAD]]))
