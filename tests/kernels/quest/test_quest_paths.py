"""The torch path against the reference, the layer, and what is refused."""

import pytest
import torch
from quest_cases import CASES, Case, assert_close, attend, inputs, truth

from kernels.quest import QuestAttention, quest_attention

TORCH_CASES = CASES | {
    "brain": Case(heads=2, groups=1, dim=64, causal=True, dtype="bfloat16"),
    "double": Case(heads=4, queries=70, keys=131, dim=33, causal=True, dtype="float64"),
}


@pytest.mark.parametrize("name", TORCH_CASES)
def test_torch_path_gives_the_output_and_every_gradient_of_the_reference(name):
    case = TORCH_CASES[name]
    assert_close(attend(inputs(case), causal=case.causal, backend="torch"), truth(case))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_models_may_be_stacked_by_vmap():
    """Three problems at once, through torch.func, have the gradients of one after the other."""
    given = [inputs(Case(batch=2, key_scale=scale)) for scale in (0.5, 1.0, 3.0)]
    stacked = [torch.stack([problem[name] for problem in given]) for name in "qkv"]

    def loss(q, k, v):
        return quest_attention(q, k, v, causal=True).square().sum()

    together = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*stacked)
    for i, problem in enumerate(given):
        alone = torch.func.grad(loss, argnums=(0, 1, 2))(*(problem[name] for name in "qkv"))
        torch.testing.assert_close(tuple(x[i] for x in together), alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["heads", "queries", "all"])
def test_a_mask_may_broadcast_over_any_dimension(kind):
    q, k, v = (inputs(Case(batch=2))[name] for name in "qkv")
    shape = {"heads": (1, 2, 1, 37), "queries": (37, 37), "all": (1, 1, 1, 37)}[kind]
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.5
    mask = mask[None, None] if kind == "queries" else mask
    found = quest_attention(q, k, v, mask=mask)
    full = quest_attention(q, k, v, mask=mask.expand(2, 2, 37, 37).contiguous())
    torch.testing.assert_close(found, full)


def test_the_layer_is_its_projections_and_the_function():
    torch.manual_seed(0)
    layer = QuestAttention(24, 4, num_kv_heads=2, bias=False, causal=True)
    x = torch.randn(2, 5, 24)
    keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    heads = [
        torch.stack(torch.split(x @ weight.T, 6, dim=-1), dim=1)
        for weight in (layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight)
    ]
    out = quest_attention(*heads, mask=keep, causal=True, backend="reference")
    expected = layer.out_proj(torch.cat(out.unbind(dim=1), dim=-1))
    torch.testing.assert_close(layer(x, mask=keep), expected)


def test_the_layer_drops_weights_only_while_training():
    layer = QuestAttention(16, 2, dropout=0.5)
    x = torch.randn(1, 8, 16)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def tensors(*, q=(2, 4, 5, 16), k=(2, 2, 7, 16), v=(2, 2, 7, 16)):
    return torch.zeros(q), torch.zeros(k), torch.zeros(v)


BYTES, KEEP = torch.ones(2, 7, dtype=torch.uint8), torch.ones(2, 5, dtype=torch.bool)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (tensors(q=(4, 5, 16)), {}, r"q \(4, 5, 16\).*must have 4 dimensions"),
        (tensors(q=(2, 4, 0, 16)), {}, "none empty"),
        (tensors(v=(2, 2, 7, 8)), {}, "must have the same shape"),
        (tensors(q=(1, 4, 5, 16)), {}, "same batch size and head dim"),
        (tensors(q=(2, 4, 5, 8)), {}, "same batch size and head dim"),
        (tensors(q=(2, 3, 5, 16)), {}, "3 query heads, 2 key heads: must be a multiple"),
        (tensors(), {"dropout": 1.0}, "at least 0 and below 1"),
        (tensors(), {"dropout": -0.1}, "at least 0 and below 1"),
        (tensors(), {"backend": "cuda"}, "must be one of auto, reference, torch, triton"),
        (tensors(), {"backend": "triton"}, "on a GPU, head dim 16 to 128, no dropout"),
        (tensors(), {"mask": BYTES}, "mask is torch.uint8: must be boolean"),
        (tensors(), {"mask": KEEP}, r"mask \(2, 5\): must be \(2, 7\)"),
        (tensors(), {"mask": KEEP[:, None, None]}, r"broadcast to \(2, 4, 5, 7\)"),
        (tensors(), {"mask": torch.ones(2, 7, dtype=torch.bool, device="meta")}, "on cpu like q"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(given, options, message):
    with pytest.raises(ValueError, match=message) as error:
        quest_attention(*given, **options)
    assert "\n" not in str(error.value)


def test_types_and_devices_must_agree():
    q, k, v = tensors()
    with pytest.raises(ValueError, match="one floating type on one device"):
        quest_attention(q, k, v.half())
    with pytest.raises(ValueError, match="one floating type on one device"):
        quest_attention(q, k.to("meta"), v)
    with pytest.raises(ValueError, match="one floating type on one device"):
        quest_attention(q.int(), k.int(), v.int())


@pytest.mark.parametrize(("dim", "heads", "groups"), [(10, 4, 4), (16, 4, 3)])
def test_the_layer_refuses_heads_that_do_not_divide(dim, heads, groups):
    with pytest.raises(ValueError, match="heads"):
        QuestAttention(dim, heads, num_kv_heads=groups)
