"""Tokenizers of WSM: printable characters (no file needed), or one of the hub by id."""

from typing import Protocol

import numpy as np

FIRST, LAST = 32, 126  # the printable ASCII range; the newline comes after it


class Tokenizer(Protocol):
    """What prepare needs: a vocabulary size, and text -> token ids."""

    vocabulary: int

    def encode(self, text: str) -> np.ndarray:
        """Return the token ids of `text`, one-dimensional."""


class Characters:
    """One token a character: printable ASCII and the newline; anything else is an error."""

    vocabulary = LAST - FIRST + 2

    def encode(self, text: str) -> np.ndarray:
        """Return uint8 ids, one a character."""
        codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
        ids = np.where(codes == ord("\n"), LAST - FIRST + 1, codes - FIRST)
        if ids.max(initial=0) >= self.vocabulary:
            raise ValueError("text holds control characters")
        return ids.astype(np.uint8)

    def decode(self, ids: np.ndarray) -> str:
        """Return the text of token ids."""
        return "".join("\n" if i == LAST - FIRST + 1 else chr(i + FIRST) for i in ids.tolist())


class Hub:
    """A transformers tokenizer by hub id or folder, without special tokens."""

    def __init__(self, name: str) -> None:
        """Load it; what transformers says when it cannot is left as it is."""
        from transformers import AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(name)
        self.vocabulary = len(self._tokenizer)

    def encode(self, text: str) -> np.ndarray:
        """Return uint32 ids."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False), dtype=np.uint32)


def load_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer that params.yaml names."""
    return Characters() if name == "characters" else Hub(name)
