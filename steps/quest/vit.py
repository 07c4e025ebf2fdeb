"""A small vision transformer for grey images, with the attention of any row.

Pre-norm blocks and a class token, as in DeiT. Shapes: B images, T tokens, C width, H heads,
D = C / H, L layers, K classes.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest.attention import Row, RowAttention
from steps.shared.runtime import InputError, torch_generator


class Block(nn.Module):
    """Attention, then a feed-forward layer, each on normalised input and added to it."""

    def __init__(self, width: int, *, heads: int, mlp_ratio: int, row: Row) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = RowAttention(width, num_heads=heads, row=row, causal=False)
        self.up = nn.Linear(width, mlp_ratio * width)
        self.down = nn.Linear(mlp_ratio * width, width)

    def forward(self, x_BTC: Tensor, previous_BHTD: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return ((B, T, C), this layer's values (B, H, T, D)), given those of the layer below."""
        attended_BTC, v_BHTD = self.attention(
            self.norm_attention(x_BTC), previous_BHTD=previous_BHTD
        )
        x_BTC = x_BTC + attended_BTC
        hidden = F.gelu(self.up(self.norm_mlp(x_BTC)), approximate="tanh")
        return x_BTC + self.down(hidden), v_BHTD


class VisionTransformer(nn.Module):
    """Square images in [0, 1] to class logits; patches are read row by row, after a class token."""

    def __init__(
        self,
        row: Row,
        *,
        image_size: int,
        patch: int,
        width: int,
        layers: int,
        heads: int,
        mlp_ratio: int,
        classes: int,
    ) -> None:
        super().__init__()
        if image_size % patch:
            raise InputError(f"patch = {patch}: must divide the image's {image_size} pixels")
        self.image_size, self.patch = image_size, patch
        tokens = 1 + (image_size // patch) ** 2
        self.embed = nn.Linear(patch * patch, width)
        self.class_token = nn.Parameter(torch.zeros(width))
        self.positions = nn.Parameter(torch.zeros(tokens, width))
        self.blocks = nn.ModuleList(
            Block(width, heads=heads, mlp_ratio=mlp_ratio, row=row) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images_BYX: Tensor) -> Tensor:
        """Return class logits (B, K) of images (B, Y, X)."""
        x_BTC, previous = self._tokens(images_BYX), None
        for block in self.blocks:
            x_BTC, previous = block(x_BTC, previous)
        return self.head(self.norm(x_BTC[:, 0]))

    def attention_logits(self, images_BYX: Tensor) -> Iterator[Tensor]:
        """Yield the attention logits (B, H, T, T) of each layer."""
        x_BTC, previous = self._tokens(images_BYX), None
        for block in self.blocks:
            yield block.attention.logits(block.norm_attention(x_BTC), previous_BHTD=previous)
            x_BTC, previous = block(x_BTC, previous)

    def attention_maps(self, images_BYX: Tensor) -> Tensor:
        """Return the attention weights (L, B, H, T, T), rows summing to 1; token 0 is the class."""
        return torch.stack([logits.softmax(dim=-1) for logits in self.attention_logits(images_BYX)])

    def _tokens(self, images_BYX: Tensor) -> Tensor:
        expected = (self.image_size, self.image_size)
        if images_BYX.ndim != 3 or images_BYX.shape[1:] != expected:
            raise InputError(
                f"images {tuple(images_BYX.shape)}: must be (batch, {expected[0]}, ...)"
            )
        patches = F.pixel_unshuffle(images_BYX[:, None], self.patch).flatten(2).mT
        # background and ink at -1 and 1
        x_BTC = self.embed(2 * patches - 1)
        first = self.class_token.expand(len(x_BTC), 1, -1)
        return torch.cat([first, x_BTC], dim=1) + self.positions


def build(
    row: Row,
    *,
    seed: int,
    image_size: int,
    patch: int,
    width: int,
    layers: int,
    heads: int,
    mlp_ratio: int,
    classes: int,
) -> VisionTransformer:
    """Return a model initialised from the stream (quest, init, seed), the same for every row.

    Matrices are N(0, 1 / fan-in), those that write to the residual stream smaller by sqrt(2 L), so
    that queries and keys start with entries of variance 1; biases are 0. The class token and the
    positions are N(0, 0.5^2), of the size of the embedded patches that they are added to.
    """
    model = VisionTransformer(
        row,
        image_size=image_size,
        patch=patch,
        width=width,
        layers=layers,
        heads=heads,
        mlp_ratio=mlp_ratio,
        classes=classes,
    )
    generator = torch_generator("quest", "init", seed)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            residual = name.endswith((".out", ".down"))
            std = (module.in_features * (2 * layers if residual else 1)) ** -0.5
            nn.init.normal_(module.weight, std=std, generator=generator)
            nn.init.zeros_(module.bias)
    for value in (model.class_token, model.positions):
        nn.init.normal_(value, std=0.5, generator=generator)
    return model


@torch.no_grad()
def predict(model: nn.Module, images_NYX: Tensor, *, batch_size: int) -> Tensor:
    """Return the predicted classes (N,) of images (N, Y, X), the model in evaluation mode."""
    model.eval()
    return torch.cat([model(piece).argmax(dim=-1) for piece in images_NYX.split(batch_size)])
