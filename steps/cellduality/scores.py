"""Test scores of one row: what its answers are worth, task by task.

Real and generated cells are compared as sentences: a line of expression on log rank, fitted on
training cells, gives both their values back (`RankLine`), and one PCA of real training cells is the
basis of every row. Perturbed cells have few genes and are compared gene by gene. Shapes: N
answers, G genes, D dimensions, K genes of a sentence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steps.cellduality import arrays as stored
from steps.cellduality import measures
from steps.cellduality.energy import energy_distances
from steps.cellduality.frechet import Basis, scfid
from steps.cellduality.prompts import CLASSIFY, Sentence
from steps.cellduality.sentences import RankLine, ranked_genes
from steps.cellduality.teacher import Case
from steps.cellduality.vocabulary import Vocabulary

Scores = Iterator[tuple[str, float]]
NEIGHBOURS = 3  # of kNN@3


@dataclass(frozen=True)
class Space:
    """How sentences become points: a line of expression on rank, and a basis."""

    line: RankLine
    basis: Basis | None  # None: the genes themselves
    num_genes: int

    def points(self, sentence_NK: np.ndarray) -> np.ndarray:
        """Return sentences as points (N x D)."""
        expression_NG = self.line.expression(sentence_NK, self.num_genes)
        return expression_NG if self.basis is None else self.basis.embed(expression_NG)


class Judge:
    """What the answers of one seed are compared with."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray], vocabulary: Vocabulary, components: int
    ) -> None:
        """Fit both spaces on real training cells."""
        self.arrays, self.vocabulary = arrays, vocabulary
        train = stored.members(arrays, "cells", "train")
        sentence_NK = arrays["cells/sentence_NK"][train]
        line = RankLine.fit(arrays["cells/expression_NG"][train], sentence_NK)
        genes = arrays["cells/expression_NG"].shape[1]
        basis = Basis.fit(line.expression(sentence_NK, genes), components)
        self.cells = Space(line, basis, genes)
        before_NG = arrays["perturbations/before_NG"]
        before_NG = before_NG[stored.members(arrays, "perturbations", "train")]
        genes = before_NG.shape[1]
        line = RankLine.fit(before_NG, ranked_genes(before_NG, genes))
        self.factors = Space(line, None, genes)

    def classification(self, cases: Sequence[Case], answers: Sequence[Sentence]) -> Scores:
        """Yield accuracy and macro-F1 (%) of annotation or drug response."""
        labels = {w: i for i, w in enumerate(self.vocabulary.labels(cases[0].question.task))}
        true_N = np.array([labels[case.truth[0]] for case in cases])
        found_N = np.array([labels[answer[0]] if answer else -1 for answer in answers])
        yield "accuracy", measures.accuracy(true_N, found_N)
        yield "macro_f1", measures.macro_f1(true_N, found_N)

    def generation(self, cases: Sequence[Case], answers: Sequence[Sentence], split: str) -> Scores:
        """Yield kNN@3 (%), scFID over all cells, and diversity within a type, real cells' being 1.

        `cases` ask for the types of the split's cells, once or several times.
        """
        real = stored.members(self.arrays, "cells", split)
        real_NK, label_N = (self.arrays[f"cells/{k}"][real] for k in ("sentence_NK", "type_N"))
        wanted_N = np.array(
            [self.vocabulary.types.index(case.question.condition[0]) for case in cases]
        )
        found_NK = self.vocabulary.matrix("generation", answers)
        real_ND, found_ND = self.cells.points(real_NK), self.cells.points(found_NK)
        k = min(NEIGHBOURS, len(real_ND))
        yield "knn3", measures.knn_accuracy(real_ND, label_N, found_ND, wanted_N, k)
        yield "scfid", self._scfid(real_ND, found_ND)
        ratios, weights = [], []
        for kind in np.unique(label_N):
            own, real_own = wanted_N == kind, label_N == kind
            if min(own.sum(), real_own.sum()) > 1:
                ratios.append(measures.diversity(found_ND[own], real_ND[real_own]))
                weights.append(real_own.sum())
        yield "diversity", float(np.average(ratios, weights=weights))

    def perturbation(self, cases: Sequence[Case], answers: Sequence[Sentence]) -> Scores:
        """Yield the correlation of changes and E-distance, means over perturbations, and scFID."""
        places = np.array([case.place[0] for case in cases])
        condition_N = self.arrays["perturbations/perturbation_N"][places]
        after_NG = self.arrays["perturbations/after_NG"][places]
        before_NG = self.arrays["perturbations/before_NG"][places]
        genes = after_NG.shape[1]
        true, before = (self.factors.points(ranked_genes(x, genes)) for x in (after_NG, before_NG))
        found = self.factors.points(self.vocabulary.matrix("perturbation", answers))
        yield "delta_pearson", measures.delta_pearson(before, found, true, condition_N)
        _, number_N = np.unique(condition_N, return_inverse=True)
        count = number_N.max() + 1
        both = np.concatenate([number_N, number_N + count])
        table = energy_distances(np.concatenate([true, found]), both, 2 * count)
        yield "e_distance", float(np.diag(table[:count, count:]).mean())
        yield "scfid", self._scfid(true, found)

    def _scfid(self, real_ND: np.ndarray, found_ND: np.ndarray) -> float:
        """Return scFID over all cells together: single types have too few for a covariance."""
        one = [np.zeros(len(x), dtype=int) for x in (real_ND, found_ND)]
        return float(scfid(real_ND, one[0], found_ND, one[1], 1)[0])

    def of(
        self, task: str, split: str, cases: Sequence[Case], answers: Sequence[Sentence]
    ) -> Scores:
        """Yield the scores of a task's answers."""
        if task in CLASSIFY:
            yield from self.classification(cases, answers)
        elif task == "generation":
            yield from self.generation(cases, answers, split)
        else:
            yield from self.perturbation(cases, answers)
