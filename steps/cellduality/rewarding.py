"""Rewards of GRPO: of the dual task without any true output, or of the true output (the oracle).

Both are reward functions as TRL calls them. The self-supervised one is a function of questions and
completions alone; a question holds no true answer.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steps.cellduality.dual import Duals
from steps.cellduality.prompts import (
    CLASSIFY,
    Dual,
    DualTarget,
    Question,
    Sentence,
    dual_of,
    from_columns,
    parse,
)
from steps.cellduality.similarity import jaccard
from steps.cellduality.vocabulary import TASKS, Vocabulary

COLUMNS = ("task", "items", "condition", "hidden", "state")


class SelfSupervised:
    """r(y | x) of the dual: RWJS of hidden and reconstructed items, or the label read back."""

    __name__ = "self_supervised"

    def __init__(
        self, duals: Duals, vocabulary: Vocabulary, target: DualTarget, lengths: dict[str, int]
    ) -> None:
        """Take what answers duals; `model` says which model does, and is set by the trainer."""
        self.duals, self.vocabulary, self.target, self.lengths = duals, vocabulary, target, lengths
        self.model: Callable[[], Any] | None = None

    def __call__(self, prompts: list, completions: list, **columns: Any) -> list[float]:
        """Return the reward of each completion, as TRL asks for it."""
        questions = questions_of(columns)
        rewards = self.of(self.model(), questions, completions)
        log_by_task(columns.get("log_metric"), questions, rewards)
        return rewards.tolist()

    def of(self, model: Any, questions: Sequence[Question], completions: list[str]) -> np.ndarray:
        """Return the reward of each completion (n,); one without an answer gets 0."""
        answers = [
            parse(q.task, text, self.vocabulary, self.lengths[q.task])
            for q, text in zip(questions, completions, strict=True)
        ]
        return self.of_answers(model, questions, answers)

    def of_answers(
        self, model: Any, questions: Sequence[Question], answers: Sequence[Sentence]
    ) -> np.ndarray:
        """Return the reward of each final answer (n,)."""
        duals = [
            dual_of(question, answer, self.target, self.vocabulary)
            for question, answer in zip(questions, answers, strict=True)
        ]
        asked = [i for i, dual in enumerate(duals) if dual is not None]
        found = self.duals.answers(model, [(questions[i].task, duals[i]) for i in asked])
        return self._compare(questions, asked, [duals[i] for i in asked], found)

    def _compare(
        self, questions: Sequence[Question], asked: list[int], duals: list[Dual], found: list
    ) -> np.ndarray:
        rewards = np.zeros(len(questions))
        for task in TASKS:
            own = [k for k, i in enumerate(asked) if questions[i].task == task]
            places = [asked[k] for k in own]
            pairs = [(duals[k].target, found[k]) for k in own]
            if task in CLASSIFY and own:
                rewards[places] = jaccard(task, pairs, self.vocabulary)
            elif own:
                rewards[places] = [float(target == answer) for target, answer in pairs]
        return rewards


class GroundTruth:
    """The oracle's reward: 1[a = a*], or RWJS of the true and the generated cell."""

    __name__ = "ground_truth"

    def __init__(self, vocabulary: Vocabulary, lengths: dict[str, int]) -> None:
        """Take the words of all tasks and how long their sentences are."""
        self.vocabulary, self.lengths = vocabulary, lengths

    def __call__(
        self, prompts: list, completions: list, truth: list[Sentence], **columns: Any
    ) -> list[float]:
        """Return the reward of each completion, as TRL asks for it."""
        questions = questions_of(columns)
        rewards = np.zeros(len(questions))
        for i, (q, text) in enumerate(zip(questions, completions, strict=True)):
            answer = parse(q.task, text, self.vocabulary, self.lengths[q.task])
            if q.task in CLASSIFY:
                rewards[i] = float(answer == tuple(truth[i]))
            else:
                rewards[i] = jaccard(q.task, [(tuple(truth[i]), answer)], self.vocabulary)[0]
        log_by_task(columns.get("log_metric"), questions, rewards)
        return rewards.tolist()


def questions_of(columns: dict[str, Any]) -> list[Question]:
    """Return the questions of TRL's columns, each a list over completions."""
    rows = zip(*(columns[name] for name in COLUMNS), strict=True)
    return [from_columns(dict(zip(COLUMNS, row, strict=True))) for row in rows]


def log_by_task(
    log_metric: Callable[[str, float], None] | None,
    questions: Sequence[Question],
    rewards: np.ndarray,
) -> None:
    """Log the mean reward of every task in the batch: the parts of the mean that TRL logs."""
    for task in TASKS:
        own = [r for q, r in zip(questions, rewards, strict=True) if q.task == task]
        if log_metric is not None and own:
            log_metric(f"reward_{task}", float(np.mean(own)))
