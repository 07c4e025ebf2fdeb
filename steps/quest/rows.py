"""The rows of the paper: what each attention puts before the softmax, as pure functions.

Shapes: ... any leading dimensions, H heads, T queries, S keys, D head dimension. C = 1 / sqrt(D).

    standard          C q k^T
    qnorm             qbar k^T                      (qbar, kbar: of length 1)
    qknorm            C LN(q) LN(k)^T               a LayerNorm each, gains learned
    qknorm_hs         C_h qbar kbar^T               one scale C_h a head, learned
    qknorm_ds         (C_q qbar) (C_k kbar)^T       a scale a feature, learned, heads share them
    quest             q kbar^T
    elliptical        C q M k^T                     M = diag(m), see `variability`
    elliptical_quest  q M kbar^T

All start alike: for unit-variance q and k every row's logits begin at about sqrt(D) cos(q, k), of
deviation 1, before a metric.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.quest import quest_attention
from kernels.quest.reference import lower_right, unit_keys
from steps.quest.row_names import ROWS
from steps.shared.runtime import InputError

NORM_EPS = 1e-6  # of the LayerNorm of `qknorm`
UNIT_KEYS = frozenset({"qknorm_hs", "qknorm_ds", "quest", "elliptical_quest"})
WITH_METRIC = frozenset({"elliptical", "elliptical_quest"})
Scales = Mapping[str, Tensor]


def initial_scales(row: str, *, heads: int, dim: int) -> dict[str, Tensor]:
    """Return a row's own learned scales at their start, by name; most rows have none.

    Unit vectors start at scale sqrt(D), in one factor or two: at 1 the softmax of a normalised row
    would be nearly uniform, and the row weaker than it is. All are vectors, so that an optimizer
    which decays only matrices leaves them.
    """
    if row not in ROWS:
        raise InputError(f"row = {row!r}: must be one of {', '.join(ROWS)}")
    if row == "qknorm":
        return {"query_gain": torch.ones(dim), "key_gain": torch.ones(dim)}
    if row == "qknorm_hs":
        return {"head_scale": torch.full((heads,), dim**0.5)}
    if row == "qknorm_ds":
        return {name: torch.full((dim,), dim**0.25) for name in ("query_scale", "key_scale")}
    return {}


def variability(v: Tensor, v_before: Tensor, *, causal: bool) -> Tensor:
    """Return m (..., H, 1, D): how much a layer moved each coordinate of the values, at most 1.

    The mean over tokens of |v - v_before| (both (..., H, T, D)), over its largest coordinate;
    without gradient, as in Nielsen et al. 2024 (arXiv 2406.13770). Causal: over the tokens up to
    each query, (..., H, T, D). Values that have not moved at all give 1, the Euclidean metric.
    """
    if v.shape != v_before.shape:
        raise InputError(
            f"values of the layer below {tuple(v_before.shape)}: must have the shape of this"
            f" layer's, {tuple(v.shape)}"
        )
    moved = (v.detach() - v_before.detach()).abs()
    # sums do for means, since the ratio drops the number of tokens
    if causal:
        tokens = v.shape[-2]
        # a product, because cumsum is not deterministic on a GPU
        sums = lower_right(tokens, tokens, v.device).to(v.dtype) @ moved
    else:
        sums = moved.sum(dim=-2, keepdim=True)
    largest = sums.amax(dim=-1, keepdim=True)
    return torch.where(largest > 0, sums / largest, 1.0)


def factors(
    row: str, q: Tensor, k: Tensor, scales: Scales, m: Tensor | None = None
) -> tuple[Tensor, Tensor, float]:
    """Return (q', k', c) whose product c q' k'^T is a row's logits, k' to be made unit keys first.

    That is, in the rows of `UNIT_KEYS`; in the others k' is used as it is.

    What such a row does to its unit keys is done to the queries, which gives the same products.
    """
    dim = q.shape[-1]
    scale = 1.0 if row in UNIT_KEYS or row == "qnorm" else dim**-0.5
    if row in WITH_METRIC and m is not None:
        q = q * m
    elif row == "qnorm":
        q = unit_keys(q)
    elif row == "qknorm":
        q = F.layer_norm(q, (dim,), eps=NORM_EPS) * scales["query_gain"]
        k = F.layer_norm(k, (dim,), eps=NORM_EPS) * scales["key_gain"]
    elif row == "qknorm_hs":
        q = unit_keys(q) * scales["head_scale"][:, None, None]
    elif row == "qknorm_ds":
        q = unit_keys(q) * (scales["query_scale"] * scales["key_scale"])
    return q, k, scale


def logits(row: str, q: Tensor, k: Tensor, scales: Scales, m: Tensor | None = None) -> Tensor:
    """Return a row's logits (..., H, T, S) for q (..., H, T, D) and k (..., H, S, D).

    `scales` are the row's own learned ones; `m` (..., H, 1 or T, D) weighs features in the
    elliptical rows, and in a first layer, where it is None, they are `standard` and `quest`.
    """
    q, k, scale = factors(row, q, k, scales, m)
    if row in UNIT_KEYS:
        k = unit_keys(k)
    return scale * (q @ k.mT)


def attend(
    row: str, q: Tensor, k: Tensor, v: Tensor, scales: Scales, m: Tensor | None, *, causal: bool
) -> Tensor:
    """Return `softmax(logits) v` (B, H, T, D) by the kernel or by torch's fused attention.

    In the type of `v`: scales, gains and the metric may be of more bits than half types have.
    """
    q, k, scale = factors(row, q, k, scales, m)
    q, k = q.to(v.dtype), k.to(v.dtype)
    if row in UNIT_KEYS:
        return quest_attention(q, k, v, causal=causal)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
