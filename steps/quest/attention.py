"""Self-attention in the eight forms that the paper's tables compare.

The forms share their projections and differ in the logits of query q and key k. A hat is the unit
vector, `m` the diagonal metric of `coordinate_metric`, c a learned scale:

    standard           q . k / sqrt(D)
    qnorm              q^ . k
    qknorm             LN(q) . LN(k) / sqrt(D)    a gain per feature in each LayerNorm
    qknorm_hs          c q^ . k^                  a scale per head
    qknorm_ds          (c_q q^) . (c_k k^)        a scale per feature, the same in all heads
    quest              q . k^
    elliptical         (m q) . k / sqrt(D)
    elliptical_quest   (m q) . k^

Queries and keys of independent entries with variance 1 have logits of standard deviation 1 in every
form without a metric: the scales start at what makes this so, sqrt(D) in all.

Shapes: B batch, T tokens, C channels, H heads, D = C / H.
"""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernels.quest import quest_attention
from kernels.quest.reference import lower_right, unit_keys
from steps.shared.runtime import InputError

Row = Literal[
    "standard",
    "qnorm",
    "qknorm",
    "qknorm_hs",
    "qknorm_ds",
    "quest",
    "elliptical",
    "elliptical_quest",
]
ROWS: tuple[str, ...] = get_args(Row)
UNIT_KEYS = frozenset({"qknorm_hs", "qknorm_ds", "quest", "elliptical_quest"})
WITH_METRIC = frozenset({"elliptical", "elliptical_quest"})


class RowAttention(nn.Module):
    """Multi-head self-attention of one row.

    The learned scales are vectors, so that an optimizer which decays only matrices leaves them.
    """

    def __init__(self, width: int, *, num_heads: int, row: Row, causal: bool) -> None:
        super().__init__()
        if row not in ROWS:
            raise InputError(f"row = {row!r}: must be one of {', '.join(ROWS)}")
        if num_heads < 1 or width % num_heads:
            raise InputError(f"width = {width}: must be a multiple of num_heads = {num_heads}")
        self.row, self.causal, self.head_dim = row, causal, width // num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        if row == "qknorm":
            self.query_norm = nn.LayerNorm(self.head_dim, bias=False)
            self.key_norm = nn.LayerNorm(self.head_dim, bias=False)
        elif row == "qknorm_hs":
            self.head_scale = nn.Parameter(torch.full((num_heads,), self.head_dim**0.5))
        elif row == "qknorm_ds":
            self.query_scale = nn.Parameter(torch.full((self.head_dim,), self.head_dim**0.25))
            self.key_scale = nn.Parameter(torch.full((self.head_dim,), self.head_dim**0.25))

    def forward(
        self, x_BTC: Tensor, *, previous_BHTD: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return (output (B, T, C), values (B, H, T, D) without gradient).

        `previous_BHTD` holds the values that the layer below returned, None in the first layer;
        only the rows with a metric read it.
        """
        q_BHTD, k_BHTD, v_BHTD, scale = self._factors(x_BTC, previous_BHTD)
        if self.row in UNIT_KEYS:
            o_BHTD = quest_attention(q_BHTD, k_BHTD, v_BHTD, causal=self.causal)
        else:
            o_BHTD = F.scaled_dot_product_attention(
                q_BHTD, k_BHTD, v_BHTD, is_causal=self.causal, scale=scale
            )
        return self.out(o_BHTD.transpose(1, 2).flatten(2)), v_BHTD.detach()

    def logits(self, x_BTC: Tensor, *, previous_BHTD: Tensor | None = None) -> Tensor:
        """Return the logits (B, H, T, T) whose softmax weighs the values, -inf where unseen."""
        q_BHTD, k_BHTD, _, scale = self._factors(x_BTC, previous_BHTD)
        if self.row in UNIT_KEYS:
            k_BHTD = unit_keys(k_BHTD)
        logits_BHTT = scale * (q_BHTD @ k_BHTD.mT)
        if self.causal:
            tokens = x_BTC.shape[1]
            visible = lower_right(tokens, tokens, x_BTC.device)
            logits_BHTT = logits_BHTT.masked_fill(~visible, -torch.inf)
        return logits_BHTT

    def _factors(
        self, x_BTC: Tensor, previous_BHTD: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, float]:
        """Return queries, keys, values and a scale; keys of `UNIT_KEYS` not yet of unit length.

        What such a row does to its unit keys is done to the queries, which gives the same products.
        """
        q_BHTD, k_BHTD, v_BHTD = (
            part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in self.qkv(x_BTC).chunk(3, dim=-1)
        )
        scale = 1.0 if self.row in UNIT_KEYS or self.row == "qnorm" else self.head_dim**-0.5
        if self.row == "qnorm":
            q_BHTD = unit_keys(q_BHTD)
        elif self.row == "qknorm":
            q_BHTD, k_BHTD = self.query_norm(q_BHTD), self.key_norm(k_BHTD)
        elif self.row == "qknorm_hs":
            q_BHTD = unit_keys(q_BHTD) * self.head_scale[:, None, None]
        elif self.row == "qknorm_ds":
            q_BHTD = unit_keys(q_BHTD) * (self.query_scale * self.key_scale)
        elif self.row in WITH_METRIC and previous_BHTD is not None:
            q_BHTD = q_BHTD * coordinate_metric(v_BHTD, previous_BHTD, causal=self.causal)
        return q_BHTD, k_BHTD, v_BHTD, scale


def coordinate_metric(v_BHTD: Tensor, previous_BHTD: Tensor, *, causal: bool) -> Tensor:
    """Return the diagonal m of Elliptical Attention's metric (Nielsen et al. 2024), no gradient.

    m_d is the mean over tokens of |v_d - v'_d|, v' the values of the layer below, divided by the
    largest of the head's D means: (B, H, 1, D). Causal: over the tokens up to each query, as
    (B, H, T, D). Values that have not changed at all give m = 1, the Euclidean metric.
    """
    if v_BHTD.shape != previous_BHTD.shape:
        raise InputError(
            f"values of the layer below {tuple(previous_BHTD.shape)}: must have the shape of this"
            f" layer's, {tuple(v_BHTD.shape)}"
        )
    change_BHTD = (v_BHTD.detach() - previous_BHTD.detach()).abs()
    # sums do for means, since the ratio drops the number of tokens
    if causal:
        tokens = v_BHTD.shape[2]
        # a product, because cumsum is not deterministic on a GPU
        sums = lower_right(tokens, tokens, v_BHTD.device).to(v_BHTD.dtype) @ change_BHTD
    else:
        sums = change_BHTD.sum(dim=2, keepdim=True)
    largest = sums.amax(dim=-1, keepdim=True)
    return torch.where(largest > 0, sums / largest, 1.0)


def largest_logit(logits_BHTT: Tensor) -> float:
    """Return the largest |logit| among the pairs that attention may see."""
    return logits_BHTT.masked_fill(logits_BHTT.isneginf(), 0.0).abs().amax().item()


def mean_entropy(logits_BHTT: Tensor) -> float:
    """Return the entropy (nats) of the attention weights, averaged over images, heads, queries."""
    return torch.special.entr(logits_BHTT.softmax(dim=-1)).sum(dim=-1).mean().item()
