"""The teacher's statistics against plain counting, its drafts, and which of them are kept."""

from dataclasses import replace

import numpy as np
import pytest
from cellduality_words import CASES, VOCABULARY

from steps.cellduality.config import TeacherConfig
from steps.cellduality.filters import accepted, sampled
from steps.cellduality.prompts import CLASSIFY, Question
from steps.cellduality.questions import Labelled, divided
from steps.cellduality.sft import examples
from steps.cellduality.similarity import jaccard, presence, rank_weights
from steps.cellduality.teacher import Case, Draft, Markers, Teacher


def config(temperature: float) -> TeacherConfig:
    return TeacherConfig(
        **{"temperature": temperature, "recall_temperature": temperature, "num_markers": 2},
        **{"num_drafts": 3, "thresholds": {"generation": 0.9, "perturbation": 0.9}},
    )


def test_markers_are_log_odds_of_plain_counts():
    present = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1]])
    markers = Markers(present, np.array([0, 0, 1, 1]), 2)
    assert markers.odds_LV[0, 0] == pytest.approx(np.log((2 + 1) / (2 + 2) / ((0 + 1) / (2 + 2))))
    assert markers.odds_LV[1, 2] == pytest.approx(0.0)  # in one of two, of both labels
    assert markers.top(0, np.array([True, True, True]), 5) == [0]  # the others do not speak for it
    assert markers.top(0, np.array([False, True, True]), 5) == []
    scores = markers.scores(np.array([1, 0, 0]))
    by_hand = np.log(3 / 6) + np.log(3 / 4) + np.log(1 - 2 / 4) + np.log(1 - 2 / 4)
    assert scores[0] == pytest.approx(by_hand)
    assert scores.argmax() == 0


def test_naive_bayes_is_scikit_learns():
    from sklearn.naive_bayes import BernoulliNB

    rng = np.random.default_rng(0)
    present = (rng.random((60, 9)) < 0.4).astype(float)
    labels = rng.integers(0, 3, 60)
    markers = Markers(present, labels, 3)
    peer = BernoulliNB(alpha=1.0, class_prior=np.exp(markers.prior_L)).fit(present, labels)
    ours = np.stack([markers.scores(row) for row in present])
    np.testing.assert_allclose(ours, peer.predict_joint_log_proba(present))


def test_matrices_of_sentences():
    sentences = [("G2", "G0"), (), ("G11",)]
    assert presence("generation", sentences, VOCABULARY).sum(1).tolist() == [2, 0, 1]
    weights = rank_weights("generation", sentences, VOCABULARY)
    assert weights[0, 2] == pytest.approx(2 * weights[0, 0])
    assert np.linalg.norm(weights, axis=1).tolist() == pytest.approx([1, 0, 1])


def training_cases() -> list[Case]:
    """Two kinds of cells that share no gene; a draft is right if the teacher can count."""
    cases = []
    for i in range(12):
        kind, genes = ("B_cell", "G0 G1 G2") if i % 2 else ("T_cell", "G6 G7 G8")
        sentence = (*genes.split(), "G3")
        cases.append(Case(Question("annotation", sentence, hidden=(1,)), (kind,), (i,)))
        cases.append(Case(Question("generation", condition=(kind,)), sentence, (i,)))
        line = ("A0_mut", "A1_mut") if i % 2 else ("A2_mut", "A3_mut")
        response = "sensitive" if i % 2 else "resistant"
        for number, drug in enumerate(VOCABULARY.drugs):
            case = Case(Question("drug", line, (drug,), (0,)), (response,), (i, number))
            cases.append(case)
        operation, target = ("knockdown", "F0") if i % 2 else ("overexpression", "F1")
        before, after = ("F2", "F3"), ("F2",) if i % 2 else ("F1", "F2")
        question = Question("perturbation", before, (operation, target), state="monocyte")
        cases.append(Case(question, after, (i,)))
    return cases


def test_a_cold_teacher_is_right_and_never_looks_at_the_truth():
    cases = training_cases()
    teacher = Teacher(cases, VOCABULARY, config(1e-3))
    for case in cases:
        draft = teacher.draft(case, np.random.default_rng(0))
        blind = replace(case, truth=())
        other = teacher.draft(blind, np.random.default_rng(0))
        if case.question.task != "perturbation":  # there it must not recall the case itself
            assert draft == other
        assert draft.answer == case.truth, case
        names = {"annotation": "present:", "drug": "altered:"}
        names |= {"generation": "markers:", "perturbation": "rises:"}
        assert draft.reasoning.startswith(names[case.question.task])
    text = teacher.draft(cases[0], np.random.default_rng(0)).reasoning
    assert text.split("absent:")[0].split()[1:] == ["G6", "G7"]
    assert not set(text.split("absent:")[1].split()) & set(cases[0].question.items)


def test_a_hot_teacher_errs_and_only_what_is_right_is_kept():
    cases = training_cases()
    teacher = Teacher(cases, VOCABULARY, config(50.0))
    first, kept = sampled(teacher, cases, VOCABULARY, np.random.default_rng(0))
    good = accepted(cases, first, VOCABULARY, teacher.config.thresholds)
    assert 0 < good.sum() < len(cases)
    for case, one, two, ok in zip(cases, first, kept, good, strict=True):
        if ok:
            assert two == one
        if two is not None and case.question.task in CLASSIFY:
            assert two.answer == case.truth
        elif two is not None:
            task = case.question.task
            assert jaccard(task, [(case.truth, two.answer)], VOCABULARY)[0] >= 0.9
    assert sum(draft is not None for draft in kept) > good.sum()


def test_a_cell_is_labelled_or_not_in_both_of_its_tasks():
    labelled, unlabelled = divided(training_cases(), 0.5, np.random.default_rng(0))
    places = [
        {task: {c.place for c in part if c.question.task == task} for task in ("annotation",
         "generation", "drug", "perturbation")}
        for part in (labelled, unlabelled)
    ]  # fmt: skip
    for part in places:
        assert part["annotation"] == part["generation"]
        assert len(part["annotation"]) == 6 and len(part["drug"]) == 12
    assert not any(places[0][task] & places[1][task] for task in places[0])
    kinds = [c.truth for c in labelled if c.question.task == "annotation"]
    assert kinds.count(("B_cell",)) == kinds.count(("T_cell",)) == 3


def test_sft_learns_accepted_drafts_and_duals_of_the_truth():
    case = CASES[0]
    wrong, right = Draft("present: G3", ("NK",)), Draft("present: G1", ("T_cell",))
    labelled = [Labelled(case, wrong, right), Labelled(CASES[1], wrong, None)]

    def texts(**options):
        pairs = examples(labelled, VOCABULARY, target="perturbation", **options)
        return [pair["completion"] for pair in pairs], [pair["prompt"] for pair in pairs]

    completions, prompts = texts(reasoning=True, filtering=True)
    assert completions == [" present: G1 type: T_cell", " G1 G5", " G2"]
    assert prompts[1] == "complete cell: G3 G7 type: T_cell =>"
    completions, _ = texts(reasoning=False, filtering=False)
    assert completions == [" type: NK", " G1 G5", " type: NK", " G2"]
