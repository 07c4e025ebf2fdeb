"""QUEST attention, Triton backward for the queries: one program per block of queries.

    p_ij = 2^(x_ij - lse_i)
    ds_ij = p_ij (<do_i, v_j> - delta_i)
    dq_i = sum_j ds_ij k_j / |k_j|

with `delta_i = <do_i, o_i>`, which is stored for the kernel of the keys. Logits are recomputed as
in the forward pass; only the last product takes rounded unit keys, whose size is at most 1, since
`ds_ij / |k_j|` can leave the range of float16.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.quest.triton_blocks import (
    LOG2E,
    inverse_norm,
    key_bounds,
    load_rows,
    masked,
    store_rows,
)
from kernels.quest.triton_launch import Launch, head_strides, mask_arguments, tile_width


@triton.jit
def _add_keys(
    b_dq,
    b_q,
    b_do,
    b_lse,
    b_delta,
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
    """Add what the keys [begin, end) give to dq."""
    for start in range(begin, end, BLOCK_N):
        o_s = start + tl.arange(0, BLOCK_N)
        b_k = load_rows(k_head, o_s, stride_ks, S, o_d, D)
        b_inverse = inverse_norm(b_k)
        b_x = tl.dot(b_q, tl.trans(b_k), input_precision="ieee") * (b_inverse * LOG2E)[None, :]
        b_x = masked(
            b_x, o_t[:, None], o_s[None, :], T, S, mask, stride_mt, stride_ms, CAUSAL, MASK, EDGE
        )
        b_v = load_rows(v_head, o_s, stride_vs, S, o_d, D)
        b_dp = tl.dot(b_do, tl.trans(b_v), input_precision="ieee")
        b_ds = tl.exp2(b_x - b_lse[:, None]) * (b_dp - b_delta[:, None])  # [M, N]
        b_unit = (b_k * b_inverse[:, None]).to(b_k.dtype)
        b_dq = tl.dot(b_ds.to(b_k.dtype), b_unit, b_dq, input_precision="ieee")
    return b_dq


@triton.jit(do_not_specialize=["T", "S"])
def quest_bwd_queries_kernel(
    q,
    k,
    v,
    mask,
    o,
    do,
    lse,
    delta,
    dq,
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
    stride_dob,
    stride_doh,
    stride_dot,
    stride_dqb,
    stride_dqh,
    stride_dqt,
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
    """Write dq_BHTD and delta_BHT for BLOCK_M queries of one head."""
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
    b_o = load_rows(o + i_b * stride_ob + i_h * stride_oh, o_t, stride_ot, T, o_d, D)
    b_do = load_rows(do + i_b * stride_dob + i_h * stride_doh, o_t, stride_dot, T, o_d, D)
    b_delta = tl.sum(b_do.to(tl.float32) * b_o.to(tl.float32), axis=1)
    tl.store(delta + i_bh * T + o_t, b_delta, mask=o_t < T)
    b_lse = tl.load(lse + i_bh * T + o_t, mask=o_t < T, other=0.0)

    b_dq = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    seen, end = key_bounds(i_t, T, S, BLOCK_M, BLOCK_N, CAUSAL)
    b_dq = _add_keys(
        b_dq, b_q, b_do, b_lse, b_delta, k_head, v_head, mask, stride_ks, stride_vs, stride_mt,
        stride_ms, 0, seen, o_t, o_d, T, S, D, BLOCK_N, CAUSAL, MASK, False,
    )  # fmt: skip
    b_dq = _add_keys(
        b_dq, b_q, b_do, b_lse, b_delta, k_head, v_head, mask, stride_ks, stride_vs, stride_mt,
        stride_ms, seen, end, o_t, o_d, T, S, D, BLOCK_N, CAUSAL, MASK, True,
    )  # fmt: skip
    dq_head = dq + i_b * stride_dqb + i_h * stride_dqh
    store_rows(dq_head, o_t, stride_dqt, T, o_d, b_dq, D)


def quest_backward_queries(
    q_BHTD: Tensor,
    k_BGSD: Tensor,
    v_BGSD: Tensor,
    o_BHTD: Tensor,
    do_BHTD: Tensor,
    lse_BHT: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    launch: Launch,
) -> tuple[Tensor, Tensor]:
    """Return (dq_BHTD, delta_BHT) from what `quest_forward` took and returned."""
    batch, num_heads, num_queries, dim = q_BHTD.shape
    num_groups, num_keys = k_BGSD.shape[1:3]
    dq_BHTD, delta_BHT = torch.empty_like(q_BHTD), torch.empty_like(lse_BHT)
    bytes_BHTS, mask_strides, mask_kind = mask_arguments(mask, (*q_BHTD.shape[:3], num_keys))
    grid = (batch * num_heads * triton.cdiv(num_queries, launch.block_m),)
    quest_bwd_queries_kernel[grid](
        q_BHTD,
        k_BGSD,
        v_BGSD,
        bytes_BHTS,
        o_BHTD,
        do_BHTD,
        lse_BHT,
        delta_BHT,
        dq_BHTD,
        *head_strides(q_BHTD, k_BGSD, v_BGSD, o_BHTD, do_BHTD, dq_BHTD),
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
    return dq_BHTD, delta_BHT
