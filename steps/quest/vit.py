"""A vision transformer with the attention of any row.

Pre-norm blocks and a class token, as in DeiT. Shapes: B images, T tokens, C width, H heads,
D = C / H, L layers, K classes, P colours; images are (B, Y, X) in grey and (B, P, Y, X) in colour.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from steps.quest.attention import RowAttention
from steps.quest.images_config import Shape
from steps.shared.runtime import InputError, atomic_path, torch_generator


class Block(nn.Module):
    """Attention, then a feed-forward layer, each on normalised input and added to it.

    In training each of the two is left out for a share `drop` of the images (stochastic depth),
    by torch's own random numbers.
    """

    def __init__(self, width: int, *, heads: int, mlp_ratio: int, row: str, drop: float) -> None:
        super().__init__()
        self.drop = drop
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = RowAttention(width, num_heads=heads, row=row, causal=False)
        self.up = nn.Linear(width, mlp_ratio * width)
        self.down = nn.Linear(mlp_ratio * width, width)

    def forward(self, x_BTC: Tensor, previous_BHTD: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return ((B, T, C), this layer's values (B, H, T, D)), given those of the layer below."""
        attended_BTC, v_BHTD = self.attention(
            self.norm_attention(x_BTC), previous_BHTD=previous_BHTD
        )
        return self._added(x_BTC, attended_BTC), v_BHTD

    def explicit(self, x_BTC: Tensor, previous_BHTD: Tensor | None) -> tuple[Tensor, ...]:
        """Return what `forward` does, and the attention's logits (B, H, T, T)."""
        attended_BTC, v_BHTD, logits_BHTT = self.attention.explicit(
            self.norm_attention(x_BTC), previous_BHTD=previous_BHTD
        )
        return self._added(x_BTC, attended_BTC), v_BHTD, logits_BHTT

    def _added(self, x_BTC: Tensor, attended_BTC: Tensor) -> Tensor:
        x_BTC = x_BTC + self._kept(attended_BTC)
        hidden = F.gelu(self.up(self.norm_mlp(x_BTC)), approximate="tanh")
        return x_BTC + self._kept(self.down(hidden))

    def _kept(self, branch_BTC: Tensor) -> Tensor:
        if not self.training or not self.drop:
            return branch_BTC
        kept_B11 = torch.rand(len(branch_BTC), 1, 1, device=branch_BTC.device) >= self.drop
        return branch_BTC * kept_B11 / (1 - self.drop)


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
            **{"row": row, "shape": shape.model_dump(), "image_size": image_size},
            **{"channels": channels, "classes": classes},
        }
        self.expected, self.patch = (channels, image_size, image_size), shape.patch
        tokens = 1 + (image_size // shape.patch) ** 2
        self.embed = nn.Linear(channels * shape.patch**2, shape.width)
        self.class_token = nn.Parameter(torch.zeros(shape.width))
        self.positions = nn.Parameter(torch.zeros(tokens, shape.width))
        options = {"heads": shape.heads, "mlp_ratio": shape.mlp_ratio, "row": row}
        # stochastic depth grows with the layer, as in DeiT
        drops = torch.linspace(0, drop_path, shape.layers).tolist()
        self.blocks = nn.ModuleList(Block(shape.width, drop=drop, **options) for drop in drops)
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, classes)

    def forward(self, images: Tensor, *, explicit: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Return class logits (B, K); `explicit`: and the attention's logits (L, B, H, T, T)."""
        x_BTC, previous, logits = self._tokens(images), None, []
        for block in self.blocks:
            if explicit:
                x_BTC, previous, logits_BHTT = block.explicit(x_BTC, previous)
                logits.append(logits_BHTT)
            else:
                x_BTC, previous = block(x_BTC, previous)
        scores_BK = self.head(self.norm(x_BTC[:, 0]))
        return (scores_BK, torch.stack(logits)) if explicit else scores_BK

    def attention_maps(self, images: Tensor) -> Tensor:
        """Return the attention weights (L, B, H, T, T), rows summing to 1; token 0 is the class."""
        return self(images, explicit=True)[1].softmax(dim=-1)

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

    Matrices are N(0, 1 / fan-in), those that write to the residual stream smaller by sqrt(2 L), so
    that queries and keys start with entries of variance 1; biases are 0. The class token and the
    positions are N(0, 0.5^2), of the size of the embedded patches that they are added to.
    """
    sizes = {"image_size": image_size, "channels": channels, "classes": classes}
    model = VisionTransformer(row, shape, **sizes, drop_path=drop_path)
    generator = torch_generator("quest", "init", seed)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            residual = name.endswith((".out", ".down"))
            std = (module.in_features * (2 * shape.layers if residual else 1)) ** -0.5
            nn.init.normal_(module.weight, std=std, generator=generator)
            nn.init.zeros_(module.bias)
    for value in (model.class_token, model.positions):
        nn.init.normal_(value, std=0.5, generator=generator)
    return model


def save(path: Path, model: VisionTransformer) -> None:
    """Write a model to one safetensors file, what it was built from included."""
    tensors = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"vit": json.dumps(model.settings, sort_keys=True)})


def load(path: Path) -> VisionTransformer:
    """Read a model that `save` wrote, in evaluation mode."""
    try:
        with safe_open(path, framework="pt") as file:
            settings = json.loads(file.metadata()["vit"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        row, shape = settings.pop("row"), Shape.model_validate(settings.pop("shape"))
        model = VisionTransformer(row, shape, **settings)
        model.load_state_dict(tensors)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{path}: not a vision transformer as train writes it ({error})") from None
    return model.eval()


@torch.no_grad()
def predict(model: nn.Module, images: Tensor, *, batch_size: int) -> Tensor:
    """Return the predicted classes (N,) of N images, the model in evaluation mode."""
    model.eval()
    return torch.cat([model(piece).argmax(dim=-1) for piece in images.split(batch_size)])
