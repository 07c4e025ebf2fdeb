"""QUEST attention, Triton backward for keys and values: one program per block of keys.

    dv_j = sum_i p_ij do_i
    dkbar_j = sum_i ds_ij q_i
    dk_j = (dkbar_j - kbar_j <kbar_j, dkbar_j>) / |k_j|

The sums run over the queries of every head that shares the key head, in a fixed order and within
one program: no atomics, the same bits in each run. The projection is the epilogue. Tiles are
transposed, keys by queries. Unlike the other kernels this one has a single loop that compares
positions in each causal tile: a second loop would spill registers.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.quest.triton_blocks import LOG2E, inverse_norm, load_rows, masked, store_rows
from kernels.quest.triton_launch import Launch, head_strides, mask_arguments, tile_width


@triton.jit
def _add_queries(
    b_dk,
    b_dv,
    b_k,
    b_v,
    b_scale,
    q_head,
    do_head,
    lse_head,
    delta_head,
    mask,
    stride_qt,
    stride_dot,
    stride_mt,
    stride_ms,
    begin,
    end,
    o_s,
    o_d,
    T,
    S,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
):
    """Add what the queries [begin, end) of one head give to dkbar and dv."""
    for start in range(begin, end, BLOCK_M):
        o_t = start + tl.arange(0, BLOCK_M)
        b_q = load_rows(q_head, o_t, stride_qt, T, o_d, D)
        b_x = tl.dot(b_k, tl.trans(b_q), input_precision="ieee") * b_scale[:, None]  # [N, M]
        b_x = masked(
            b_x, o_t[None, :], o_s[:, None], T, S, mask, stride_mt, stride_ms, CAUSAL, MASK, CAUSAL
        )
        # queries beyond the last have do = 0 and delta = 0: they give nothing
        b_lse = tl.load(lse_head + o_t, mask=o_t < T, other=0.0)
        b_p = tl.exp2(b_x - b_lse[None, :])
        b_do = load_rows(do_head, o_t, stride_dot, T, o_d, D)
        b_dv = tl.dot(b_p.to(b_do.dtype), b_do, b_dv, input_precision="ieee")
        b_delta = tl.load(delta_head + o_t, mask=o_t < T, other=0.0)
        b_dp = tl.dot(b_v, tl.trans(b_do), input_precision="ieee")
        b_ds = b_p * (b_dp - b_delta[None, :])
        b_dk = tl.dot(b_ds.to(b_q.dtype), b_q, b_dk, input_precision="ieee")
    return b_dk, b_dv


@triton.jit(do_not_specialize=["T", "S"])
def quest_bwd_keys_kernel(
    q,
    k,
    v,
    mask,
    do,
    lse,
    delta,
    dk,
    dv,
    stride_qb,
    stride_qh,
    stride_qt,
    stride_kb,
    stride_kg,
    stride_ks,
    stride_vb,
    stride_vg,
    stride_vs,
    stride_dob,
    stride_doh,
    stride_dot,
    stride_dkb,
    stride_dkg,
    stride_dks,
    stride_dvb,
    stride_dvg,
    stride_dvs,
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
    """Write dk_BGSD and dv_BGSD for BLOCK_N keys of one key head."""
    num_blocks = tl.cdiv(S, BLOCK_N)
    i_bg = (tl.program_id(0) // num_blocks).to(tl.int64)
    i_s = tl.program_id(0) % num_blocks * BLOCK_N
    i_b, i_g = i_bg // G, i_bg % G
    o_s, o_d = i_s + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    b_k = load_rows(k + i_b * stride_kb + i_g * stride_kg, o_s, stride_ks, S, o_d, D)
    b_v = load_rows(v + i_b * stride_vb + i_g * stride_vg, o_s, stride_vs, S, o_d, D)
    b_inverse = inverse_norm(b_k)
    b_scale = b_inverse * LOG2E

    b_dk = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    b_dv = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    begin = 0  # the first block of queries that sees any of these keys
    if CAUSAL:
        begin = tl.maximum(i_s - (S - T), 0) // BLOCK_M * BLOCK_M
    group = H // G
    for i in range(group):
        i_h = i_g * group + i
        q_head = q + i_b * stride_qb + i_h * stride_qh
        do_head = do + i_b * stride_dob + i_h * stride_doh
        lse_head, delta_head = lse + (i_b * H + i_h) * T, delta + (i_b * H + i_h) * T
        mask_head = mask
        if MASK != "none":
            mask_head = mask + i_b * stride_mb + i_h * stride_mh
        b_dk, b_dv = _add_queries(
            b_dk, b_dv, b_k, b_v, b_scale, q_head, do_head, lse_head, delta_head, mask_head,
            stride_qt, stride_dot, stride_mt, stride_ms, begin, T, o_s, o_d,
            T, S, D, BLOCK_M, CAUSAL, MASK,
        )  # fmt: skip

    b_unit = b_k * b_inverse[:, None]
    b_along = tl.sum(b_unit * b_dk, axis=1)
    b_dk = (b_dk - b_unit * b_along[:, None]) * b_inverse[:, None]
    dk_head, dv_head = (
        dk + i_b * stride_dkb + i_g * stride_dkg,
        dv + i_b * stride_dvb + i_g * stride_dvg,
    )
    store_rows(dk_head, o_s, stride_dks, S, o_d, b_dk, D)
    store_rows(dv_head, o_s, stride_dvs, S, o_d, b_dv, D)


def quest_backward_keys(
    q_BHTD: Tensor,
    k_BGSD: Tensor,
    v_BGSD: Tensor,
    do_BHTD: Tensor,
    lse_BHT: Tensor,
    delta_BHT: Tensor,
    *,
    mask: Tensor | None,
    causal: bool,
    launch: Launch,
) -> tuple[Tensor, Tensor]:
    """Return (dk_BGSD, dv_BGSD) from the forward pass and the delta of the queries' kernel."""
    num_heads, num_queries, dim = q_BHTD.shape[1:]
    batch, num_groups, num_keys = k_BGSD.shape[:3]
    dk_BGSD, dv_BGSD = torch.empty_like(k_BGSD), torch.empty_like(v_BGSD)
    bytes_BHTS, mask_strides, mask_kind = mask_arguments(mask, (*q_BHTD.shape[:3], num_keys))
    grid = (batch * num_groups * triton.cdiv(num_keys, launch.block_n),)
    quest_bwd_keys_kernel[grid](
        q_BHTD,
        k_BGSD,
        v_BGSD,
        bytes_BHTS,
        do_BHTD,
        lse_BHT,
        delta_BHT,
        dk_BGSD,
        dv_BGSD,
        *head_strides(q_BHTD, k_BGSD, v_BGSD, do_BHTD, dk_BGSD, dv_BGSD),
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
    return dk_BGSD, dv_BGSD
