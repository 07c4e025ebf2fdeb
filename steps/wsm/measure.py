"""What is measured of a language model beside its loss: multiple choice."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from steps.shared.token_files import Batch
from steps.wsm.data import padded
from steps.wsm.model import device_of, target_logits


def answer_batches(items: list[dict[str, Any]], *, batch: int, context: int) -> list[Batch]:
    """Return batches whose targets are the true options of `items`, given their prompts."""
    pairs = [
        (item["prompt"] + item["options"][item["answer"]], len(item["prompt"])) for item in items
    ]
    return [padded(pairs[begin : begin + batch], context) for begin in range(0, len(pairs), batch)]


@torch.no_grad()
def choose(model: nn.Module, items: list[dict[str, Any]], *, batch: int, context: int) -> list[int]:
    """Return, per item, 1 if the true option has the highest mean log-likelihood per token, else 0.

    An item is {prompt: tokens, options: [tokens, ...], answer: index}.
    """
    model.eval()
    pairs = [
        (item["prompt"] + option, len(item["prompt"]))
        for item in items
        for option in item["options"]
    ]
    scores: list[float] = [0.0] * len(pairs)
    # alike in length, so that a batch holds little padding
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][0]))
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        batch_pairs = [pairs[index] for index in chosen]
        ids_BT, targets_BT = (part.to(device_of(model)) for part in padded(batch_pairs, context))
        found = F.cross_entropy(*target_logits(model, ids_BT, targets_BT), reduction="none")
        kept_BT = targets_BT >= 0
        losses_BT = torch.zeros(kept_BT.shape, device=found.device).masked_scatter_(kept_BT, found)
        means = losses_BT.sum(1) / kept_BT.sum(1)
        for index, mean in zip(chosen, means.tolist(), strict=True):
            scores[index] = -mean
    width = len(items[0]["options"])
    picks = torch.tensor(scores).view(len(items), width).argmax(1).tolist()
    return [int(pick == item["answer"]) for pick, item in zip(picks, items, strict=True)]
