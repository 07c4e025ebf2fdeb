"""A vision transformer with the attention of any row.

Pre-norm blocks and a class token, as in DeiT. Shapes: B images, T tokens, C width, H heads,
D = C / H, L layers, K classes, P colours; images are (B, Y, X) in grey and (B, P, Y, X) in colour.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest import blocks
from steps.quest.blocks import Block, initialise, run_blocks, run_explicit
from steps.quest.images_config import Shape
from steps.shared.runtime import InputError, torch_generator


class VisionTransformer(nn.Module):
    """Square images in [0, 1] to class logits; patches are read row by row, after a class token."""

    def __init__(
        self,
        row: str,
        shape: Shape,
        *,
        image_size: int,
        channels: int,
        classes: int,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        if image_size % shape.patch:
            raise InputError(f"patch = {shape.patch}: must divide the image's {image_size} pixels")
        self.settings = {
            "row": row,
            "shape": shape.model_dump(),
            "image_size": image_size,
            "channels": channels,
            "classes": classes,
        }
        self.expected, self.patch = (channels, image_size, image_size), shape.patch
        tokens = 1 + (image_size // shape.patch) ** 2
        self.embed = nn.Linear(channels * shape.patch**2, shape.width)
        self.class_token = nn.Parameter(torch.zeros(shape.width))
        self.positions = nn.Parameter(torch.zeros(tokens, shape.width))
        options = {"heads": shape.heads, "mlp_ratio": shape.mlp_ratio, "row": row, "causal": False}
        # stochastic depth grows with the layer, as in DeiT
        drops = torch.linspace(0, drop_path, shape.layers).tolist()
        self.blocks = nn.ModuleList(Block(shape.width, drop=drop, **options) for drop in drops)
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, classes)

    def forward(self, images: Tensor, *, explicit: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Return class logits (B, K); `explicit`: and the attention's logits (L, B, H, T, T)."""
        x_BTC = self._tokens(images)
        if explicit:
            x_BTC, logits_LBHTT = run_explicit(self.blocks, x_BTC)
            return self._scores(x_BTC), logits_LBHTT
        return self._scores(run_blocks(self.blocks, x_BTC))

    def attention_maps(self, images: Tensor) -> Tensor:
        """Return the attention weights (L, B, H, T, T), rows summing to 1; token 0 is the class."""
        return self(images, explicit=True)[1].softmax(dim=-1)

    def _scores(self, x_BTC: Tensor) -> Tensor:
        return self.head(self.norm(x_BTC[:, 0]))

    def _tokens(self, images: Tensor) -> Tensor:
        images_BPYX = images[:, None] if images.ndim == 3 else images
        if images_BPYX.shape[1:] != self.expected:
            raise InputError(
                f"images {tuple(images.shape)}: must be (batch, colours, rows, columns) ="
                f" (batch, {', '.join(map(str, self.expected))}), colours left out if there is one"
            )
        patches = F.pixel_unshuffle(images_BPYX, self.patch).flatten(2).mT
        # background and ink at -1 and 1
        x_BTC = self.embed(2 * patches - 1)
        first = self.class_token.expand(len(x_BTC), 1, -1)
        return torch.cat([first, x_BTC], dim=1) + self.positions


def build(
    row: str,
    shape: Shape,
    *,
    seed: int,
    image_size: int,
    channels: int,
    classes: int,
    drop_path: float = 0.0,
) -> VisionTransformer:
    """Return a model initialised from the stream (quest, init, seed), the same for every row.

    Matrices as in `initialise`; the class token and the positions are N(0, 0.5^2), of the size of
    the embedded patches that they are added to.
    """
    sizes = {"image_size": image_size, "channels": channels, "classes": classes}
    model = VisionTransformer(row, shape, **sizes, drop_path=drop_path)
    generator = torch_generator("quest", "init", seed)
    initialise(model, layers=shape.layers, generator=generator)
    for value in (model.class_token, model.positions):
        nn.init.normal_(value, std=0.5, generator=generator)
    return model


def load(path: Path) -> VisionTransformer:
    """Read a model that `blocks.save` wrote, in evaluation mode."""
    return blocks.load(path, _from_settings, "vision transformer")


def _from_settings(row: str, shape: dict[str, int], **sizes: int) -> VisionTransformer:
    return VisionTransformer(row, Shape.model_validate(shape), **sizes)
