"""The transformer of every row: pre-norm blocks, how they are run, how they start, their files.

Shapes: B sequences, T tokens, C width, H heads, D = C / H, L layers.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest.attention import RowAttention
from steps.shared import tensor_files


class Block(nn.Module):
    """Attention, then a feed-forward layer, each on normalised input and added to it.

    In training each of the two is left out for a share `drop` of the images (stochastic depth),
    by torch's own random numbers.
    """

    def __init__(
        self, width: int, *, heads: int, mlp_ratio: int, row: str, causal: bool, drop: float
    ) -> None:
        super().__init__()
        self.drop = drop
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = RowAttention(width, num_heads=heads, row=row, causal=causal)
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


def run_blocks(blocks: Iterable[Block], x_BTC: Tensor) -> Tensor:
    """Return the output (B, T, C) of a stack of blocks."""
    previous = None
    for block in blocks:
        x_BTC, previous = block(x_BTC, previous)
    return x_BTC


def run_explicit(blocks: Iterable[Block], x_BTC: Tensor) -> tuple[Tensor, Tensor]:
    """Return what `run_blocks` does, and the logits of all attention layers (L, B, H, T, T)."""
    previous, logits = None, []
    for block in blocks:
        x_BTC, previous, logits_BHTT = block.explicit(x_BTC, previous)
        logits.append(logits_BHTT)
    return x_BTC, torch.stack(logits)


def initialise(model: nn.Module, *, layers: int, generator: torch.Generator) -> None:
    """Fill all linear layers: matrices N(0, 1 / fan-in), biases 0.

    Those that write to the residual stream are smaller by sqrt(2 L). So queries and keys start with
    entries of variance 1.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            residual = name.endswith((".out", ".down"))
            std = (module.in_features * (2 * layers if residual else 1)) ** -0.5
            nn.init.normal_(module.weight, std=std, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def save(path: Path, model: nn.Module) -> None:
    """Write a model to one safetensors file, its `settings` (what it was built from) included."""
    tensors = {name: value.cpu() for name, value in model.state_dict().items()}
    note = {"model": json.dumps(model.settings, sort_keys=True)}
    tensor_files.write(path, tensors, note)


def load(path: Path, build: Callable[..., nn.Module], what: str) -> nn.Module:
    """Return `build(**settings)` with the tensors that `save` wrote, in evaluation mode."""
    what = f"a {what} as train writes it"
    model = tensor_files.read_note(path, what, "model", lambda settings: build(**settings))
    model.load_state_dict(
        tensor_files.read(path, what, names=model.state_dict(), framework="torch")
    )
    return model.eval()
