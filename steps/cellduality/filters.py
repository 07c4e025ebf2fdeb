"""Which drafts of the teacher SFT learns from: rejection sampling and rank-aware filtering."""

from collections.abc import Mapping, Sequence

import numpy as np

from steps.cellduality.prompts import CLASSIFY
from steps.cellduality.similarity import jaccard
from steps.cellduality.teacher import Case, Draft, Teacher
from steps.cellduality.vocabulary import Vocabulary


def accepted(
    cases: Sequence[Case],
    drafts: Sequence[Draft],
    vocabulary: Vocabulary,
    thresholds: Mapping[str, float],
) -> np.ndarray:
    """Return which drafts are kept (N): a = a*, of sentences RWJS(true, drafted) >= threshold."""
    kept = np.zeros(len(cases), dtype=bool)
    for i, (case, draft) in enumerate(zip(cases, drafts, strict=True)):
        task = case.question.task
        if task in CLASSIFY:
            kept[i] = draft.answer == case.truth
        else:
            (alike,) = jaccard(task, [(case.truth, draft.answer)], vocabulary)
            kept[i] = alike >= thresholds[task]
    return kept


def sampled(
    teacher: Teacher, cases: Sequence[Case], vocabulary: Vocabulary, rng: np.random.Generator
) -> tuple[list[Draft], list[Draft | None]]:
    """Return each case's first draft, and its first accepted one of `num_drafts`, if any."""
    first: list[Draft] = []
    kept: list[Draft | None] = [None] * len(cases)
    for number in range(teacher.config.num_drafts):
        drafts = [teacher.draft(case, rng) for case in cases]
        good = accepted(cases, drafts, vocabulary, teacher.config.thresholds)
        kept = [
            own or (new if ok else None) for own, new, ok in zip(kept, drafts, good, strict=True)
        ]
        first = drafts if number == 0 else first
    return first, kept
