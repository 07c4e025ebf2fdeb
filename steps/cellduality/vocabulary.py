"""The words of all tasks: genes, alterations, types, drugs, ...; and a tokenizer of just these."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steps.shared.runtime import InputError, read_json, reading

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, END = "<pad>", "<unk>", "<eos>"
RESPONSES = ("resistant", "sensitive")
TASKS = ("annotation", "drug", "generation", "perturbation")
SENTENCES = {  # of what a task's sentence is made
    "annotation": "genes",
    "generation": "genes",
    "drug": "alterations",
    "perturbation": "factors",
}


def word(name: str) -> str:
    """Return a name as one word, as prompts hold it."""
    return "_".join(name.split())


@dataclass(frozen=True)
class Vocabulary:
    """All words that a prompt or an answer may name; each is one word."""

    genes: tuple[str, ...]
    alterations: tuple[str, ...]
    factors: tuple[str, ...]
    types: tuple[str, ...]
    states: tuple[str, ...]
    drugs: tuple[str, ...]
    operations: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        for kind, words in asdict(self).items():
            if len(set(words)) < len(words) or any(word(w) != w or not w for w in words):
                raise InputError(f"vocabulary: {kind} must be single words, each once")

    @classmethod
    def read(cls, path: Path) -> "Vocabulary":
        """Read vocabulary.json, as prepare writes it."""
        content = read_json(path)
        with reading(path, "a vocabulary as prepare writes it"):
            return cls(**{kind: tuple(words) for kind, words in content.items()})

    def as_json(self) -> dict[str, list[str]]:
        """Return what `read` reads."""
        return {kind: list(words) for kind, words in asdict(self).items()}

    def items(self, task: str) -> tuple[str, ...]:
        """Return the words that a task's sentences are made of."""
        return getattr(self, SENTENCES[task])

    def labels(self, task: str) -> tuple[str, ...]:
        """Return the answers of a classification task."""
        return {"annotation": self.types, "drug": RESPONSES}[task]

    @cached_property
    def places(self) -> Mapping[str, Mapping[str, int]]:
        """For each task: item -> its number."""
        return {task: {w: i for i, w in enumerate(self.items(task))} for task in TASKS}

    def sentence(self, task: str, numbers: Sequence[int]) -> tuple[str, ...]:
        """Return the words of one row of a sentence matrix, which ends in -1."""
        items = self.items(task)
        return tuple(items[number] for number in numbers if number >= 0)

    def matrix(self, task: str, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Return sentences as item numbers (N x longest, int32), padded with -1."""
        places = self.places[task]
        out = np.full((len(sentences), max(map(len, sentences), default=0) or 1), -1, np.int32)
        for row, sentence in zip(out, sentences, strict=True):
            row[: len(sentence)] = [places[item] for item in sentence]
        return out

    def words(self) -> list[str]:
        """Return every word once, in a fixed order."""
        every: list[Any] = [*asdict(self).values(), RESPONSES]
        return list(dict.fromkeys(w for words in every for w in words))


def word_tokenizer(words: Sequence[str]) -> "PreTrainedTokenizerFast":
    """Return a tokenizer in which each of `words`, set apart by white space, is one token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    numbers = {w: i for i, w in enumerate([PAD, UNKNOWN, END, *words])}
    inner = Tokenizer(models.WordLevel(numbers, unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        padding_side="left",
    )
