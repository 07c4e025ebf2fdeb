"""Answers of a model to dual prompts: greedy, in batches, and of the right kind of words.

With a word tokenizer decoding is constrained: items come once each and none that is visible, labels
are labels. Shapes: B prompts, V tokens, S steps.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from steps.cellduality.prompts import Dual, Sentence
from steps.cellduality.vocabulary import Vocabulary


class Duals:
    """What answers dual prompts; which model does is said at every call."""

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary, batch_size: int) -> None:
        """Take the tokenizer of the models; `batch_size` prompts are answered at once."""
        self.tokenizer, self.batch_size = tokenizer, batch_size
        known, words = tokenizer.get_vocab(), vocabulary.words()
        self.vocabulary = vocabulary
        self.ids = {w: known[w] for w in words} if all(w in known for w in words) else None
        self.tokens_per_word = 1
        if self.ids is None:
            pieces = tokenizer([f" {w}" for w in words], add_special_tokens=False).input_ids
            self.tokens_per_word = max(map(len, pieces))

    def answers(self, model: Any, duals: Sequence[tuple[str, Dual]]) -> list[Sentence]:
        """Return the words of every answer; `duals` are (task, dual), in any order."""
        order = sorted(range(len(duals)), key=lambda i: (_kind(duals[i]), len(duals[i][1].prompt)))
        found: list[Sentence] = [()] * len(duals)
        training = model.training
        model.eval()
        for _, group in groupby(order, key=lambda i: _kind(duals[i])):
            places = list(group)
            for start in range(0, len(places), self.batch_size):
                chunk = places[start : start + self.batch_size]
                answers = self._batch(model, [duals[i] for i in chunk])
                for place, answer in zip(chunk, answers, strict=True):
                    found[place] = answer
        model.train(training)
        return found

    @torch.no_grad()
    def _batch(self, model: Any, duals: list[tuple[str, Dual]]) -> list[Sentence]:
        texts = [dual.prompt for _, dual in duals]
        tokens = self.tokenizer(texts, return_tensors="pt", padding=True, padding_side="left")
        tokens = tokens.to(model.device)
        tokens.pop("token_type_ids", None)
        steps = max(dual.length for _, dual in duals) * self.tokens_per_word
        start = tokens.input_ids.shape[1]
        constraint = []
        if self.ids is not None:
            masks = self._allowed(duals, model.config.vocab_size).to(model.device)
            constraint = [Allowed(masks, start, once=not duals[0][1].choices)]
        else:
            steps += duals[0][1].length
        made = model.generate(
            **tokens,
            do_sample=False,
            max_new_tokens=steps,
            logits_processor=constraint,
            pad_token_id=self.tokenizer.pad_token_id,
            temperature=None,
            top_p=None,
            top_k=None,
        )
        texts = self.tokenizer.batch_decode(made[:, start:], skip_special_tokens=True)
        return [self._read(*dual, text) for dual, text in zip(duals, texts, strict=True)]

    def _read(self, task: str, dual: Dual, text: str) -> Sentence:
        words = [w.strip(".,;") for w in text.split()]
        if dual.choices:
            return tuple(words[: dual.length])
        places = self.vocabulary.places[task]
        return tuple(dict.fromkeys(w for w in words if w in places))[: dual.length]

    def _allowed(self, duals: list[tuple[str, Dual]], size: int) -> Tensor:
        """Return which tokens are allowed (S or 1, B, V)."""
        task, first = duals[0]
        if first.choices:
            masks = torch.zeros(len(first.choices), len(duals), size, dtype=torch.bool)
            for step, words in enumerate(first.choices):
                masks[step, :, [self.ids[w] for w in words]] = True
            return masks
        masks = torch.zeros(1, len(duals), size, dtype=torch.bool)
        masks[:, :, [self.ids[w] for w in self.vocabulary.items(task)]] = True
        for row, (_, dual) in enumerate(duals):
            masks[0, row, [self.ids[w] for w in dual.prompt.split() if w in self.ids]] = False
        return masks


class Allowed:
    """A logits processor: only allowed tokens, and with `once` none for a second time."""

    def __init__(self, masks: Tensor, start: int, *, once: bool) -> None:
        """Take the masks of the steps (S x B x V), the last for all later ones."""
        self.masks, self.start, self.once = masks, start, once

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return scores (B x V) with -inf where a token is not allowed."""
        step = input_ids.shape[1] - self.start
        mask_BV = self.masks[min(step, len(self.masks) - 1)]
        if self.once and step:
            mask_BV = mask_BV.scatter(1, input_ids[:, self.start :], False)
        return scores.masked_fill(~mask_BV, float("-inf"))


def _kind(pair: tuple[str, Dual]) -> tuple[str, tuple]:
    return pair[0], pair[1].choices
