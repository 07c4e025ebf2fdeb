"""QUEST attention on the Triton kernels, as one differentiable function. Shapes as in `reference`.

Importing this module imports Triton; `dispatch` does so only when the path is used.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from kernels.quest.triton_forward import quest_forward
from kernels.quest.triton_keys import quest_backward_keys
from kernels.quest.triton_launch import addressable, plan
from kernels.quest.triton_queries import quest_backward_queries


class _QuestAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """Return the output (B, H, T, D); keeps it and the log-sum-exp of every query's logits."""
        q, k, v = addressable(q), addressable(k), addressable(v)
        amd = torch.version.hip is not None
        launches = plan(q.dtype, q.shape[3], q.shape[2], k.shape[2], amd=amd)
        with torch.cuda.device_of(q):
            o, lse = quest_forward(q, k, v, mask=mask, causal=causal, launch=launches.forward)
        ctx.save_for_backward(q, k, v, mask, o, lse)
        ctx.causal, ctx.launches = causal, launches
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, do: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of q, k and v: queries by one kernel, keys and values by another."""
        q, k, v, mask, o, lse = ctx.saved_tensors
        do, shared = addressable(do), {"mask": mask, "causal": ctx.causal}
        with torch.cuda.device_of(q):
            dq, delta = quest_backward_queries(
                q, k, v, o, do, lse, launch=ctx.launches.queries, **shared
            )
            dk, dv = quest_backward_keys(
                q, k, v, do, lse, delta, launch=ctx.launches.keys, **shared
            )
        return dq, dk, dv, None, None


def quest_attention_triton(
    q_BHTD: Tensor, k_BGSD: Tensor, v_BGSD: Tensor, *, mask: Tensor | None, causal: bool
) -> Tensor:
    """Return the attention output (B, H, T, D); arguments as in `quest_attention_reference`.

    float16, bfloat16 or float32, D from 16 to 128; no dropout.
    """
    return _QuestAttention.apply(q_BHTD, k_BGSD, v_BGSD, mask, causal)
