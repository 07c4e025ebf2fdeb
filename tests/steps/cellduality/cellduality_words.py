"""A small vocabulary, questions and a word-level model for CellDuality's tests."""

import functools
import tempfile
from pathlib import Path

from steps.cellduality.config import NewModel
from steps.cellduality.prompts import Question
from steps.cellduality.teacher import Case
from steps.cellduality.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    genes=tuple(f"G{i}" for i in range(12)),
    alterations=tuple(f"A{i}_mut" for i in range(8)),
    factors=tuple(f"F{i}" for i in range(5)),
    types=("B_cell", "T_cell", "NK"),
    states=("progenitor", "monocyte"),
    drugs=("Drug_1", "Drug_2"),
    operations=("knockdown", "overexpression"),
    targets=tuple(f"F{i}" for i in range(5)),
)
LENGTHS = {"annotation": 6, "generation": 6, "drug": 5, "perturbation": 5}
CASES = [
    Case(Question("annotation", ("G3", "G1", "G7", "G5"), hidden=(1, 3)), ("T_cell",), (0,)),
    Case(Question("annotation", ("G2", "G9", "G4"), hidden=(0,)), ("NK",), (1,)),
    Case(
        Question("drug", ("A1_mut", "A4_mut", "A2_mut"), ("Drug_2",), hidden=(2,)),
        ("sensitive",),
        (0, 1),
    ),
    Case(Question("drug", ("A0_mut", "A7_mut"), ("Drug_1",), hidden=(0,)), ("resistant",), (1, 0)),
    Case(Question("generation", condition=("B_cell",)), ("G1", "G2", "G3"), (0,)),
    Case(Question("generation", condition=("NK",)), ("G4", "G2"), (1,)),
    Case(
        Question("perturbation", ("F1", "F0"), ("knockdown", "F0"), state="monocyte"),
        ("F1", "F4"),
        (0,),
    ),
    Case(
        Question("perturbation", ("F2",), ("overexpression", "F3"), state="progenitor"),
        ("F3", "F2"),
        (1,),
    ),
]


@functools.cache
def word_model():
    """Return an untrained model of the vocabulary's words and its tokenizer."""
    from steps.cellduality import policy

    config = NewModel(width=16, layers=1, heads=2, context=64)
    with tempfile.TemporaryDirectory() as folder:
        policy.make_base(config, VOCABULARY, 0, Path(folder))
        return policy.load(Path(folder))
