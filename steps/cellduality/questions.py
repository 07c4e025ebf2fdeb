"""Questions of all four tasks from the data of a seed, and the files that hold them.

Training cases are divided into labelled ones, which SFT learns from, and unlabelled ones for RL.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steps.cellduality.cells_data import CellData
from steps.cellduality.config import Prepare
from steps.cellduality.drug_data import LABELS, DrugData
from steps.cellduality.filters import sampled
from steps.cellduality.perturb_data import PerturbData
from steps.cellduality.prompts import Question, columns, from_columns
from steps.cellduality.teacher import Case, Draft, Teacher
from steps.cellduality.vocabulary import Vocabulary, word
from steps.shared.runtime import read_json, reading, stream

HELD = ("validation", "test", "ood")


@dataclass(frozen=True)
class Labelled:
    """A training case with the teacher's first draft, and the first one that is accepted."""

    case: Case
    first: Draft
    kept: Draft | None


@dataclass(frozen=True)
class Data:
    """The three data sets of one seed."""

    cells: CellData
    drugs: DrugData
    perturbations: PerturbData

    def vocabulary(self) -> Vocabulary:
        """Return the words of these data."""
        return Vocabulary(
            genes=tuple(map(word, self.cells.genes)),
            alterations=tuple(map(word, self.drugs.features)),
            factors=tuple(map(word, self.perturbations.genes)),
            types=tuple(map(word, self.cells.types)),
            states=tuple(map(word, self.perturbations.types)),
            drugs=tuple(map(word, self.drugs.drugs)),
            operations=tuple(sorted({op for op, _ in self.perturbations.perturbations})),
            targets=tuple(sorted({word(name) for _, name in self.perturbations.perturbations})),
        )

    def lengths(self) -> dict[str, int]:
        """Return the longest sentence of each task, which an answer is cut at."""
        cells, lines = self.cells.sentence_NK.shape[1], self.drugs.sentence_LK.shape[1]
        after = self.perturbations.sentence_after_NK.shape[1]
        return {"annotation": cells, "generation": cells, "drug": lines, "perturbation": after}


class Maker:
    """Makes the cases of each split; what is hidden is drawn in the order of the calls."""

    def __init__(self, data: Data, config: Prepare, seed: int) -> None:
        """Draw from (cellduality, hide) and (cellduality, pairs) of the seed."""
        self.data, self.config, self.vocabulary = data, config, data.vocabulary()
        self.hide, self.draw = (stream("cellduality", name, seed) for name in ("hide", "pairs"))

    def of(self, split: str) -> list[Case]:
        """Return the cases of a split, task by task."""
        limit = self.config.test_questions
        train = split == "train"
        cells = self._some(self.data.cells.members(split), None if train else limit)
        pairs = self._pairs(split, self.config.drug_pairs if train else limit)
        after = self._some(
            self.data.perturbations.members(split),
            self.config.perturbation_pairs if train else limit,
        )
        return [
            *(self._annotation(int(i)) for i in cells),
            *(self._drug(int(line), int(drug)) for line, drug in pairs),
            *(self._generation(int(i)) for i in cells),
            *(self._perturbation(int(i)) for i in after),
        ]

    def _some(self, places: np.ndarray, limit: int | None) -> np.ndarray:
        if limit is None or len(places) <= limit:
            return places
        return places[np.sort(self.draw.permutation(len(places))[:limit])]

    def _pairs(self, split: str, limit: int) -> np.ndarray:
        pairs = self.data.drugs.pairs(split)
        long_enough = (self.data.drugs.sentence_LK[:, 1] >= 0)[pairs[:, 0]]
        return self._some(pairs[long_enough], limit)

    def _hidden(self, length: int) -> tuple[int, ...]:
        """Return random places, at least one hidden and one visible."""
        count = min(max(1, round(self.config.hidden_share * length)), length - 1)
        return tuple(int(i) for i in np.sort(self.hide.permutation(length)[:count]))

    def _annotation(self, i: int) -> Case:
        cells = self.data.cells
        items = self.vocabulary.sentence("annotation", cells.sentence_NK[i])
        question = Question("annotation", items, hidden=self._hidden(len(items)))
        return Case(question, (self.vocabulary.types[cells.type_N[i]],), (i,))

    def _generation(self, i: int) -> Case:
        cells = self.data.cells
        question = Question("generation", condition=(self.vocabulary.types[cells.type_N[i]],))
        return Case(question, self.vocabulary.sentence("generation", cells.sentence_NK[i]), (i,))

    def _drug(self, line: int, drug: int) -> Case:
        drugs = self.data.drugs
        items = self.vocabulary.sentence("drug", drugs.sentence_LK[line])
        condition = (self.vocabulary.drugs[drug],)
        question = Question("drug", items, condition, self._hidden(len(items)))
        return Case(question, (LABELS[drugs.label_LD[line, drug]],), (line, drug))

    def _perturbation(self, i: int) -> Case:
        data = self.data.perturbations
        before, after = (
            self.vocabulary.sentence("perturbation", sentence_NK[i])
            for sentence_NK in (data.sentence_before_NK, data.sentence_after_NK)
        )
        operation, target = data.perturbations[data.perturbation_N[i]]
        question = Question(
            "perturbation",
            before,
            (operation, word(target)),
            state=self.vocabulary.states[data.type_N[i]],
        )
        return Case(question, after, (i,))


