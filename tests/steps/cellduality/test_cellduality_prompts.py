"""Prompts and answers: what is asked, what is read back, what no dual may see."""

import pytest
from cellduality_words import CASES, LENGTHS, VOCABULARY
from hypothesis import given
from hypothesis import strategies as st

from steps.cellduality.prompts import (
    CLASSIFY,
    STRUCTURE,
    Question,
    answer_text,
    columns,
    dual_of,
    from_columns,
    parse,
    primal_prompt,
)
from steps.cellduality.vocabulary import TASKS, Vocabulary, word, word_tokenizer
from steps.shared.runtime import InputError

BY_TASK = {case.question.task: case for case in CASES[::2]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.question.task)
def test_an_answer_is_read_back_with_and_without_reasoning(case):
    task = case.question.task
    for thought in ("", "present: G9 absent: G0", "because the type: is clear"):
        text = answer_text(task, thought, case.truth)
        assert parse(task, text, VOCABULARY, LENGTHS[task]) == case.truth


def test_a_prompt_names_all_that_is_given_and_not_the_answer():
    for case in CASES:
        words = primal_prompt(case.question).split()
        assert {*case.question.items, *case.question.condition} <= set(words)
        if case.question.task in CLASSIFY:
            assert not set(case.truth) & set(words)
    with pytest.raises(KeyError):
        primal_prompt(Question("other"))


def test_what_is_no_answer_is_empty_and_what_is_no_item_is_dropped():
    assert parse("annotation", "T_cell", VOCABULARY, 6) == ()  # no marker
    assert parse("annotation", " type: G3", VOCABULARY, 6) == ()
    assert parse("annotation", " type:", VOCABULARY, 6) == ()
    text = " markers: G1 cell: G1, B_cell G2 A1_mut G1 <eos> G3. G4"
    assert parse("generation", text, VOCABULARY, 3) == ("G1", "G2", "G3")
    assert parse("generation", " cell: NK NK", VOCABULARY, 3) == ()


def test_a_type_written_into_a_cell_does_not_reach_the_dual():
    question = BY_TASK["generation"].question
    answer = parse("generation", " cell: B_cell G1 B_cell G2", VOCABULARY, 6)
    dual = dual_of(question, answer, "perturbation", VOCABULARY)
    assert "B_cell" not in dual.prompt and dual.target == ("B_cell",)


@given(st.data())
def test_no_hidden_gene_is_in_a_dual_prompt(data):
    task = data.draw(st.sampled_from(CLASSIFY))
    items = data.draw(
        st.lists(st.sampled_from(VOCABULARY.items(task)), min_size=2, max_size=8, unique=True)
    )
    hidden = data.draw(st.sets(st.integers(0, len(items) - 1), min_size=1, max_size=len(items) - 1))
    condition = ("Drug_1",) if task == "drug" else ()
    question = Question(task, tuple(items), condition, tuple(sorted(hidden)))
    label = data.draw(st.sampled_from(VOCABULARY.labels(task)))
    # also where the reasoning names every gene of the cell
    text = answer_text(task, "present: " + " ".join(items), (label,))
    dual = dual_of(question, parse(task, text, VOCABULARY, 8), "perturbation", VOCABULARY)
    words = set(dual.prompt.split())
    assert not words & {items[i] for i in hidden}
    assert {w for i, w in enumerate(items) if i not in hidden} <= words
    assert dual.target == tuple(items[i] for i in sorted(hidden))
    assert label in words


def test_the_dual_of_a_perturbation_sees_only_what_does_not_tell():
    case = BY_TASK["perturbation"]
    dual = dual_of(case.question, case.truth, "perturbation", VOCABULARY)
    assert dual.target == ("knockdown", "F0") and "knockdown" not in dual.prompt
    dual = dual_of(case.question, case.truth, "cell_type", VOCABULARY)
    assert dual.target == ("monocyte",)
    assert "monocyte" not in dual.prompt
    assert "before:" not in dual.prompt.split() and "knockdown" in dual.prompt.split()


def test_a_question_survives_as_columns():
    for case in CASES:
        assert from_columns(columns(case.question)) == case.question
        assert "truth" not in columns(case.question)


def test_every_word_of_every_prompt_and_answer_is_one_token():
    tokenizer = word_tokenizer(list(dict.fromkeys([*STRUCTURE, *VOCABULARY.words()])))
    texts = [primal_prompt(case.question) for case in CASES]
    for target in ("perturbation", "cell_type"):
        duals = [dual_of(c.question, c.truth, target, VOCABULARY) for c in CASES]
        texts += [dual.prompt for dual in duals] + [" ".join(dual.target) for dual in duals]
    reasons = ["present: G1 absent: G2", "altered: A0_mut", "markers: G1", "rises: F1 falls: F2"]
    texts += [
        answer_text(t, z, BY_TASK[t].truth) + " <eos>" for t, z in zip(TASKS, reasons, strict=True)
    ]
    for text in texts:
        ids = tokenizer(text).input_ids
        assert len(ids) == len(text.split()) and tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids).split() == text.split()


def test_names_become_words_and_a_vocabulary_is_of_words():
    assert word("CD4+/CD45RA+ Naive  T") == "CD4+/CD45RA+_Naive_T"
    content = VOCABULARY.as_json()
    assert Vocabulary(**{k: tuple(v) for k, v in content.items()}) == VOCABULARY
    for wrong in (("a b",), ("a", "a"), ("",)):
        with pytest.raises(InputError, match="types must be single words, each once"):
            Vocabulary(**{**{k: tuple(v) for k, v in content.items()}, "types": wrong})
