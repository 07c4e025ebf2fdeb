"""Sentences of words as matrices, and how alike two are. Shapes: N sentences, V items."""

from collections.abc import Sequence

import numpy as np

from steps.cellduality.prompts import Sentence
from steps.cellduality.rewards import rank_weighted_jaccard
from steps.cellduality.vocabulary import Vocabulary


def jaccard(
    task: str, pairs: Sequence[tuple[Sentence, Sentence]], vocabulary: Vocabulary
) -> np.ndarray:
    """Return RWJS(true, guessed) of pairs of sentences (n,)."""
    hidden, guessed = (vocabulary.matrix(task, side) for side in zip(*pairs, strict=True))
    return rank_weighted_jaccard(hidden, guessed)


def presence(task: str, sentences: Sequence[Sentence], vocabulary: Vocabulary) -> np.ndarray:
    """Return which items each sentence has (N x V)."""
    matrix = vocabulary.matrix(task, sentences)
    found = np.zeros((len(sentences), len(vocabulary.items(task)) + 1))
    np.put_along_axis(found, matrix, 1.0, axis=1)  # -1 is the last column
    return found[:, :-1]


def rank_weights(task: str, sentences: Sequence[Sentence], vocabulary: Vocabulary) -> np.ndarray:
    """Return 1 / rank of each item in each sentence (N x V), rows of length 1, else 0."""
    matrix = vocabulary.matrix(task, sentences)
    found = np.zeros((len(sentences), len(vocabulary.items(task)) + 1))
    weights = np.broadcast_to(1.0 / np.arange(1, matrix.shape[1] + 1), matrix.shape)
    np.put_along_axis(found, matrix, weights, axis=1)
    found = found[:, :-1]
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
