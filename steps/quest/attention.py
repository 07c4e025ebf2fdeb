"""Self-attention as a layer, in any of the rows of rows.py.

Shapes: B batch, T tokens, C channels, H heads, D = C / H.
"""

import torch
from torch import Tensor, nn

from kernels.quest.reference import lower_right
from steps.quest import rows
from steps.shared.runtime import InputError


class RowAttention(nn.Module):
    """Multi-head self-attention of one row; the rows share their matrices."""

    def __init__(self, width: int, *, num_heads: int, row: str, causal: bool) -> None:
        super().__init__()
        if num_heads < 1 or width % num_heads:
            raise InputError(f"width = {width}: must be a multiple of num_heads = {num_heads}")
        self.row, self.causal, self.head_dim = row, causal, width // num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scales = nn.ParameterDict(rows.initial_scales(row, heads=num_heads, dim=self.head_dim))

    def forward(
        self, x_BTC: Tensor, *, previous_BHTD: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return (output (B, T, C), values (B, H, T, D) without gradient).

        `previous_BHTD` holds the values that the layer below returned, None in the first layer;
        only the rows with a metric read it.
        """
        q, k, v, m = self._heads(x_BTC, previous_BHTD)
        o_BHTD = rows.attend(self.row, q, k, v, self.scales, m, causal=self.causal)
        return self._merged(o_BHTD), v.detach()

    def explicit(
        self, x_BTC: Tensor, *, previous_BHTD: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `forward` does, and the logits (B, H, T, T), -inf where unseen.

        Plain products, which `torch.func.vmap` maps over; the fused attention keeps no logits.
        """
        q, k, v, m = self._heads(x_BTC, previous_BHTD)
        logits_BHTT = rows.logits(self.row, q, k, self.scales, m)
        if self.causal:
            tokens = x_BTC.shape[1]
            visible = lower_right(tokens, tokens, x_BTC.device)
            logits_BHTT = logits_BHTT.masked_fill(~visible, -torch.inf)
        return self._merged(logits_BHTT.softmax(dim=-1) @ v), v.detach(), logits_BHTT

    def _heads(self, x_BTC: Tensor, previous_BHTD: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return queries, keys, values (B, H, T, D) and the metric, None where there is none."""
        q, k, v = (
            part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in self.qkv(x_BTC).chunk(3, dim=-1)
        )
        m = None
        if self.row in rows.WITH_METRIC and previous_BHTD is not None:
            m = rows.variability(v, previous_BHTD, causal=self.causal)
        return q, k, v, m

    def _merged(self, o_BHTD: Tensor) -> Tensor:
        return self.out(o_BHTD.transpose(1, 2).flatten(2))


def largest_logit(logits: Tensor) -> Tensor:
    """Return the largest |logit| among the pairs that attention may see, as a scalar tensor."""
    return logits.masked_fill(logits.isneginf(), 0.0).abs().amax()
