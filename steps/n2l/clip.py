"""A small CLIP trained here: an image tower and a text tower into one space, a contrastive loss.

Shapes: B images of a batch, U different names of a batch, L letters of a name, F features,
D embedding.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LETTERS = " abcdefghijklmnopqrstuvwxyz"
LARGEST_SCALE = 100.0  # of the cosines, as in CLIP


class ConvTower(nn.Module):
    """Grey images (B, Y, X) of bytes to embeddings: three convolutions and a linear map."""

    def __init__(self, side: int, width: int, embed_dim: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 1
        for depth in range(3):
            outputs = width * 2**depth
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1),
                nn.GroupNorm(4, outputs),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
            channels = outputs
        self.layers = nn.Sequential(*layers, nn.Flatten())
        self.out = nn.Linear(channels * (side // 8) ** 2, embed_dim)

    def forward(self, images: Tensor) -> Tensor:
        """Return embeddings (B x D)."""
        return self.out(self.layers(images[:, None].float() / 255))


class LetterTower(nn.Module):
    """Names as rows of letters (U, L) to embeddings: a letter and place is a vector."""

    def __init__(self, length: int, width: int, embed_dim: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS) * length, width)
        self.register_buffer("places", torch.arange(length) * len(LETTERS), persistent=False)
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, embed_dim)

    def forward(self, letters_UL: Tensor) -> Tensor:
        """Return embeddings (U x D)."""
        return self.out(self.layers(self.letters(letters_UL + self.places).sum(1)))


class FeatureTower(nn.Module):
    """Features of a frozen tower (B x F) to embeddings: a linear map beside an MLP."""

    def __init__(self, num_features: int, width: int, embed_dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(num_features, elementwise_affine=False)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(num_features, embed_dim)
        self.layers = nn.Sequential(
            nn.Linear(num_features, width), nn.GELU(), nn.Linear(width, embed_dim)
        )

    def forward(self, features_BF: Tensor) -> Tensor:
        """Return embeddings (B x D)."""
        normed = self.dropout(self.norm(features_BF.float()))
        return self.linear(normed) + self.layers(normed)


class Clip(nn.Module):
    """Both towers and the scale of the cosines, which is learnt."""

    def __init__(self, image: nn.Module, text: nn.Module, temperature: float) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    @property
    def scale(self) -> Tensor:
        """The factor of the cosines, at most 100."""
        return self.log_scale.exp().clamp(max=LARGEST_SCALE)

    def forward(self, images: Tensor, names: Tensor) -> tuple[Tensor, Tensor]:
        """Return unit embeddings of images (B x D) and names (U x D)."""
        return F.normalize(self.image(images), dim=1), F.normalize(self.text(names), dim=1)


def as_letters(names: Sequence[str]) -> Tensor:
    """Return names as letters (U x L), spaces at the end; what is no letter becomes a space."""
    length = max(map(len, names))
    rows = [[max(0, LETTERS.find(c)) for c in name.ljust(length)] for name in names]
    return torch.tensor(rows)


def contrastive(model: Clip, images: Tensor, labels: Tensor, names: Tensor) -> Tensor:
    """Return CLIP's loss (nats) where images of a batch may share a name.

    An image is to find its name among the batch's names, a name its images among the batch's: the
    mean over them of minus the log-probability.
    """
    present, place_B = labels.unique(return_inverse=True)
    f_BD, g_UD = model(images, names[present])
    logits_BU = model.scale * f_BD @ g_UD.T
    to_names = F.cross_entropy(logits_BU, place_B)
    logs_BU = F.log_softmax(logits_BU, dim=0)
    belongs_BU = F.one_hot(place_B, len(present)).to(logs_BU.dtype)
    to_images = -((logs_BU * belongs_BU).sum(0) / belongs_BU.sum(0)).mean()
    return (to_names + to_images) / 2
