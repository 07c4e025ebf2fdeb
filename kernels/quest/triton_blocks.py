"""What the forward and backward kernels share: tiles, key scales, masks and loop bounds.

Tiles are rows of queries (M) by keys (N), or the transpose: `rows` and `cols` carry the
orientation as [M, 1] and [1, N], or [1, M] and [N, 1]. Logits are kept in base 2.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
EPS_SQUARED = tl.constexpr(1e-24)  # of `reference.EPS`
INF = tl.constexpr(float("inf"))


@triton.jit
def load_rows(head, index, stride, num_rows, o_d, D: tl.constexpr):
    """Load the rows `index` of a head as a tile [len(index), BLOCK_D], 0 outside."""
    inside = (index[:, None] < num_rows) & (o_d[None, :] < D)
    return tl.load(head + index[:, None] * stride + o_d[None, :], mask=inside, other=0.0)


@triton.jit
def store_rows(head, index, stride, num_rows, o_d, b_x, D: tl.constexpr):
    """Store a tile [len(index), BLOCK_D] to the rows `index` of a head, rounded to its type."""
    inside = (index[:, None] < num_rows) & (o_d[None, :] < D)
    at = head + index[:, None] * stride + o_d[None, :]
    tl.store(at, b_x.to(head.dtype.element_ty), mask=inside)


@triton.jit
def inverse_norm(b_k):
    """Return 1 / |k| of each row of a key tile in float32, 0 for a key without direction."""
    b_k = b_k.to(tl.float32)
    squared = tl.sum(b_k * b_k, axis=1)
    return tl.where(squared > EPS_SQUARED, tl.rsqrt(squared), 0.0)


@triton.jit
def masked(
    b_x,
    rows,
    cols,
    T,
    S,
    mask,
    stride_mt,
    stride_ms,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
    EDGE: tl.constexpr,
):
    """Set logits to -inf where the query may not see the key.

    MASK: "none"; "keys", the same for every query; "full". EDGE: the tile crosses the diagonal
    or the last key, so that positions are compared too.
    """
    if EDGE:
        b_x = tl.where(cols < S, b_x, -INF)
        if CAUSAL:
            b_x = tl.where(cols <= rows + (S - T), b_x, -INF)
    if MASK == "keys":
        keep = tl.load(mask + cols * stride_ms, mask=cols < S, other=0)
        b_x = tl.where(keep != 0, b_x, -INF)
    if MASK == "full":
        # T * S can exceed 32 bits
        at = mask + rows.to(tl.int64) * stride_mt + cols * stride_ms
        keep = tl.load(at, mask=(rows < T) & (cols < S), other=0)
        b_x = tl.where(keep != 0, b_x, -INF)
    return b_x


@triton.jit
def key_bounds(first_row, T, S, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Return (end of the key blocks that every row sees in full, end of those any row sees)."""
    seen, end = S, S
    if CAUSAL:
        seen = tl.minimum(S, tl.maximum(first_row + (S - T) + 1, 0))
        end = tl.minimum(S, first_row + BLOCK_M + (S - T))
    return seen // BLOCK_N * BLOCK_N, end
