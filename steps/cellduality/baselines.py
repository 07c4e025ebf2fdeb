"""The specialists' answers: one model a task, with all training labels, as the oracle has them."""

from collections.abc import Mapping, Sequence

import numpy as np

from steps.cellduality import arrays as stored
from steps.cellduality.drug_data import LABELS
from steps.cellduality.prompts import Sentence
from steps.cellduality.sentences import ranked_genes
from steps.cellduality.specialists import KINDS, classify, mean_shift
from steps.cellduality.teacher import Case
from steps.cellduality.vocabulary import Vocabulary

Arrays = Mapping[str, np.ndarray]


def answers(
    row: str, task: str, cases: Sequence[Case], arrays: Arrays, vocabulary: Vocabulary
) -> list[Sentence] | None:
    """Return a specialist's answers to a task's cases; None if it does another task."""
    if row in KINDS and task == "annotation":
        return _types(row, cases, arrays, vocabulary)
    if row in KINDS and task == "drug":
        return _responses(row, cases, arrays)
    if row == "mean_shift" and task == "perturbation":
        return _shifted(cases, arrays, vocabulary)
    return None


def _types(
    row: str, cases: Sequence[Case], arrays: Arrays, vocabulary: Vocabulary
) -> list[Sentence]:
    train = stored.members(arrays, "cells", "train")
    expression_NG, type_N = arrays["cells/expression_NG"], arrays["cells/type_N"]
    places = [case.place[0] for case in cases]
    found = classify(row, expression_NG[train], type_N[train], expression_NG[places])
    return [(vocabulary.types[int(i)],) for i in found]


def _responses(row: str, cases: Sequence[Case], arrays: Arrays) -> list[Sentence]:
    """Return one classifier's answers for each drug; of one that training lacks, of all others."""
    altered_LF, label_LD = arrays["drugs/altered_LF"], arrays["drugs/label_LD"]
    train = stored.members(arrays, "drugs", "train")
    lines, drugs = np.array([case.place for case in cases]).T
    found = np.zeros(len(cases), dtype=int)
    for drug in np.unique(drugs):
        label_L = label_LD[train, drug]
        own_LD = label_L[:, None] if (label_L >= 0).any() else label_LD[train]
        known, columns = np.nonzero(own_LD >= 0)
        here = drugs == drug
        found[here] = classify(
            row, altered_LF[train][known], own_LD[known, columns], altered_LF[lines[here]]
        )
    return [(LABELS[i],) for i in found]


def _shifted(cases: Sequence[Case], arrays: Arrays, vocabulary: Vocabulary) -> list[Sentence]:
    before_NG, after_NG = arrays["perturbations/before_NG"], arrays["perturbations/after_NG"]
    kind_N = arrays["perturbations/perturbation_N"]
    train = stored.members(arrays, "perturbations", "train")
    places = [case.place[0] for case in cases]
    found_NG = mean_shift(
        before_NG[train], after_NG[train], kind_N[train], before_NG[places], kind_N[places]
    )
    sentences = ranked_genes(found_NG, found_NG.shape[1])
    return [vocabulary.sentence("perturbation", row) for row in sentences]
