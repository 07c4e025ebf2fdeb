"""What is measured of a vision transformer, while it trains and when it is judged."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest.attention import largest_logit
from steps.quest.images_data import Chunks


@torch.no_grad()
def measure(model: nn.Module, chunks: Chunks) -> dict[str, float]:
    """Return the mean loss (nats), accuracy (%) and largest |logit| of the attention."""
    model.eval()
    device = next(model.parameters()).device
    nats, right, count = 0.0, 0, 0
    largest = torch.zeros((), device=device)
    for images, labels in chunks:
        scores, logits = model(images.to(device), explicit=True)
        labels = labels.to(device)
        nats += float(F.cross_entropy(scores.float(), labels, reduction="sum"))
        right += num_right(scores, labels)
        largest = torch.maximum(largest, largest_logit(logits))  # keeps what is not finite
        count += len(labels)
    return {"loss": nats / count, "accuracy": 100 * right / count, "max_logit": float(largest)}


@torch.no_grad()
def accuracy(model: nn.Module, chunks: Chunks) -> float:
    """Return the share of images (%) whose class has the highest score."""
    device = next(model.parameters()).device
    right = count = 0
    for images, labels in chunks:
        right += num_right(model(images.to(device)), labels.to(device))
        count += len(labels)
    return 100 * right / count


def num_right(scores_BK: Tensor, labels_B: Tensor) -> int:
    """Return how many answers are right; one with a score that is not finite is not."""
    right_B = (scores_BK.argmax(-1) == labels_B) & scores_BK.isfinite().all(-1)
    return int(right_B.sum())
