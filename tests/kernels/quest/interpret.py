"""Run every case through the Triton kernels, interpreted: python interpret.py OUT

Writes {case: {o, lse, dq, dk, dv}} and more to OUT. Triton reads TRITON_INTERPRET when
it is imported, so this needs a process of its own.
"""

import sys

import torch
from quest_cases import CASES, Case, attend, inputs

from kernels.quest.triton_launch import Launch


def by_blocks(case: Case) -> dict[str, torch.Tensor]:
    """Call the three kernels with the small blocks of the case."""
    from kernels.quest.triton_forward import quest_forward
    from kernels.quest.triton_keys import quest_backward_keys
    from kernels.quest.triton_queries import quest_backward_queries

    given = inputs(case)
    q, k, v, do = (given[name] for name in ("q", "k", "v", "do"))
    options = {
        "mask": given["mask"],
        "causal": case.causal,
        "launch": Launch(*case.blocks, num_warps=4, num_stages=1),
    }
    o, lse = quest_forward(q, k, v, **options)
    dq, delta = quest_backward_queries(q, k, v, o, do, lse, **options)
    dk, dv = quest_backward_keys(q, k, v, do, lse, delta, **options)
    return {"o": o, "lse": lse, "dq": dq, "dk": dk, "dv": dv}


def main() -> None:
    """Write the results; first make sure that the package alone imports no Triton."""
    lazy = not {"triton", "transformers"} & set(sys.modules)
    results = {name: by_blocks(case) for name, case in CASES.items()}
    again = by_blocks(CASES["causal-gqa"])
    whole = attend(inputs(CASES["causal-gqa"]), causal=True, backend="triton")
    torch.save({"lazy": lazy, "again": again, "whole": whole, "results": results}, sys.argv[1])


if __name__ == "__main__":
    main()
