"""What answers are worth: perfect, empty and one-sided answers; specialists; answers of a model."""

import numpy as np
import pytest
import torch
from cellduality_words import CASES, LENGTHS, VOCABULARY, word_model

from steps.cellduality import answering, baselines
from steps.cellduality.evaluate import ABLATIONS, in_tables
from steps.cellduality.prompts import Question, parse, primal_prompt
from steps.cellduality.scores import Judge
from steps.cellduality.sentences import ranked_genes
from steps.cellduality.teacher import Case
from steps.shared.runs import run_of

TRAIN, TEST, OOD = 0, 2, 3


def arrays() -> dict[str, np.ndarray]:
    """60 cells of three types with their own genes, 40 lines, 60 cells before and after."""
    rng = np.random.default_rng(0)
    type_N = np.arange(60) % 3
    expression = rng.exponential(0.3, (60, 12))
    for kind in range(3):
        own = np.ix_(type_N == kind, range(4 * kind, 4 * kind + 4))
        expression[own] += 2 + rng.random((20, 4))
    split_N = np.repeat([TRAIN, TEST], 30)
    altered = (rng.random((40, 8)) < 0.4).astype(np.uint8)
    labels = np.stack([1 - altered[:, 0], altered[:, 1]], axis=1).astype(np.int8)
    before = rng.exponential(1.0, (60, 5)) + 0.1
    kind_N = np.arange(60) % 2
    after = before + np.where(kind_N[:, None] == 0, [3, 0, 0, 0, 0], [0, 0, 0, 0, 3.0])
    found = {
        **{"cells/expression_NG": expression, "cells/sentence_NK": ranked_genes(expression, 6)},
        **{"cells/type_N": type_N, "cells/split_N": split_N},
        **{"drugs/altered_LF": altered, "drugs/label_LD": labels},
        "drugs/split_L": np.repeat([TRAIN, TEST], 20),
        **{"perturbations/before_NG": before, "perturbations/after_NG": after},
        **{"perturbations/perturbation_N": kind_N, "perturbations/split_N": split_N},
    }
    return {key: np.ascontiguousarray(value) for key, value in found.items()}


ARRAYS = arrays()
JUDGE = Judge(ARRAYS, VOCABULARY, 4)


def cells() -> list[Case]:
    """Questions for the type of each test cell; the truth is the cell."""
    return [
        Case(
            Question("generation", condition=(VOCABULARY.types[ARRAYS["cells/type_N"][i]],)),
            VOCABULARY.sentence("generation", ARRAYS["cells/sentence_NK"][i]),
            (i,),
        )
        for i in range(30, 60)
    ]


def perturbed() -> list[Case]:
    after = ranked_genes(ARRAYS["perturbations/after_NG"], 5)
    return [
        Case(Question("perturbation"), VOCABULARY.sentence("perturbation", after[i]), (i,))
        for i in range(30, 60)
    ]


def of(task: str, cases: list[Case], answers: list) -> dict[str, float]:
    return dict(JUDGE.of(task, "test", cases, answers))


def test_the_truth_as_answer_has_perfect_scores():
    own = [case for case in CASES if case.question.task == "annotation"]
    truth = [case.truth for case in own]
    assert of("annotation", own, truth) == {"accuracy": 100, "macro_f1": 100}
    found = of("generation", cells(), [case.truth for case in cells()])
    assert found["scfid"] == pytest.approx(0, abs=1e-9)
    assert found["diversity"] == pytest.approx(1) and found["knn3"] > 90
    found = of("perturbation", perturbed(), [case.truth for case in perturbed()])
    assert found["delta_pearson"] == pytest.approx(1)
    assert found["e_distance"] == pytest.approx(0, abs=1e-6)
    assert found["scfid"] == pytest.approx(0, abs=1e-9)


