"""Inputs of the tests of QUEST attention, and how far a result may be from the reference."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels.quest import quest_attention


class Case(NamedTuple):
    """One problem: sizes as in kernels/quest/reference.py, and the kernels' blocks (M, N)."""

    batch: int = 1
    heads: int = 2
    groups: int = 2
    queries: int = 37
    keys: int = 37
    dim: int = 16
    causal: bool = False
    mask: str = "none"
    dtype: str = "float32"
    key_scale: float = 1.0
    query_scale: float = 1.0
    blocks: tuple[int, int] = (32, 16)


CASES = {
    "plain": Case(),
    "causal-gqa": Case(heads=4, causal=True),
    "wide-key-blocks": Case(groups=1, queries=70, keys=70, causal=True, blocks=(16, 32)),
    "padding-mask": Case(batch=2, keys=53, dim=20, mask="keys"),
    "full-mask": Case(heads=2, groups=1, keys=53, dim=20, mask="full"),
    "more-keys": Case(queries=19, keys=53, causal=True, mask="keys"),
    "more-queries": Case(queries=53, keys=19, causal=True, mask="full"),
    "one-query": Case(heads=4, groups=1, queries=1, keys=33, dim=128, causal=True),
    "one-key": Case(queries=17, keys=1, dim=33),
    "short-keys": Case(key_scale=1e-6),
    "long-keys-sharp-rows": Case(key_scale=1e6, query_scale=50.0, causal=True),
    "half": Case(heads=2, groups=1, dim=64, causal=True, dtype="float16"),
    "half-long-keys": Case(dim=64, key_scale=6e3, dtype="float16"),
    "half-short-keys": Case(key_scale=1e-4, dtype="float16", mask="keys"),
}
# relative to the root mean square of the truth: roundings of the type, times logits up to 200
TOLERANCE = {
    torch.float64: 1e-13,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}


def inputs(case: Case) -> dict[str, Tensor | None]:
    """Return q, k, v, do and mask: rows of heads, not heads of rows, in memory; key 3 is zero."""
    generator = torch.Generator().manual_seed(0)

    def normal(heads: int, rows: int) -> Tensor:
        x_BTHD = torch.randn(case.batch, rows, heads, case.dim, generator=generator)
        return x_BTHD.to(getattr(torch, case.dtype)).transpose(1, 2)

    q, do = normal(case.heads, case.queries), normal(case.heads, case.queries)
    k, v = normal(case.groups, case.keys), normal(case.groups, case.keys)
    k *= case.key_scale * torch.linspace(0.5, 2, case.keys)[:, None]
    k[:, :, 3:4] = 0
    return {"q": q * case.query_scale, "k": k, "v": v, "do": do, "mask": _mask(case, generator)}


def _mask(case: Case, generator: torch.Generator) -> Tensor | None:
    if case.mask == "none":
        return None
    sizes = (case.batch, 1, case.queries if case.mask == "full" else 1, case.keys)
    mask = torch.rand(sizes, generator=generator) < 0.7
    if case.mask == "full":
        mask[:, :, case.queries // 2] = False  # a query without keys
    return mask


def attend(given: dict[str, Tensor | None], *, causal: bool, backend: str) -> dict[str, Tensor]:
    """Return {o, dq, dk, dv} of one path, by autograd."""
    leaves = [given[name].detach().requires_grad_() for name in "qkv"]
    o = quest_attention(*leaves, mask=given["mask"], causal=causal, backend=backend)
    gradients = torch.autograd.grad(o, leaves, given["do"])
    return dict(zip(("o", "dq", "dk", "dv"), (o.detach(), *gradients), strict=True))


def truth(case: Case) -> dict[str, Tensor]:
    """Return {o, dq, dk, dv} of the reference in float64 on the case's rounded inputs."""
    given = inputs(case)
    wide = {name: x if name == "mask" else x.double() for name, x in given.items()}
    return attend(wide, causal=case.causal, backend="reference")


def assert_close(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Compare every tensor by its relative error in root mean square."""
    for name, x in expected.items():
        assert found[name].shape == x.shape
        error = (found[name].double() - x).square().mean().sqrt()
        relative = (error / x.square().mean().sqrt().clamp_min(1e-300)).item()
        if not x.any():
            relative = error.item()
        assert relative <= TOLERANCE[found[name].dtype], f"{name}: relative error {relative:.2e}"
