"""The race of QUEST: attention with unit keys, against torch's fused attention and timm's qk_norm.

    python benchmarks/quest.py
    python benchmarks/quest.py --repeats 3 --shapes 2 --out small.csv

Forward and backward in float32 on one thread, CPU seconds; sides take turns; medians, with the
smallest and largest ratio of one turn. Results are compared before anything is timed: ours with
torch's attention on keys normalised by torch, and the layer with timm's, whose norms of queries and
keys are set to do nothing and QUEST's. timm is installed beside the environment
(benchmarks/timm.txt), on first use. Writes benchmarks/results/quest.csv.
"""

import argparse
import importlib.metadata
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from benchmarks.sides.peers import beside, pinned  # noqa: E402
from benchmarks.sides.race import alternate, outcome, write_table  # noqa: E402
from kernels.quest import QuestAttention, quest_attention  # noqa: E402

SHAPES = ((8, 12, 197, 64, False), (4, 16, 1024, 64, False), (1, 16, 4096, 128, True))
LAYER = (8, 197, 768, 12)  # images, tokens, channels and heads of ViT-B
TOLERANCE = 1e-5  # of the largest value compared


def main() -> None:
    """Run every race and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="the first ones")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/quest.csv")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [*attention(SHAPES[: args.shapes], args.repeats), *layer(args.repeats)]
    write_table(args.out, rows)


def attention(shapes: tuple[tuple, ...], repeats: int) -> Iterator[dict[str, Any]]:
    """Race QUEST against standard attention, both on torch's fused kernel."""
    version = importlib.metadata.version("torch")
    for *sizes, causal in shapes:
        generator = torch.Generator().manual_seed(0)
        leaves = [torch.randn(sizes, generator=generator).requires_grad_() for _ in range(3)]
        do = torch.randn(sizes, generator=generator)
        size = f"B H T D = {' '.join(map(str, sizes))}{', causal' if causal else ''}"
        quest = partial(quest_attention, causal=causal)
        unit_keys = partial(on_unit_keys, causal=causal)
        standard = partial(F.scaled_dot_product_attention, is_causal=causal)
        error = difference(_results(quest, leaves, do), _results(unit_keys, leaves, do))
        ours = partial(seconds, quest, leaves, do)
        for name, side in (("standard attention", standard), ("F.normalize, then it", unit_keys)):
            pairs = alternate(repeats, ours, partial(seconds, side, leaves, do))
            yield outcome("forward, backward", size, name, version, pairs, unit="s", error=error)


def on_unit_keys(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """QUEST as one would write it with torch alone."""
    unit = F.normalize(k, dim=-1)
    return F.scaled_dot_product_attention(q, unit, v, is_causal=causal, scale=1.0)


def layer(repeats: int) -> Iterator[dict[str, Any]]:
    """Race the whole layer against timm's, which normalises queries and keys by LayerNorm."""
    Attention = timm_attention()
    batch, tokens, channels, heads = LAYER
    torch.manual_seed(0)
    ours = QuestAttention(channels, heads)
    options = {"num_heads": heads, "qkv_bias": True, "qk_norm": True}
    same = Attention(channels, **options, norm_layer=lambda dim, **options: nn.Identity())
    same.k_norm = UnitTimesRoot()  # undoes timm's 1 / sqrt(D)
    copy_weights(ours, same)
    x = torch.randn(batch, tokens, channels, requires_grad=True)
    do = torch.randn(batch, tokens, channels)
    error = difference(_results(ours, [x], do), _results(same, [x], do))
    theirs = Attention(channels, **options, norm_layer=nn.LayerNorm)
    pairs = alternate(
        repeats,
        lambda: seconds(ours, [x, *ours.parameters()], do, inputs=1),
        lambda: seconds(theirs, [x, *theirs.parameters()], do, inputs=1),
    )
    size = f"B T C H = {' '.join(map(str, LAYER))}"
    peer, version = "timm Attention, qk_norm", pinned("timm", "timm")
    yield outcome("layer, forward, backward", size, peer, version, pairs, unit="s", error=error)


class UnitTimesRoot(nn.Module):
    """Unit keys, times sqrt(D)."""

    def forward(self, k: Tensor) -> Tensor:
        """Return keys of length sqrt(D)."""
        return F.normalize(k, dim=-1) * k.shape[-1] ** 0.5


def timm_attention() -> type[nn.Module]:
    """Return timm's attention layer, from a folder that is made if it is not there."""
    beside("timm")
    from timm.layers import Attention

    return Attention


def copy_weights(ours: QuestAttention, theirs: nn.Module) -> None:
    """Give timm's layer the weights of ours."""
    parts = (ours.q_proj, ours.k_proj, ours.v_proj)
    with torch.no_grad():
        theirs.qkv.weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.qkv.bias.copy_(torch.cat([part.bias for part in parts]))
        theirs.proj.load_state_dict(ours.out_proj.state_dict())


def _results(side: Callable[..., Tensor], leaves: list[Tensor], do: Tensor) -> list[Tensor]:
    o = side(*leaves)
    return [o.detach(), *torch.autograd.grad(o, leaves, do)]


def difference(found: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference of output and gradients, relative; too large ends the race."""
    pairs = zip(found, expected, strict=True)
    error = max(float((one - two).abs().max() / two.abs().max()) for one, two in pairs)
    if error > TOLERANCE:
        raise SystemExit(f"results differ: {error:.2g} of the largest value")
    return error


def seconds(
    side: Callable[..., Tensor], leaves: list[Tensor], do: Tensor, inputs: int | None = None
) -> float:
    """Return the CPU seconds of output and gradients of all leaves, of which `inputs` are given."""
    start = time.process_time()
    torch.autograd.grad(side(*leaves[:inputs]), leaves, do)
    return time.process_time() - start


if __name__ == "__main__":
    main()
