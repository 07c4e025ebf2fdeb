"""What is measured of a language model, while it trains and when it is judged."""

from pathlib import Path

import torch
from torch import nn

from steps.quest.attention import largest_logit
from steps.shared.loss import cross_entropy
from steps.shared.runtime import InputError
from steps.shared.token_files import Batch


def token_file(manifest: Path, split: str) -> Path:
    """Return the token file of a split, beside prepare's manifest."""
    return manifest.with_name(f"{manifest.stem}_{split}.npy")


@torch.no_grad()
def measure(model: nn.Module, windows: list[Batch]) -> dict[str, float]:
    """Return the mean loss (nats per token) and the largest |logit| of the attention."""
    if not windows:
        raise InputError("no window of tokens to measure on")
    model.eval()
    device = next(model.parameters()).device
    nats, count = 0.0, 0
    largest = torch.zeros((), device=device)
    for ids_BT, targets_BT in windows:
        scores, logits = model(ids_BT.to(device), explicit=True)
        targets = targets_BT.flatten().to(device)
        nats += float(cross_entropy(scores.flatten(0, 1).float(), targets)) * len(targets)
        count += len(targets)
        largest = torch.maximum(largest, largest_logit(logits))  # keeps what is not finite
    return {"loss": nats / count, "max_logit": float(largest)}
