"""The public function: checks its arguments and chooses the path. Shapes as in `reference`."""

import os
from typing import Literal

import torch
from torch import Tensor

from kernels.quest.reference import quest_attention_reference
from kernels.quest.torch_path import quest_attention_torch
from kernels.quest.triton_launch import DTYPES, MAX_DIM, MIN_DIM

Backend = Literal["auto", "reference", "torch", "triton"]
BACKENDS = ("auto", "reference", "torch", "triton")


def quest_attention(
    q_BHTD: Tensor,
    k_BGSD: Tensor,
    v_BGSD: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    backend: Backend = "auto",
) -> Tensor:
    """Return `softmax(q kbar^T) v`, `kbar = k / |k|`, as (B, H, T, D) in the type of `q_BHTD`.

    q (B, H, T, D), k and v (B, G, S, D), G a divisor of H: query head h reads key head h // (H/G).
    Logits are not scaled. A key of norm at most 1e-12 gives logit 0 and gets gradient 0.

    `mask` is boolean, True where a query may attend: (B, S) over the keys, or four dimensions that
    broadcast to (B, H, T, S). `causal` lets query i see key j where j <= i + S - T. A query that
    sees no key gets 0. `dropout` drops attention weights with this probability.

    backend "auto" takes the Triton kernels for float16, bfloat16 and float32 tensors on a GPU with
    16 <= D <= 128 and no dropout, and torch's fused attention otherwise. Raises ValueError for
    arguments that do not fit together, or that the chosen backend does not support.
    """
    _check_tensors(q_BHTD, k_BGSD, v_BGSD)
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout = {dropout}: must be at least 0 and below 1")
    mask_BHTS = None if mask is None else _four_dimensions(mask, q_BHTD, k_BGSD)
    if _takes_triton(backend, q_BHTD, dropout):
        from kernels.quest.triton_path import quest_attention_triton

        return quest_attention_triton(q_BHTD, k_BGSD, v_BGSD, mask=mask_BHTS, causal=causal)
    path = quest_attention_reference if backend == "reference" else quest_attention_torch
    return path(q_BHTD, k_BGSD, v_BGSD, mask=mask_BHTS, causal=causal, dropout=dropout)


def _check_tensors(q_BHTD: Tensor, k_BGSD: Tensor, v_BGSD: Tensor) -> None:
    q, k, v = tuple(q_BHTD.shape), tuple(k_BGSD.shape), tuple(v_BGSD.shape)
    if not len(q) == len(k) == len(v) == 4 or min(q + k + v) == 0:
        raise ValueError(f"q {q}, k {k}, v {v}: must have 4 dimensions, none empty")
    if k != v:
        raise ValueError(f"k {k}, v {v}: must have the same shape (batch, heads, keys, head dim)")
    if q[0] != k[0] or q[3] != k[3]:
        raise ValueError(f"q {q}, k {k}: must have the same batch size and head dim")
    if q[1] % k[1]:
        raise ValueError(
            f"{q[1]} query heads, {k[1]} key heads: must be a multiple of the key heads"
        )
    kinds = [(x.dtype, x.device) for x in (q_BHTD, k_BGSD, v_BGSD)]
    if len(set(kinds)) > 1 or not q_BHTD.is_floating_point():
        named = ", ".join(f"{dtype} on {device}" for dtype, device in kinds)
        raise ValueError(f"q, k, v are {named}: must be one floating type on one device")


def _four_dimensions(mask: Tensor, q_BHTD: Tensor, k_BGSD: Tensor) -> Tensor:
    """Return the mask with the dimensions (B, H, T, S), each full or of size 1."""
    batch, num_keys = k_BGSD.shape[0], k_BGSD.shape[2]
    full = (*q_BHTD.shape[:3], num_keys)
    shape = tuple(mask.shape)
    if mask.dtype != torch.bool:
        raise ValueError(f"mask is {mask.dtype}: must be boolean, True where a query may attend")
    if mask.device != q_BHTD.device:
        raise ValueError(f"mask is on {mask.device}: must be on {q_BHTD.device} like q")
    if shape == (batch, num_keys):
        return mask[:, None, None, :]
    if len(shape) == 4 and all(size in (1, whole) for size, whole in zip(shape, full, strict=True)):
        return mask
    raise ValueError(f"mask {shape}: must be {(batch, num_keys)} or broadcast to {full}")


def _takes_triton(backend: str, q_BHTD: Tensor, dropout: float) -> bool:
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r}: must be one of {', '.join(BACKENDS)}")
    if backend not in ("auto", "triton"):
        return False
    # the interpreter runs the kernels on the CPU, for tests
    on_device = q_BHTD.is_cuda or (
        backend == "triton" and os.environ.get("TRITON_INTERPRET") == "1"
    )
    dim, dtype = q_BHTD.shape[3], q_BHTD.dtype
    supported = on_device and dtype in DTYPES and MIN_DIM <= dim <= MAX_DIM and not dropout
    if backend == "triton" and not supported:
        raise ValueError(
            f"backend 'triton' with {dtype} on {q_BHTD.device}, head dim {dim}, dropout {dropout}:"
            f" must be 16- or 32-bit floats on a GPU, head dim {MIN_DIM} to {MAX_DIM}, no dropout"
        )
    return supported
