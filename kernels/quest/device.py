"""What `python -m kernels.device_check` does for QUEST attention: compare, train, race.

Shapes as in `reference`.
"""

import itertools
import statistics
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernels.quest.dispatch import Backend, quest_attention
from kernels.quest.module import QuestAttention

Row = dict[str, str | int | float]
SIZES = (
    # B, H, G, T, S, D
    (2, 4, 2, 197, 197, 64),
    (1, 8, 2, 1000, 1000, 128),
    (2, 2, 2, 77, 333, 80),
    (2, 3, 1, 333, 77, 16),
    (1, 4, 1, 1, 511, 96),
    (1, 2, 2, 130, 1, 33),
)
RACES = (
    # B, H, T, D, causal
    (8, 12, 197, 64, False),
    (4, 16, 1024, 64, False),
    (1, 16, 4096, 128, True),
    (2, 32, 8192, 128, True),
)
# relative to the root mean square of the reference in float64
LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def checks() -> Iterator[Row]:
    """Yield the error of output and gradients for every size, type, mask and path on the GPU."""
    cases = itertools.product(SIZES, LIMITS, (False, True), ("none", "keys", "full"))
    for size, dtype, causal, mask in cases:
        for backend in ("triton", "torch"):
            yield from compare(size, dtype, causal, mask, backend=backend, device="cuda")
    yield same_bits()
    yield same_losses("triton", device="cuda")


def compare(
    size: tuple[int, ...],
    dtype: torch.dtype,
    causal: bool,
    mask: str,
    *,
    backend: Backend,
    device: str,
) -> Iterator[Row]:
    """Yield the relative error of o, dq, dk and dv of one path against the reference in float64."""
    leaves, do, keep = _inputs(size, dtype, mask, device)
    found = _run(leaves, do, mask=keep, causal=causal, backend=backend)
    wide = [x.detach().double().requires_grad_() for x in leaves]
    truth = _run(wide, do.double(), mask=keep, causal=causal, backend="reference")
    for name, x, exact in zip(("o", "dq", "dk", "dv"), found, truth, strict=True):
        error = (x.double() - exact).square().mean().sqrt()
        # with a single key the gradients of q and k are 0
        scale = exact.square().mean().sqrt().clamp_min(1e-3)
        yield {
            "size": "x".join(map(str, size)),
            "dtype": str(dtype).removeprefix("torch."),
            "causal": causal,
            "mask": mask,
            "backend": backend,
            "tensor": name,
            "error": (error / scale).item(),
            "limit": LIMITS[dtype],
        }


def same_bits() -> Row:
    """Return how far two runs of one call are apart: not at all."""
    leaves, do, keep = _inputs(SIZES[0], torch.float16, "keys", "cuda")
    runs = [_run(leaves, do, mask=keep, causal=True, backend="triton") for _ in range(2)]
    error = max((a - b).abs().max().item() for a, b in zip(*runs, strict=True))
    return _summary("triton", "two runs", error, 0.0)


def same_losses(backend: Backend, *, device: str) -> Row:
    """Return the largest relative gap between 50 losses of this path and of the reference."""
    ours, reference = losses(backend, device=device), losses("reference", device=device)
    gaps = [abs(a / b - 1) for a, b in zip(ours, reference, strict=True)]
    return _summary(backend, "50 losses", max(gaps), 1e-3)


def losses(backend: Backend, *, device: str, num_steps: int = 50) -> list[float]:
    """Train a causal model of two layers to continue squares modulo 32; return each loss."""
    torch.manual_seed(0)
    attentions = [
        QuestAttention(64, 4, num_kv_heads=2, causal=True, backend=backend) for _ in range(2)
    ]
    embed, readout = nn.Embedding(32, 64), nn.Linear(64, 32)
    model = nn.ModuleList([embed, *attentions, readout]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    history = []
    for _ in range(num_steps):
        start = torch.randint(0, 32, (8, 1), generator=generator)
        tokens = ((start + torch.arange(24) ** 2) % 32).to(device)
        x = embed(tokens[:, :-1])
        for attention in attentions:
            x = x + attention(F.layer_norm(x, (64,)))
        loss = F.cross_entropy(readout(x).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def timings() -> Iterator[Row]:
    """Yield milliseconds of forward and backward: the kernels, the torch path, plain attention."""
    for (batch, heads, length, dim, causal), dtype in itertools.product(
        RACES, (torch.float16, torch.bfloat16)
    ):
        size = (batch, heads, heads, length, length, dim)
        leaves, do, _ = _inputs(size, dtype, "none", "cuda")
        sides = {
            "triton": lambda q, k, v, c=causal: quest_attention(q, k, v, causal=c),
            "torch": lambda q, k, v, c=causal: quest_attention(q, k, v, causal=c, backend="torch"),
            "sdpa": lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c),
        }
        times = _race(sides, leaves, do)
        yield {
            "size": f"{batch}x{heads}x{length}x{dim}",
            "dtype": str(dtype).removeprefix("torch."),
            "causal": causal,
            **{f"{name}_ms": round(time, 4) for name, time in times.items()},
            "triton_over_sdpa": round(times["triton"] / times["sdpa"], 3),
        }


def _race(
    sides: dict[str, Callable[..., Tensor]], leaves: list[Tensor], do: Tensor, rounds: int = 20
) -> dict[str, float]:
    """Return the median milliseconds of each side, the sides taking turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 3):
        for name, side in sides.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            torch.autograd.grad(side(*leaves), leaves, do)
            end.record()
            end.synchronize()
            if turn >= 3:  # after compilation and warm-up
                times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(values) for name, values in times.items()}


def _inputs(
    size: tuple[int, ...], dtype: torch.dtype, mask: str, device: str
) -> tuple[list[Tensor], Tensor, Tensor | None]:
    """Return ([q, k, v], do, mask): tokens before heads in memory, a zero key, a blind query."""
    batch, heads, groups, num_queries, num_keys, dim = size
    generator = torch.Generator().manual_seed(0)

    def normal(rows: int, num_heads: int) -> Tensor:
        x_BTHD = torch.randn(batch, rows, num_heads, dim, generator=generator)
        return x_BTHD.to(device, dtype).transpose(1, 2)

    q, do = normal(num_queries, heads), normal(num_queries, heads)
    k, v = normal(num_keys, groups), normal(num_keys, groups)
    k[:, :, 3:4] = 0
    keep = None
    if mask != "none":
        rows = num_queries if mask == "full" else 1
        keep = torch.rand(batch, 1, rows, num_keys, generator=generator) < 0.7
        keep[:, :, rows // 2] &= rows == 1
        keep = keep.to(device)
    return [x.requires_grad_() for x in (q, k, v)], do, keep


def _run(
    leaves: list[Tensor], do: Tensor, *, mask: Tensor | None, causal: bool, backend: Backend
) -> list[Tensor]:
    o = quest_attention(*leaves, mask=mask, causal=causal, backend=backend)
    return [o.detach(), *torch.autograd.grad(o, leaves, do)]


def _summary(backend: str, what: str, error: float, limit: float) -> Row:
    return {
        "size": "", "dtype": "", "causal": "", "mask": "", "backend": backend,
        "tensor": what, "error": error, "limit": limit,
    }  # fmt: skip
