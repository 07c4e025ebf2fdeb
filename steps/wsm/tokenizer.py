"""Tokenizers of WSM: printable characters (no file needed), or one of the hub by id."""

from typing import Protocol

import numpy as np

from steps.shared.runtime import InputError

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
        codes = np.frombuffer(text.encode("ascii", errors="replace"), dtype=np.uint8)
        newline = codes == ord("\n")
        if not text.isascii() or (~newline & ((codes < FIRST) | (codes > LAST))).any():
            raise InputError(f"{text[:40]!r}: holds other than printable ASCII and newlines")
        return np.where(newline, LAST - FIRST + 1, codes - FIRST).astype(np.uint8)

    def decode(self, ids: np.ndarray) -> str:
        """Return the text of token ids."""
        return "".join("\n" if i == LAST - FIRST + 1 else chr(i + FIRST) for i in ids.tolist())


class Hub:
    """A transformers tokenizer by hub id or folder, without special tokens."""

    def __init__(self, name: str) -> None:
        """Load it."""
        from transformers import AutoTokenizer

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"tokenizer {name}: cannot be loaded ({reason})") from None
        self.vocabulary = len(self._tokenizer)

    def encode(self, text: str) -> np.ndarray:
        """Return uint32 ids."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False), dtype=np.uint32)


def load_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer that params.yaml names."""
    return Characters() if name == "characters" else Hub(name)
