"""The four tasks and their complementary duals as text (section 3 of the paper, tasks and duality).

    annotation    cell -> type                     dual: visible genes, type -> hidden genes
    drug          cell line, drug -> response      dual: visible part, drug, response -> hidden
    generation    type -> cell                     dual: cell -> type
    perturbation  cell, perturbation -> cell       dual: both cells -> perturbation, or what else
                                                   `dual_target` names

A `Question` is what the policy is asked, never what is true: whatever is made of questions and
answers alone cannot depend on labels. Names are single words, so that prompts of a word tokenizer
and of a pretrained model's are the same text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from steps.cellduality.vocabulary import Vocabulary

Sentence = tuple[str, ...]
DualTarget = Literal["perturbation", "cell_type"]
ASK = "=>"
MARKERS = {"annotation": "type:", "drug": "response:", "generation": "cell:"}
MARKERS["perturbation"] = "cell:"
CLASSIFY = ("annotation", "drug")
STRUCTURE = (
    *("annotate", "respond", "generate", "perturb", "complete", "recover", "perturbation"),
    *("type", ASK, "cell:", "line:", "drug:", "type:", "response:", "operation:"),
    *("target:", "before:", "after:", "present:", "absent:", "altered:", "markers:", "rises:"),
    "falls:",
)


@dataclass(frozen=True)
class Question:
    """One prompt's content.

    `items` is the given sentence (of generation none), `condition` the drug, the type to generate
    or (operation, target), `hidden` the places of `items` that the dual must reconstruct, `state`
    the type of a cell that is perturbed.
    """

    task: str
    items: Sentence = ()
    condition: Sentence = ()
    hidden: tuple[int, ...] = ()
    state: str = ""

    def parts(self) -> tuple[Sentence, Sentence]:
        """Return the visible and the hidden items, each in order."""
        apart = set(self.hidden)
        visible = tuple(w for i, w in enumerate(self.items) if i not in apart)
        return visible, tuple(self.items[i] for i in self.hidden)


@dataclass(frozen=True)
class Dual:
    """A dual prompt and what it must bring back: `length` items, or one of the given words."""

    prompt: str
    target: Sentence
    length: int
    choices: tuple[tuple[str, ...], ...] = ()


def primal_prompt(question: Question) -> str:
    """Return the text that the policy is asked."""
    items, condition = " ".join(question.items), question.condition
    return {
        "annotation": lambda: f"annotate cell: {items} {ASK}",
        "drug": lambda: f"respond line: {items} drug: {condition[0]} {ASK}",
        "generation": lambda: f"generate type: {condition[0]} {ASK}",
        "perturbation": lambda: (
            f"perturb cell: {items} operation: {condition[0]} target: {condition[1]} {ASK}"
        ),
    }[question.task]()


def answer_text(task: str, reasoning: str, answer: Sentence) -> str:
    """Return a completion: reasoning, if any, then the final answer behind its marker."""
    return " ".join(["", *([reasoning] if reasoning else []), MARKERS[task], *answer])


def parse(task: str, completion: str, vocabulary: Vocabulary, length: int) -> Sentence:
    """Return the final answer of a completion: a label, or at most `length` different items.

    Words that are no items are dropped: a type's name written into a cell reaches no dual.
    An answer that is missing is the empty tuple.
    """
    before, marker, after = completion.rpartition(MARKERS[task])
    if not marker:
        return ()
    words = [w.strip(".,;") for w in after.split()]
    if task in CLASSIFY:
        labels = set(vocabulary.labels(task))
        return tuple(w for w in words[:1] if w in labels)
    return items_of(task, words, vocabulary, length)


def items_of(task: str, words: Sequence[str], vocabulary: Vocabulary, length: int) -> Sentence:
    """Return the first `length` different items among words, in order."""
    places = vocabulary.places[task]
    return tuple(dict.fromkeys(w for w in words if w in places))[:length]


def dual_of(
    question: Question, answer: Sentence, target: DualTarget, vocabulary: Vocabulary
) -> Dual | None:
    """Return the dual task of an answer; None where the answer is empty."""
    if not answer:
        return None
    if question.task in CLASSIFY:
        visible, hidden = question.parts()
        return Dual(_complete(question, visible, answer[0]), hidden, len(hidden))
    if question.task == "generation":
        prompt = f"recover type cell: {' '.join(answer)} {ASK}"
        return Dual(prompt, question.condition, 1, (vocabulary.types,))
    return _perturbation_dual(question, answer, target, vocabulary)


def _complete(question: Question, visible: Sentence, label: str) -> str:
    given = " ".join(visible)
    if question.task == "annotation":
        return f"complete cell: {given} type: {label} {ASK}"
    return f"complete line: {given} drug: {question.condition[0]} response: {label} {ASK}"


def _perturbation_dual(
    question: Question, answer: Sentence, target: DualTarget, vocabulary: Vocabulary
) -> Dual:
    before, after = " ".join(question.items), " ".join(answer)
    if target == "perturbation":
        prompt = f"recover perturbation before: {before} after: {after} {ASK}"
        return Dual(prompt, question.condition, 2, (vocabulary.operations, vocabulary.targets))
    # the cell before would tell its type
    operation, factor = question.condition
    prompt = f"recover type operation: {operation} target: {factor} after: {after} {ASK}"
    return Dual(prompt, (question.state,), 1, (vocabulary.states,))


def columns(question: Question) -> dict[str, object]:
    """Return a question as columns of a data set of prompts."""
    return {
        "prompt": primal_prompt(question),
        "task": question.task,
        "items": list(question.items),
        "condition": list(question.condition),
        "hidden": list(question.hidden),
        "state": question.state,
    }


def from_columns(row: Mapping[str, object]) -> Question:
    """Return the question of `columns`."""
    return Question(
        task=row["task"],
        state=row["state"],
        **{key: tuple(row[key]) for key in ("items", "condition", "hidden")},
    )
