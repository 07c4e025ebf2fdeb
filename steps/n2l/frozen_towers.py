"""Features of frozen pretrained towers: EfficientNet-Lite0 for images, MiniLM for names.

Both are loaded from unpacked files of packages. Shapes: N images or names, F features.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from steps.n2l import efficientnet
from steps.shared.pretrained import load_pretrained
from steps.shared.runtime import progress, reading

BATCH = 32  # images or names per forward pass


@torch.inference_mode()
def image_features(
    images: Iterable[np.ndarray], count: int, weights: Path, label: str
) -> torch.Tensor:
    """Return EfficientNet's features (N x 1280) of `count` images (Y, X, 3) of bytes."""
    model = efficientnet.load(weights)
    found, batch = [], []
    for image in progress(images, total=count, label=label):
        batch.append(image)
        if len(batch) == BATCH:
            found.append(model.features(_pixels(batch)))
            batch = []
    if batch:
        found.append(model.features(_pixels(batch)))
    return torch.cat(found)


def _pixels(batch: list[np.ndarray]) -> torch.Tensor:
    """Return bytes as a batch in [-1, 1], channels last in memory."""
    return torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2).float() / 127.5 - 1


@torch.inference_mode()
def name_features(names: Sequence[str], folder: Path) -> torch.Tensor:
    """Return MiniLM's embeddings (N x 384): the mean over tokens, of length 1."""
    from transformers import AutoModel, AutoTokenizer

    what = "a text model that can be loaded"
    with reading(folder, what):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = load_pretrained(AutoModel, folder, what, local_files_only=True).eval()
    found = []
    for begin in range(0, len(names), BATCH):
        batch = tokenizer(list(names[begin : begin + BATCH]), padding=True, return_tensors="pt")
        states_NTF = model(**batch).last_hidden_state
        mask_NT1 = batch["attention_mask"][..., None]
        mean_NF = (states_NTF * mask_NT1).sum(1) / mask_NT1.sum(1)
        found.append(torch.nn.functional.normalize(mean_NF, dim=1))
    return torch.cat(found)
