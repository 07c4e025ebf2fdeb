"""QUEST attention, the definition: `softmax(q kbar^T) v` with `kbar = k / |k|` and no scale.

Shapes: B batch, H query heads, G key/value heads (G divides H), T queries, S keys, D head dim.
Half types are widened to float32 throughout and the result is rounded once, at the end.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-12  # a key no longer than this has no direction


def unit_keys(k_BGSD: Tensor) -> Tensor:
    """Return `k / |k|` along the last dimension; where `|k| <= EPS`, 0 with gradient 0."""
    norm = torch.linalg.vector_norm(k_BGSD, dim=-1, keepdim=True)
    return k_BGSD / norm.masked_fill(norm <= EPS, torch.inf)


def lower_right(num_queries: int, num_keys: int, device: torch.device) -> Tensor:
    """Return the causal mask (T, S), True where query i may see key j: `j <= i + S - T`.

    The last query sees every key, so that queries continue a cache of earlier keys.
    """
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return ones.tril(num_keys - num_queries)


def quest_attention_reference(
    q_BHTD: Tensor,
    k_BGSD: Tensor,
    v_BGSD: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    dropout: float,
) -> Tensor:
    """Return the attention output (B, H, T, D) in the type of `q_BHTD`.

    `mask` is boolean and broadcasts to (B, H, T, S), True where a query may attend. A query that
    may attend to no key gets 0. `dropout` is the probability of dropping an attention weight.
    """
    wide = torch.promote_types(q_BHTD.dtype, torch.float32)
    group = q_BHTD.shape[1] // k_BGSD.shape[1]
    k_BHSD = unit_keys(k_BGSD.to(wide)).repeat_interleave(group, dim=1)
    v_BHSD = v_BGSD.to(wide).repeat_interleave(group, dim=1)
    logits_BHTS = q_BHTD.to(wide) @ k_BHSD.mT
    allowed = torch.ones_like(logits_BHTS, dtype=torch.bool)
    if causal:
        allowed = allowed & lower_right(*logits_BHTS.shape[-2:], logits_BHTS.device)
    if mask is not None:
        allowed = allowed & mask
    # the smallest number rather than -inf: a row without keys stays free of NaN until it is zeroed
    logits_BHTS = logits_BHTS.masked_fill(~allowed, torch.finfo(wide).min)
    weights_BHTS = logits_BHTS.softmax(dim=-1).masked_fill(~allowed, 0)
    return (F.dropout(weights_BHTS, dropout) @ v_BHSD).to(q_BHTD.dtype)
