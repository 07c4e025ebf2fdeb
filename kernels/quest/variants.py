"""The compilations of `make kernel-table`: each kernel over types, head dims and masks."""

import torch

from kernels.compile_table import Variant
from kernels.quest.triton_forward import quest_fwd_kernel
from kernels.quest.triton_keys import quest_bwd_keys_kernel
from kernels.quest.triton_launch import plan, tile_width
from kernels.quest.triton_queries import quest_bwd_queries_kernel

KERNELS = {
    "forward": quest_fwd_kernel,
    "queries": quest_bwd_queries_kernel,
    "keys": quest_bwd_keys_kernel,
}
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
CASES = (
    # dtype, head dim, causal, mask
    ("fp16", 64, True, "none"),
    ("fp16", 64, False, "keys"),
    ("fp16", 64, True, "full"),
    ("bf16", 32, False, "none"),
    ("bf16", 80, True, "full"),
    ("bf16", 128, True, "none"),
    ("fp32", 64, True, "none"),
    ("fp32", 128, True, "full"),
)
LONG = 4096  # tokens: blocks in full size


def variants(target: str) -> list[Variant]:
    """Return every case of every kernel for a target, the representative of each kernel first."""
    amd = target.startswith("gfx")
    return [variant(kernel, *case, amd=amd) for case in CASES for kernel in KERNELS]


def variant(name: str, dtype: str, dim: int, causal: bool, mask: str, *, amd: bool) -> Variant:
    """Return one kernel as `triton_path` launches it on long sequences of contiguous heads."""
    kernel = KERNELS[name]
    launch = getattr(plan(DTYPES[dtype], dim, LONG, LONG, amd=amd), name)
    constants = {
        "D": dim,
        "BLOCK_D": tile_width(dim),
        "BLOCK_M": launch.block_m,
        "BLOCK_N": launch.block_n,
        "CAUSAL": causal,
        "MASK": mask,
        "stride_ms": 1,
    }
    if mask == "none":
        constants["mask"] = None
    special = {"mask": "*u8", "lse": "*fp32", "delta": "*fp32"}
    types = {}
    for argument in kernel.arg_names:
        is_size = argument.startswith("stride_") or argument in ("H", "G", "T", "S")
        types[argument] = special.get(argument, "i32" if is_size else f"*{dtype}")
        if argument in constants:
            types[argument] = "constexpr"
    # what a launch finds divisible by 16: every pointer, and the strides of whole rows
    aligned = [
        argument
        for argument, kind in types.items()
        if kind.startswith("*") or (kind == "i32" and argument.startswith("stride_"))
    ]
    return Variant(
        kernel=kernel,
        types=types,
        constants=constants,
        aligned=tuple(aligned),
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
        label={
            "kernel": name,
            "dtype": dtype,
            "head_dim": dim,
            "causal": "yes" if causal else "no",
            "mask": mask,
            "block_m": launch.block_m,
            "block_n": launch.block_n,
        },
    )
