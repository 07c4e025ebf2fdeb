"""The teacher of SFT: drafts of reasoning and answers by statistics of the labelled training cases.

It stands where the paper samples a large model. Like one it is often wrong, so that its drafts need
filtering. Shapes: N cases, V items, L labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steps.cellduality.config import TeacherConfig
from steps.cellduality.prompts import CLASSIFY, Question, Sentence
from steps.cellduality.similarity import presence, rank_weights
from steps.cellduality.vocabulary import RESPONSES, Vocabulary


@dataclass(frozen=True)
class Case:
    """A question with its true answer: what SFT and the oracle may see, and evaluation."""

    question: Question
    truth: Sentence
    place: tuple[int, ...]  # of the cell, or of line and drug, in the data


@dataclass(frozen=True)
class Draft:
    """What a teacher says to a question: reasoning and a final answer."""

    reasoning: str
    answer: Sentence


class Markers:
    """How much more often an item is in sentences of one label than in the others: log-odds."""

    def __init__(self, present_NV: np.ndarray, labels_N: np.ndarray, num_labels: int) -> None:
        """Count, with one case of each kind more than there are."""
        own_LV = np.stack([present_NV[labels_N == k].sum(0) for k in range(num_labels)])
        count_L1 = np.bincount(labels_N, minlength=num_labels)[:, None]
        self.in_LV = (own_LV + 1) / (count_L1 + 2)
        rest_LV = (present_NV.sum(0) - own_LV + 1) / (len(labels_N) - count_L1 + 2)
        self.odds_LV = np.log(self.in_LV) - np.log(rest_LV)
        self.prior_L = np.log((count_L1[:, 0] + 1) / (len(labels_N) + num_labels))

    def scores(self, present_V: np.ndarray) -> np.ndarray:
        """Return naive Bayes' log-probability of each label (L), up to a constant."""
        log_LV = np.where(present_V > 0, np.log(self.in_LV), np.log1p(-self.in_LV))
        return self.prior_L + log_LV.sum(1)

    def top(self, label: int, among_V: np.ndarray, count: int) -> list[int]:
        """Return the strongest markers of a label among some items, at most `count`."""
        odds_V = np.where(among_V, self.odds_LV[label], -np.inf)
        best = np.argsort(-odds_V, kind="stable")[:count]
        return [int(i) for i in best if odds_V[i] > 0]


class Teacher:
    """Drafts for the questions of all four tasks, of labelled training cases."""

    def __init__(
        self, cases: Sequence[Case], vocabulary: Vocabulary, config: TeacherConfig
    ) -> None:
        """Count markers, and keep the cases, which are recalled."""
        self.vocabulary, self.config, self.count = vocabulary, config, config.num_markers
        by_task = {t: [c for c in cases if c.question.task == t] for t in ("generation", "drug")}
        cells = [case for case in cases if case.question.task == "annotation"]
        self.markers = self._markers("annotation", cells, vocabulary.types)
        self.drug_markers = {
            drug: self._markers(
                "drug", [c for c in by_task["drug"] if c.question.condition[0] == drug], RESPONSES
            )
            for drug in vocabulary.drugs
        }
        self.cells = [case.truth for case in by_task["generation"]]
        types = [case.question.condition[0] for case in by_task["generation"]]
        weights_NV = rank_weights("generation", self.cells, vocabulary)
        self.recall = {
            t: weights_NV @ weights_NV[[i for i, own in enumerate(types) if own == t]].mean(0)
            for t in set(types)
        }
        self.pairs = [case for case in cases if case.question.task == "perturbation"]
        self.before_NV = rank_weights(
            "perturbation", [case.question.items for case in self.pairs], vocabulary
        )

    def _markers(self, task: str, cases: list[Case], labels: Sequence[str]) -> Markers:
        numbers = np.array([labels.index(case.truth[0]) for case in cases], dtype=int)
        sentences = [case.question.items for case in cases]
        return Markers(presence(task, sentences, self.vocabulary), numbers, len(labels))

    def draft(self, case: Case, rng: np.random.Generator) -> Draft:
        """Return one draft for a case's question; its true answer is not looked at."""
        question = case.question
        if question.task in CLASSIFY:
            return self._classify(question, rng)
        if question.task == "generation":
            return self._generate(question, rng)
        return self._perturb(case, rng)

    def _classify(self, question: Question, rng: np.random.Generator) -> Draft:
        task, vocabulary = question.task, self.vocabulary
        markers = self.markers
        if task == "drug":
            markers = self.drug_markers[question.condition[0]]
        present_V = presence(task, [question.items], vocabulary)[0]
        scores_L = markers.scores(present_V) / self.config.temperature
        order = np.argsort(-(scores_L + rng.gumbel(size=len(scores_L))), kind="stable")
        chosen, other = int(order[0]), int(order[1])
        items = vocabulary.items(task)
        seen = [items[i] for i in markers.top(chosen, present_V > 0, self.count)]
        missed = [items[i] for i in markers.top(other, present_V == 0, self.count)]
        name = "present:" if task == "annotation" else "altered:"
        reasoning = " ".join([name, *seen, "absent:", *missed])
        return Draft(reasoning, (vocabulary.labels(task)[chosen],))

    def _generate(self, question: Question, rng: np.random.Generator) -> Draft:
        wanted = question.condition[0]
        cell = self.cells[self._pick(self.recall[wanted], rng)]
        has_V = presence("generation", [cell], self.vocabulary)[0] > 0
        top = self.markers.top(self.vocabulary.types.index(wanted), has_V, self.count)
        genes = self.vocabulary.genes
        return Draft(" ".join(["markers:", *(genes[i] for i in top)]), cell)

    def _perturb(self, case: Case, rng: np.random.Generator) -> Draft:
        question = case.question
        own_V = rank_weights("perturbation", [question.items], self.vocabulary)[0]
        alike_N = self.before_NV @ own_V
        for i, pair in enumerate(self.pairs):
            alike_N[i] += sum(
                a == b for a, b in zip(pair.question.condition, question.condition, strict=True)
            )
            if pair is case:
                alike_N[i] = -np.inf
        after = self.pairs[self._pick(alike_N, rng)].truth
        place = {w: i for i, w in enumerate(question.items)}
        new = {w: i for i, w in enumerate(after)}
        last = len(self.vocabulary.factors)
        moved = {
            w: place.get(w, last) - new.get(w, last)
            for w in self.vocabulary.factors
            if w in place or w in new
        }
        rises = sorted((w for w in moved if moved[w] > 0), key=lambda w: -moved[w])[: self.count]
        falls = sorted((w for w in moved if moved[w] < 0), key=lambda w: moved[w])[: self.count]
        return Draft(" ".join(["rises:", *rises, "falls:", *falls]), after)

    def _pick(self, scores_N: np.ndarray, rng: np.random.Generator) -> int:
        """Return a place drawn by softmax of scores over the temperature."""
        scores_N = scores_N / self.config.recall_temperature
        return int(np.argmax(scores_N + rng.gumbel(size=len(scores_N))))
