"""What a model answers to questions: greedy or sampled, in batches. Shapes: B prompts."""

from collections.abc import Sequence
from typing import Any

import torch

from steps.cellduality.prompts import Question, Sentence, parse, primal_prompt
from steps.cellduality.vocabulary import Vocabulary


@torch.no_grad()
def completions(
    model: Any, tokenizer: Any, texts: Sequence[str], *, length: int, batch: int, temperature: float
) -> list[str]:
    """Return a completion of each prompt, at most `length` tokens; temperature 0 is greedy.

    Sampling draws from torch's global generator, which the caller seeds.
    """
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i].split()), i))
    found = [""] * len(texts)
    drawn = {"do_sample": True, "temperature": temperature} if temperature else {
        "do_sample": False, "temperature": None}  # fmt: skip
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        tokens = tokenizer([texts[i] for i in places], return_tensors="pt", padding=True)
        tokens.pop("token_type_ids", None)
        tokens = tokens.to(model.device)
        made = model.generate(
            **tokens,
            **drawn,
            max_new_tokens=length,
            top_k=None,
            top_p=None,
            pad_token_id=tokenizer.pad_token_id,
        )
        given = tokens.input_ids.shape[1]
        texts_out = tokenizer.batch_decode(made[:, given:], skip_special_tokens=True)
        for place, text in zip(places, texts_out, strict=True):
            found[place] = text
    return found


def answers(
    model: Any,
    tokenizer: Any,
    questions: Sequence[Question],
    vocabulary: Vocabulary,
    *,
    lengths: dict[str, int],
    completion_length: int,
    batch: int,
    temperature: float,
) -> list[Sentence]:
    """Return the final answer to each question; one that cannot be read is empty."""
    texts = completions(
        model,
        tokenizer,
        [primal_prompt(question) for question in questions],
        length=completion_length,
        batch=batch,
        temperature=temperature,
    )
    return [
        parse(question.task, text, vocabulary, lengths[question.task])
        for question, text in zip(questions, texts, strict=True)
    ]
