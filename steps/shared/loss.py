"""Cross-entropy of next tokens, with the softmax of the forward pass turned into the gradient.

Torch's own keeps the log-softmax and builds the gradient from it in three more passes over [N, V];
with the model of scale mini that costs an eighth of an update. Here the exponentials are taken once
and scaled in place. Shapes: N tokens, V vocabulary.
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, logits_NV: Tensor, targets_N: Tensor) -> Tensor:
        """Return the mean loss; keeps exp(logits - max) [N, V] for the gradient."""
        kept_N1 = (targets_N >= 0)[:, None]
        index_N1 = targets_N.clamp_min(0)[:, None]
        top_N1 = logits_NV.amax(1, keepdim=True)
        exp_NV = (logits_NV - top_N1).exp_()
        total_N1 = exp_NV.sum(1, keepdim=True)
        losses_N1 = total_N1.log() + (top_N1 - logits_NV.gather(1, index_N1))
        share_N1 = kept_N1 / kept_N1.sum()
        ctx.kept = (exp_NV, total_N1, index_N1, share_N1)
        return (losses_N1 * share_N1).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        """Return (softmax - onehot) / count for the counted targets, else 0; only once."""
        exp_NV, total_N1, index_N1, share_N1 = ctx.kept
        ctx.kept = None  # overwritten below: a second backward must fail
        share_N1 = share_N1 * grad
        grad_NV = exp_NV.mul_(share_N1 / total_N1)
        # not scatter_add_, whose order on a GPU is not fixed
        right_N1 = grad_NV.gather(1, index_N1) - share_N1
        return grad_NV.scatter_(1, index_N1, right_N1), None


def cross_entropy(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """Return the mean cross-entropy (nats) of float32 logits [N, V] over the targets from 0 on."""
    return _CrossEntropy.apply(logits_NV, targets_N)


def bits_per_byte(nats_per_token: float, *, bytes_per_token: float) -> float:
    """Convert a loss in nats per token to bits per byte of the text that the tokens encode."""
    return nats_per_token / bytes_per_token / math.log(2)
