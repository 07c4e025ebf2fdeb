"""QUEST attention on torch's fused attention: unit keys, then `scaled_dot_product_attention`.

Autograd through a normalisation walks over the keys about ten times; `_UnitKeys` saves the unit
keys, which attention keeps anyway, and projects the gradient in a few passes:
`dk = (dkbar - kbar <kbar, dkbar>) / |k|`. Shapes as in `reference`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from kernels.quest.reference import EPS, lower_right


class _UnitKeys(torch.autograd.Function):
    """`k / |k|` along the last dimension, norm and projection in float32 for half types.

    Returns (unit keys, 1 / |k|); the second is there for `torch.func`, which wants everything that
    is saved to be an output, and carries no gradient.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(k_BGSD: Tensor) -> tuple[Tensor, Tensor]:
        """Return (kbar, 1 / |k|)."""
        wide = torch.promote_types(k_BGSD.dtype, torch.float32)
        norm = torch.linalg.vector_norm(k_BGSD, dim=-1, keepdim=True, dtype=wide)
        inverse_norm = norm.masked_fill_(norm <= EPS, torch.inf).reciprocal_()
        return (k_BGSD * inverse_norm).to(k_BGSD.dtype), inverse_norm

    @staticmethod
    def setup_context(
        ctx: FunctionCtx, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]
    ) -> None:
        """Save both outputs."""
        ctx.save_for_backward(*output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, dkbar_BGSD: Tensor, _: Tensor) -> Tensor:
        """Return dk: dkbar without its part along the key, over |k|."""
        kbar_BGSD, inverse_norm = ctx.saved_tensors
        kbar, dkbar = kbar_BGSD.to(inverse_norm.dtype), dkbar_BGSD.to(inverse_norm.dtype)
        # one buffer for the products and the result: fresh memory costs more than a pass over it
        dk = kbar * dkbar
        along = dk.sum(dim=-1, keepdim=True)
        dk.copy_(dkbar).addcmul_(kbar, along, value=-1).mul_(inverse_norm)
        return dk.to(kbar_BGSD.dtype)


def quest_attention_torch(
    q_BHTD: Tensor,
    k_BGSD: Tensor,
    v_BGSD: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    dropout: float,
) -> Tensor:
    """Return the attention output (B, H, T, D); arguments as in `quest_attention_reference`."""
    num_heads, num_queries = q_BHTD.shape[1:3]
    num_groups, num_keys = k_BGSD.shape[1:3]
    if causal and (mask is not None or num_queries != num_keys):
        # torch aligns its own causal mask to the first key instead of the last
        triangle = lower_right(num_queries, num_keys, q_BHTD.device)
        mask, causal = triangle if mask is None else mask & triangle, False
    kbar_BGSD, _ = _UnitKeys.apply(k_BGSD)
    return F.scaled_dot_product_attention(
        q_BHTD,
        kbar_BGSD,
        v_BGSD,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=causal,
        scale=1.0,
        enable_gqa=num_heads != num_groups,
    )
