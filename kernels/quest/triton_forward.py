"""QUEST attention, Triton forward: online softmax over key blocks (FlashAttention-2 form).

    x_ij = log2(e) <q_i, k_j> / |k_j|
    lse_i = log2 sum_j 2^x_ij
    o_i = sum_j 2^(x_ij - lse_i) v_j

The norm of a key is taken from its tile in float32 and scales the column of logits, where plain
attention has its constant scale: unit keys are neither stored nor rounded. One program makes one
block of queries of one head. Shapes as in `reference`; `lse_BHT` is float32, +inf for a query
without keys, so that the backward pass finds its weights to be 0.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.quest.triton_blocks import (
    INF,
    LOG2E,
    inverse_norm,
    key_bounds,
    load_rows,
    masked,
    store_rows,
)
from kernels.quest.triton_launch import Launch, head_strides, mask_arguments, tile_width


@triton.jit
def _attend(
    b_o,
    b_max,
    b_sum,
    b_q,
    k_head,
    v_head,
    mask,
    stride_ks,
    stride_vs,
    stride_mt,
    stride_ms,
    begin,
    end,
    o_t,
    o_d,
    T,
    S,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
    EDGE: tl.constexpr,
):
    """Take the keys [begin, end) into the running output, maximum and sum of each query."""
    for start in range(begin, end, BLOCK_N):
        o_s = start + tl.arange(0, BLOCK_N)
        b_k = load_rows(k_head, o_s, stride_ks, S, o_d, D)
        b_scale = inverse_norm(b_k) * LOG2E
        b_x = tl.dot(b_q, tl.trans(b_k), input_precision="ieee") * b_scale[None, :]  # [M, N]
        b_x = masked(
            b_x, o_t[:, None], o_s[None, :], T, S, mask, stride_mt, stride_ms, CAUSAL, MASK, EDGE
        )
        b_new = tl.maximum(b_max, tl.max(b_x, axis=1))
        # a row that has seen no key yet has maximum -inf: -inf - (-inf) would be NaN
        b_shift = tl.where(b_new == -INF, 0.0, b_new)
        b_p = tl.exp2(b_x - b_shift[:, None])
        b_decay = tl.exp2(b_max - b_shift)
        b_sum = b_sum * b_decay + tl.sum(b_p, axis=1)
        b_v = load_rows(v_head, o_s, stride_vs, S, o_d, D)
        b_o = tl.dot(b_p.to(b_v.dtype), b_v, b_o * b_decay[:, None], input_precision="ieee")
        b_max = b_new
    return b_o, b_max, b_sum


@triton.jit(do_not_specialize=["T", "S"])
def quest_fwd_kernel(
    q,
    k,
    v,
    mask,
    o,
    lse,
    stride_qb,
    stride_qh,
    stride_qt,
    stride_kb,
    stride_kg,
    stride_ks,
    stride_vb,
    stride_vg,
    stride_vs,
    stride_ob,
    stride_oh,
    stride_ot,
    stride_mb,
    stride_mh,
    stride_mt,
    stride_ms,
    H,
    G,
    T,
    S,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
):
    """Write o_BHTD and lse_BHT for BLOCK_M queries of one head."""
    num_blocks = tl.cdiv(T, BLOCK_M)
    i_bh = (tl.program_id(0) // num_blocks).to(tl.int64)
    i_t = tl.program_id(0) % num_blocks * BLOCK_M
    i_b, i_h = i_bh // H, i_bh % H
    i_g = i_h // (H // G)
    k_head = k + i_b * stride_kb + i_g * stride_kg
    v_head = v + i_b * stride_vb + i_g * stride_vg
    if MASK != "none":
        mask += i_b * stride_mb + i_h * stride_mh
    o_t, o_d = i_t + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
    b_q = load_rows(q + i_b * stride_qb + i_h * stride_qh, o_t, stride_qt, T, o_d, D)

    b_o = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    b_max = tl.full([BLOCK_M], -INF, tl.float32)
    b_sum = tl.zeros([BLOCK_M], tl.float32)
    seen, end = key_bounds(i_t, T, S, BLOCK_M, BLOCK_N, CAUSAL)
    b_o, b_max, b_sum = _attend(
        b_o, b_max, b_sum, b_q, k_head, v_head, mask, stride_ks, stride_vs, stride_mt, stride_ms,
        0, seen, o_t, o_d, T, S, D, BLOCK_N, CAUSAL, MASK, False,
    )  # fmt: skip
    b_o, b_max, b_sum = _attend(
        b_o, b_max, b_sum, b_q, k_head, v_head, mask, stride_ks, stride_vs, stride_mt, stride_ms,
        seen, end, o_t, o_d, T, S, D, BLOCK_N, CAUSAL, MASK, True,
    )  # fmt: skip

    b_empty = b_sum == 0.0
    b_sum = tl.where(b_empty, 1.0, b_sum)
    b_lse = tl.where(b_empty, INF, b_max + tl.log2(b_sum))
    o_head = o + i_b * stride_ob + i_h * stride_oh
    store_rows(o_head, o_t, stride_ot, T, o_d, b_o / b_sum[:, None], D)
    tl.store(lse + i_bh * T + o_t, b_lse, mask=o_t < T)


def quest_forward(
    q_BHTD: Tensor,
    k_BGSD: Tensor,
    v_BGSD: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    launch: Launch,
) -> tuple[Tensor, Tensor]:
    """Return (o_BHTD, lse_BHT); the last dimension of each tensor is contiguous."""
    batch, num_heads, num_queries, dim = q_BHTD.shape
    num_groups, num_keys = k_BGSD.shape[1:3]
    o_BHTD = torch.empty_like(q_BHTD)
    lse_BHT = q_BHTD.new_empty(batch, num_heads, num_queries, dtype=torch.float32)
    bytes_BHTS, mask_strides, mask_kind = mask_arguments(mask, (*q_BHTD.shape[:3], num_keys))
    grid = (batch * num_heads * triton.cdiv(num_queries, launch.block_m),)
    quest_fwd_kernel[grid](
        q_BHTD,
        k_BGSD,
        v_BGSD,
        bytes_BHTS,
        o_BHTD,
        lse_BHT,
        *head_strides(q_BHTD, k_BGSD, v_BGSD, o_BHTD),
        *mask_strides,
        num_heads,
        num_groups,
        num_queries,
        num_keys,
        D=dim,
        BLOCK_D=tile_width(dim),
        BLOCK_M=launch.block_m,
        BLOCK_N=launch.block_n,
        CAUSAL=causal,
        MASK=mask_kind,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
    return o_BHTD, lse_BHT