def test_no_answer_and_the_same_answer_are_seen():
    own = [case for case in CASES if case.question.task == "drug"]
    assert of("drug", own, [()] * len(own)) == {"accuracy": 0, "macro_f1": 0}
    first = {}
    for case in cells():
        first.setdefault(case.question.condition, case.truth)
    found = of("generation", cells(), [first[case.question.condition] for case in cells()])
    assert found["diversity"] == pytest.approx(0, abs=1e-9)
    assert found["knn3"] > 60 and found["scfid"] > 0.1  # right types, and all alike
    assert of("generation", cells(), [()] * 30)["knn3"] < 50
    before = ranked_genes(ARRAYS["perturbations/before_NG"], 5)
    same = [VOCABULARY.sentence("perturbation", row) for row in before[30:]]
    assert of("perturbation", perturbed(), same)["delta_pearson"] == 0


def test_specialists_learn_what_can_be_learnt():
    own = [
        Case(Question("annotation"), (VOCABULARY.types[ARRAYS["cells/type_N"][i]],), (i,))
        for i in range(30, 60)
    ]
    lines = [
        Case(
            Question("drug"), (("sensitive", "resistant")[ARRAYS["drugs/label_LD"][i, d]],), (i, d)
        )
        for i in range(20, 40)
        for d in range(2)
    ]
    for row in ("logistic", "knn"):
        found = baselines.answers(row, "annotation", own, ARRAYS, VOCABULARY)
        assert of("annotation", own, found)["accuracy"] > 90
    found = baselines.answers("logistic", "drug", lines, ARRAYS, VOCABULARY)
    assert of("drug", lines, found)["accuracy"] > 90
    found = baselines.answers("mean_shift", "perturbation", perturbed(), ARRAYS, VOCABULARY)
    assert of("perturbation", perturbed(), found)["delta_pearson"] > 0.99
    assert baselines.answers("mean_shift", "annotation", own, ARRAYS, VOCABULARY) is None
    assert baselines.answers("knn", "generation", cells(), ARRAYS, VOCABULARY) is None


def test_a_drug_that_training_lacks_gets_the_classifier_of_all_others():
    unlabelled = {**ARRAYS, "drugs/label_LD": ARRAYS["drugs/label_LD"].copy()}
    unlabelled["drugs/label_LD"][:, 1] = -1
    one = [Case(Question("drug"), ("sensitive",), (i, 1)) for i in range(20, 40)]
    other = [Case(Question("drug"), ("sensitive",), (i, 0)) for i in range(20, 40)]
    found = [
        baselines.answers("logistic", "drug", cases, unlabelled, VOCABULARY)
        for cases in (one, other)
    ]
    assert found[0] == found[1]


def test_greedy_answers_are_those_of_single_prompts_and_samples_are_seeded():
    model, tokenizer = word_model()
    texts = [primal_prompt(case.question) for case in CASES]

    def said(batch, temperature):
        torch.manual_seed(0)
        settings = {"length": 8, "batch": batch, "temperature": temperature}
        return answering.completions(model, tokenizer, texts, **settings)

    assert said(1, 0.0) == said(3, 0.0) == said(50, 0.0)
    assert said(3, 1.0) == said(3, 1.0) != said(3, 0.0)
    answers = answering.answers(
        *(model, tokenizer, [case.question for case in CASES], VOCABULARY),
        **{"lengths": LENGTHS, "completion_length": 8, "batch": 50, "temperature": 0.0},
    )
    pairs = zip(CASES, said(50, 0.0), strict=True)
    assert answers == [
        parse(c.question.task, text, VOCABULARY, LENGTHS[c.question.task]) for c, text in pairs
    ]


def test_a_row_is_in_its_tables_and_ablations_where_the_seed_has_them_all():
    line = run_of("", "test", "accuracy", 1.0) | {"dataset": "drug"}
    lines = [{**line, "row": row} for row in ("cellduality", "frozen_dual", "knn")]
    lines.append({**line, "row": "cellduality", "table": "rewards"})
    for rows, expected in (
        (ABLATIONS, {("cellduality", "main"), ("cellduality", "ablations"), ("knn", "main"),
                     ("frozen_dual", "ablations"), ("cellduality", "rewards")}),
        (ABLATIONS[:4], {("cellduality", "main"), ("knn", "main"), ("cellduality", "rewards")}),
    ):  # fmt: skip
        found = [(run["row"], run["table"]) for run in in_tables(lines, rows)]
        assert set(found) == expected and len(found) == len(expected)
