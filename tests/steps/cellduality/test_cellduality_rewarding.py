"""Duals and rewards: constrained decoding, no truth, the oracle, TRL's form."""

import numpy as np
import pytest
import torch
from cellduality_words import CASES, LENGTHS, VOCABULARY, word_model

from steps.cellduality import grpo
from steps.cellduality.dual import Allowed, Duals
from steps.cellduality.prompts import answer_text, dual_of
from steps.cellduality.rewarding import GroundTruth, SelfSupervised
from steps.cellduality.teacher import Case

QUESTIONS = [case.question for case in CASES]
TEXTS = [answer_text(case.question.task, "", case.truth) for case in CASES]


def rewarder(target: str = "perturbation") -> SelfSupervised:
    model, tokenizer = word_model()
    reward = SelfSupervised(Duals(tokenizer, VOCABULARY, 3), VOCABULARY, target, LENGTHS)
    reward.model = lambda: model
    return reward


def as_columns(cases, *, truth: bool) -> dict[str, list]:
    rows = [grpo.row(case, truth=truth) for case in cases]
    return {key: [row[key] for row in rows] for key in rows[0]}


@pytest.mark.parametrize("target", ["perturbation", "cell_type"])
def test_shuffled_labels_leave_every_self_supervised_reward_as_it_is(target):
    reward, rng = rewarder(target), np.random.default_rng(0)
    given = as_columns(CASES, truth=True)  # there to be read, and not read
    first = reward([], TEXTS, **given)
    for _ in range(3):
        order = rng.permutation(len(CASES))
        mixed = [
            Case(c.question, CASES[i].truth, c.place) for c, i in zip(CASES, order, strict=True)
        ]
        other = as_columns(mixed, truth=True)
        assert other["truth"] != given["truth"]
        assert reward([], TEXTS, **other) == first
    assert max(first) > 0
    assert reward([], TEXTS, **as_columns(CASES, truth=False)) == first


def test_the_oracle_does_depend_on_labels_and_is_1_for_the_truth():
    oracle = GroundTruth(VOCABULARY, LENGTHS)
    assert oracle([], TEXTS, **as_columns(CASES, truth=True)) == [1.0] * len(CASES)
    swapped = [i ^ 1 for i in range(len(CASES))]  # within each task
    mixed = [Case(c.question, CASES[i].truth, c.place) for c, i in zip(CASES, swapped, strict=True)]
    assert max(oracle([], TEXTS, **as_columns(mixed, truth=True))) < 1
    with pytest.raises(TypeError, match="truth"):
        oracle([], TEXTS, **as_columns(CASES, truth=False))


def test_dual_answers_are_of_the_right_kind_of_words():
    model, tokenizer = word_model()
    duals = [
        (c.question.task, dual_of(c.question, c.truth, "perturbation", VOCABULARY)) for c in CASES
    ]
    for (task, dual), answer in zip(
        duals, Duals(tokenizer, VOCABULARY, 2).answers(model, duals), strict=True
    ):
        assert len(answer) == dual.length
        if dual.choices:
            assert all(w in words for w, words in zip(answer, dual.choices, strict=True))
        else:
            assert set(answer) <= set(VOCABULARY.items(task)) - set(dual.prompt.split())
            assert len(set(answer)) == len(answer)


def test_dual_answers_do_not_depend_on_batches_and_leave_the_mode():
    model, tokenizer = word_model()
    duals = [
        (c.question.task, dual_of(c.question, c.truth, "perturbation", VOCABULARY)) for c in CASES
    ]
    model.train()
    found = [Duals(tokenizer, VOCABULARY, size).answers(model, duals) for size in (1, 3, 50)]
    assert model.training
    model.eval()
    assert found[0] == found[1] == found[2]
    assert Duals(tokenizer, VOCABULARY, 2).answers(model, []) == []


def test_greedy_decoding_is_the_step_by_step_argmax_of_what_is_allowed():
    model, tokenizer = word_model()
    case = CASES[0]
    dual = dual_of(case.question, case.truth, "perturbation", VOCABULARY)
    ids = tokenizer(dual.prompt, return_tensors="pt").input_ids
    known, expected = tokenizer.get_vocab(), []
    for _ in range(dual.length):
        with torch.no_grad():
            scores = model(ids).logits[0, -1]
        free = [g for g in VOCABULARY.genes if g not in dual.prompt.split() and g not in expected]
        expected.append(max(free, key=lambda g: scores[known[g]].item()))
        ids = torch.cat([ids, torch.tensor([[known[expected[-1]]]])], dim=1)
    (found,) = Duals(tokenizer, VOCABULARY, 1).answers(model, [("annotation", dual)])
    assert list(found) == expected


def test_allowed_takes_the_last_mask_for_later_steps_and_nothing_twice():
    masks = torch.tensor([[[True, True, False]]])
    allowed = Allowed(masks, 2, once=True)
    first = allowed(torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 3))
    assert first.tolist() == [[0.0, 0.0, float("-inf")]]
    later = allowed(torch.tensor([[5, 5, 1]]), torch.zeros(1, 3))
    assert later.tolist() == [[0.0, float("-inf"), float("-inf")]]


def test_a_reward_is_that_of_the_dual_worked_out_by_hand(monkeypatch):
    reward = rewarder()
    said = {"annotation": ("G1", "G8"), "drug": ("A2_mut",), "generation": ("NK",)}
    said["perturbation"] = ("knockdown", "F0")
    monkeypatch.setattr(reward.duals, "answers", lambda model, duals: [said[t] for t, _ in duals])
    found = reward.of(None, QUESTIONS, TEXTS)
    # hidden G1 G5, guessed G1 G8: (1 + 1) / 2 over 1 + 1/2 + 1/2; hidden G2, guessed others: 0
    assert found.tolist() == [0.5, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert reward.of(None, QUESTIONS[:2], ["nothing", " type: G1"]).tolist() == [0.0, 0.0]


def test_parts_of_the_reward_are_logged_by_task():
    seen: dict[str, float] = {}
    rewards = rewarder()([], TEXTS, log_metric=seen.__setitem__, **as_columns(CASES, truth=False))
    assert seen["reward_drug"] == pytest.approx(np.mean(rewards[2:4]))
    assert set(seen) == {f"reward_{t}" for t in LENGTHS}


def test_all_rows_of_a_seed_are_asked_the_same_questions_in_turn():
    plain = grpo.prompts(CASES, 20, 3, truth=False)
    oracle = grpo.prompts(CASES, 20, 3, truth=True)
    assert [row["prompt"] for row in plain] == [row["prompt"] for row in oracle]
    assert [row["task"] for row in plain[:4]] == [
        "annotation",
        "drug",
        "generation",
        "perturbation",
    ]
    assert not any("truth" in row for row in plain)
    assert plain != grpo.prompts(CASES, 20, 4, truth=False)
    # every question comes before one comes twice
    own = [row["prompt"] for row in plain if row["task"] == "drug"]
    assert set(own[:2]) == set(own) and len(set(own[:2])) == 2
