"""Compiles Triton kernels ahead of time, without a GPU, and reports what they use on each target.

    python -m kernels.compile_table quest

writes kernels/quest/table.csv: registers a thread, shared memory, spills and matrix instructions
(only the target's widest kind counts) of every variant that kernels/quest/variants.py lists, and
the digest of the sources they came from.

Spills are instructions that move registers to local memory and back (LDL and STL) on NVIDIA, and
spilled vector registers on AMD.
"""

import argparse
import ast
import csv
import functools
import hashlib
import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triton import JITFunction
    from triton.compiler import CompiledKernel

KERNELS = Path(__file__).resolve().parent
TARGETS = {
    "sm_80": ("cuda", 80, 32),
    "sm_90": ("cuda", 90, 32),
    "sm_100": ("cuda", 100, 32),
    "gfx942": ("hip", "gfx942", 64),
}
# the widest that each target has: mma, wgmma, tcgen05, mfma
MATRIX_INSTRUCTIONS = {
    "sm_80": r"\bHMMA\b",
    "sm_90": r"\bHGMMA\b",
    "sm_100": r"\bUTC\w*MMA\b",
    "gfx942": r"\bv_mfma",
}


@dataclass(frozen=True)
class Variant:
    """One compilation of a kernel, as a launch with these types and constants would make it.

    `types` gives every argument in order ("*fp16", "i32", "constexpr"); a constant needs a value in
    `constants`. `aligned` names the arguments that are multiples of 16, as pointers from torch are:
    without them the compiler falls back to narrow loads. `label` is what the table shows.
    """

    kernel: "JITFunction"
    types: dict[str, str]
    constants: dict[str, int | bool | str | None]
    aligned: tuple[str, ...]
    num_warps: int
    num_stages: int
    label: dict[str, str | int]


@dataclass(frozen=True)
class Resources:
    """What one compiled kernel uses: registers a thread, bytes of shared memory a program, ..."""

    registers: int
    shared_bytes: int
    spills: int
    matrix_instructions: int


def compile_variant(variant: Variant, target: str) -> "CompiledKernel":
    """Compile for a name in TARGETS; needs TRITON_INTERPRET unset when Triton was imported."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    place = variant.kernel.arg_names.index
    source = ASTSource(
        fn=variant.kernel,
        signature=variant.types,
        constexprs={(place(name),): value for name, value in variant.constants.items()},
        attrs={(place(name),): [["tt.divisibility", 16]] for name in variant.aligned},
    )
    options = {"num_warps": variant.num_warps, "num_stages": variant.num_stages}
    return triton.compile(source, target=GPUTarget(*TARGETS[target]), options=options)


def resources(compiled: "CompiledKernel", target: str) -> Resources:
    """Read registers, shared memory, spills and matrix instructions out of a compiled kernel."""
    if "amdgcn" in compiled.asm:
        text = compiled.asm["amdgcn"]
        found = dict(re.findall(r"\.(vgpr_count|vgpr_spill_count):\s+(\d+)", text))
        registers, spills = int(found["vgpr_count"]), int(found["vgpr_spill_count"])
    else:
        usage, text = _disassemble(compiled.asm["cubin"])
        registers = int(re.search(r"REG:(\d+)", usage).group(1))
        spills = len(re.findall(r"\b(?:LDL|STL)\b", text))
    matrix = len(re.findall(MATRIX_INSTRUCTIONS[target], text))
    return Resources(registers, compiled.metadata.shared, spills, matrix)


def _disassemble(cubin: bytes) -> tuple[str, str]:
    """Return (resource usage, machine code) of a CUDA binary, by the tools in Triton's wheel."""
    import triton

    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        commands = ([tools / "cuobjdump", "--dump-resource-usage"], [tools / "nvdisasm"])
        usage, text = (
            subprocess.run([*c, file.name], capture_output=True, text=True, check=True).stdout
            for c in commands
        )
    return usage, text


def source_digest(op: str) -> str:
    """Return 16 digits over the kernels and variants of `op`, Triton's version and this file.

    Comments and layout do not count.
    """
    files = [*sorted((KERNELS / op).glob("triton_*.py")), KERNELS / op / "variants.py"]
    trees = [ast.dump(ast.parse(file.read_bytes())) for file in [*files, Path(__file__)]]
    return hashlib.sha256("\n".join([version("triton"), *trees]).encode()).hexdigest()[:16]


def variants(op: str, target: str) -> list[Variant]:
    """Return the variants that kernels/<op>/variants.py lists for a name in TARGETS."""
    return importlib.import_module(f"kernels.{op}.variants").variants(target)


def _row(op: str, index: int, target: str) -> dict[str, str | int]:
    variant = variants(op, target)[index]
    used = asdict(resources(compile_variant(variant, target), target))
    launch = {"num_warps": variant.num_warps, "num_stages": variant.num_stages}
    return {**variant.label, **launch, "target": target, **used}


def main(argv: Sequence[str] | None = None) -> None:
    """Compile every variant of an operator for every target and write its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("op", help="a folder of kernels/ with a variants.py")
    op = parser.parse_args(argv).op
    if not (KERNELS / op / "variants.py").is_file():
        sys.exit(f"{op}: kernels/{op}/variants.py does not exist")
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"TRITON_CACHE_DIR": cache, "TRITON_INTERPRET": "0"}
        jobs = [(i, t) for t in TARGETS for i in range(len(variants(op, t)))]
        with ProcessPoolExecutor() as pool:
            rows = []
            for row in pool.map(functools.partial(_row, op), *zip(*jobs, strict=True)):
                rows.append({**row, "sources": source_digest(op)})
                print(*row.values(), flush=True)
    with (KERNELS / op / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
