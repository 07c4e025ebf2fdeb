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

All start alike: for unit-variance q and k every row's logits begin at about sqrt(D) cos(q, k).
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.quest.reference import unit_keys

NORM_EPS = 1e-6  # of the LayerNorm of `qknorm`
Scales = Mapping[str, Tensor]


def initial_scales(row: str, *, heads: int, dim: int) -> dict[str, Tensor]:
    """Return a row's own learned scales at their start, by name; most rows have none.

    Unit vectors start at scale sqrt(D), in one factor or two: at 1 the softmax of a normalised row
    would be nearly uniform, and the row weaker than it is.
    """
    if row == "qknorm":
        return {"query_gain": torch.ones(dim), "key_gain": torch.ones(dim)}
    if row == "qknorm_hs":
        return {"head_scale": torch.full((heads,), dim**0.5)}
    if row == "qknorm_ds":
        return {name: torch.full((dim,), dim**0.25) for name in ("query_scale", "key_scale")}
    return {}


def uses_variability(row: str) -> bool:
    """Say whether a row weighs features by what the layer before did to the values."""
    return row.startswith("elliptical")


def variability(v: Tensor, v_before: Tensor) -> Tensor:
    """Return m (..., H, 1, D): how much a layer moved each coordinate of the values, at most 1.

    The mean over tokens of |v - v_before| (both (..., H, T, D)), over its largest coordinate;
    without gradient, as in Nielsen et al. 2024 (arXiv 2406.13770).
    """
    moved = (v.detach() - v_before.detach()).abs().mean(dim=-2, keepdim=True)
    return moved / moved.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(v.dtype).tiny)


def logits(row: str, q: Tensor, k: Tensor, scales: Scales, m: Tensor | None = None) -> Tensor:
    """Return a row's logits (..., H, T, S) for q (..., H, T, D) and k (..., H, S, D).

    `scales` are the row's own learned ones; `m` (..., H, 1, D) weighs features in the elliptical
    rows, and in a first layer, where it is None, they are `standard` and `quest`.
    """
    dim = q.shape[-1]
    if uses_variability(row) and m is not None:
        q = q * m
    if row in ("standard", "elliptical"):
        return q @ k.mT / dim**0.5
    if row in ("quest", "elliptical_quest"):
        return q @ unit_keys(k).mT
    if row == "qnorm":
        return unit_keys(q) @ k.mT
    if row == "qknorm":
        q = F.layer_norm(q, (dim,), eps=NORM_EPS) * scales["query_gain"]
        k = F.layer_norm(k, (dim,), eps=NORM_EPS) * scales["key_gain"]
        return q @ k.mT / dim**0.5
    q, k = unit_keys(q), unit_keys(k)
    if row == "qknorm_hs":
        return q @ k.mT * scales["head_scale"][:, None, None]
    if row == "qknorm_ds":
        return (q * scales["query_scale"]) @ (k * scales["key_scale"]).mT
    raise ValueError(f"no row {row!r}")
