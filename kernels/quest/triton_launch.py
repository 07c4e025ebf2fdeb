"""How the Triton kernels are launched: block sizes, strides and mask kinds."""

from typing import NamedTuple

import torch
from torch import Tensor

MIN_DIM, MAX_DIM = 16, 128
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


class Launch(NamedTuple):
    """Rows of queries and of keys in a tile, warps a program, stages of the software pipeline."""

    block_m: int
    block_n: int
    num_warps: int
    num_stages: int


class Plan(NamedTuple):
    """The launches of the three kernels."""

    forward: Launch
    queries: Launch
    keys: Launch


# by (4-byte types, head dim up to): large tiles that spill nowhere under any mask, see table.csv;
# the side that is the first of a product has 64 rows or more where Hopper is to use its wgmma
PLANS = {
    (False, 64): Plan(Launch(128, 64, 8, 3), Launch(64, 64, 8, 2), Launch(32, 64, 8, 1)),
    (False, 128): Plan(Launch(128, 32, 8, 2), Launch(64, 32, 8, 2), Launch(16, 64, 8, 1)),
    (True, 64): Plan(Launch(64, 32, 8, 2), Launch(64, 16, 8, 2), Launch(32, 32, 8, 1)),
    (True, 128): Plan(Launch(32, 16, 8, 2), Launch(32, 16, 8, 2), Launch(32, 16, 8, 1)),
}


def tile_width(size: int) -> int:
    """Return the smallest side of a tile that holds `size`: a power of two, at least 16."""
    return max(16, 1 << (size - 1).bit_length())


def plan(dtype: torch.dtype, dim: int, num_queries: int, num_keys: int, *, amd: bool) -> Plan:
    """Return the launches for a type and head dim, with blocks no larger than short sequences.

    On AMD a warp has 64 threads, so half as many make the same program.
    """
    chosen = PLANS[dtype.itemsize == 4, 64 if dim <= 64 else 128]
    most_rows, most_cols = tile_width(num_queries), tile_width(num_keys)
    launches = (
        Launch(
            min(launch.block_m, most_rows),
            min(launch.block_n, most_cols),
            launch.num_warps // 2 if amd else launch.num_warps,
            launch.num_stages,
        )
        for launch in chosen
    )
    return Plan(*launches)


def addressable(x: Tensor) -> Tensor:
    """Return `x` with a contiguous last dimension and heads that 32-bit offsets can address."""
    simple = x.stride(-1) == 1 and x.shape[-2] * x.stride(-2) < 2**31
    return x if simple else x.contiguous()


def head_strides(*tensors: Tensor) -> list[int]:
    """Return the strides (batch, head, row) of each tensor, one after the other."""
    return [stride for x in tensors for stride in x.stride()[:3]]


def mask_arguments(
    mask: Tensor | None, shape: tuple[int, int, int, int]
) -> tuple[Tensor | None, tuple[int, ...], str]:
    """Return (mask as bytes, its strides over `shape` (B, H, T, S), the kernel's MASK)."""
    if mask is None:
        return None, (0, 0, 0, 0), "none"
    # broadcast dimensions get stride 0 and cost no memory
    bytes_BHTS = mask.expand(shape).view(torch.uint8)
    return bytes_BHTS, bytes_BHTS.stride(), "keys" if bytes_BHTS.stride(2) == 0 else "full"