def divided(
    cases: Sequence[Case], share: float, rng: np.random.Generator
) -> tuple[list[Case], list[Case]]:
    """Return labelled and unlabelled cases: `share` of each task's (of cells, of each type's).

    A cell is labelled, or not, in both of its tasks.
    """
    groups: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    for case in cases:
        if case.question.task != "generation":
            kind = case.truth if case.question.task == "annotation" else ()
            groups.setdefault((case.question.task, *kind), []).append(case.place)
    labelled = set()
    for (task, *_), places in groups.items():
        count = max(1, round(share * len(places)))
        labelled |= {(task, places[i]) for i in rng.permutation(len(places))[:count]}

    def is_labelled(case: Case) -> bool:
        task = case.question.task
        return ("annotation" if task == "generation" else task, case.place) in labelled

    both = [[case for case in cases if is_labelled(case) == wanted] for wanted in (True, False)]
    return both[0], both[1]


def make(data: Data, config: Prepare, seed: int) -> dict[str, Any]:
    """Return the contents of questions.json: labelled, unlabelled, validation, test, ood."""
    maker = Maker(data, config, seed)
    train = maker.of("train")
    labelled, unlabelled = divided(
        train, config.labelled_share, stream("cellduality", "labelled", seed)
    )
    teacher = Teacher(labelled, maker.vocabulary, config.teacher)
    rng = stream("cellduality", "teacher", seed)
    first, kept = sampled(teacher, labelled, maker.vocabulary, rng)
    drafted = zip(labelled, first, kept, strict=True)
    return {
        "labelled": [
            as_row(case) | {"first": asdict(one), "kept": asdict(two) if two else None}
            for case, one, two in drafted
        ],
        "unlabelled": [as_row(case) for case in unlabelled],
        **{split: [as_row(case) for case in maker.of(split)] for split in HELD},
    }


def as_row(case: Case) -> dict[str, Any]:
    """Return a case as JSON holds it."""
    return columns(case.question) | {"truth": list(case.truth), "place": list(case.place)}


def read(path: Path) -> tuple[list[Labelled], dict[str, list[Case]]]:
    """Read questions.json: the labelled cases with drafts, and the cases of every other part."""
    content = read_json(path, "labelled", "unlabelled", *HELD)
    with reading(path, "questions as prepare writes them"):
        labelled = [
            Labelled(_case(row), _draft(row["first"]), _draft(row["kept"]))
            for row in content["labelled"]
        ]
        parts = {name: _cases(content[name]) for name in ("unlabelled", *HELD)}
    return labelled, parts


def _cases(rows: Iterable[dict[str, Any]]) -> list[Case]:
    return [_case(row) for row in rows]


def _case(row: dict[str, Any]) -> Case:
    return Case(from_columns(row), tuple(row["truth"]), tuple(row["place"]))


def _draft(value: dict[str, Any] | None) -> Draft | None:
    return value and Draft(value["reasoning"], tuple(value["answer"]))


def counts(made: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return how many cases each part has of each task, and how many drafts were accepted."""
    found = {part: Counter(row["task"] for row in rows) for part, rows in made.items()}
    found["accepted"] = Counter(row["task"] for row in made["labelled"] if row["kept"])
    found["first_accepted"] = Counter(
        row["task"] for row in made["labelled"] if row["kept"] == row["first"]
    )
    return {part: dict(sorted(number.items())) for part, number in found.items()}
