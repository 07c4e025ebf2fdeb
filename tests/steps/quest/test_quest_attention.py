"""Every row of attention: against the kernel, torch's attention and closed forms."""

import pytest
import torch
import torch.nn.functional as F

from kernels.quest import quest_attention
from steps.quest.attention import RowAttention, largest_logit
from steps.quest.row_names import ROWS
from steps.quest.rows import NORM_EPS, UNIT_KEYS, WITH_METRIC, variability
from steps.shared.runtime import InputError

B, T, H, D = 2, 7, 3, 4
C = H * D


def layer(row: str, *, causal: bool = False) -> RowAttention:
    torch.manual_seed(0)
    module = RowAttention(C, num_heads=H, row=row, causal=causal).double()
    # queries and keys of about unit variance, and biases that matter
    torch.nn.init.normal_(module.qkv.weight, std=C**-0.5)
    torch.nn.init.normal_(module.qkv.bias, std=0.3)
    return module


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x_BTC = torch.randn(B, T, C, generator=generator, dtype=torch.float64)
    return x_BTC, torch.randn(B, H, T, D, generator=generator, dtype=torch.float64)


def heads(module: RowAttention, x_BTC: torch.Tensor) -> list[torch.Tensor]:
    parts = module.qkv(x_BTC).chunk(3, dim=-1)
    return [part.view(B, T, H, D).transpose(1, 2) for part in parts]


def projected(module: RowAttention, o_BHTD: torch.Tensor) -> torch.Tensor:
    return module.out(o_BHTD.transpose(1, 2).reshape(B, T, C))


def cosines(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return F.cosine_similarity(q[:, :, :, None], k[:, :, None], dim=-1)


def rescale(module: RowAttention, part: int, factors: torch.Tensor) -> None:
    """Multiply the queries (part 0) or keys (part 1) of each head by its factor."""
    with torch.no_grad():
        for value in (module.qkv.weight, module.qkv.bias):
            rows = value[part * C : (part + 1) * C].view(H, D, -1)
            rows *= factors[:, None, None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("row", ROWS)
def test_the_logits_are_those_behind_the_output(row, causal):
    module, (x, previous) = layer(row, causal=causal), inputs()
    output, values = module(x, previous_BHTD=previous)
    explicit, same, logits = module.explicit(x, previous_BHTD=previous)
    torch.testing.assert_close(output, projected(module, logits.softmax(dim=-1) @ values))
    torch.testing.assert_close(explicit, output)
    assert torch.equal(same, values)


@pytest.mark.parametrize("causal", [False, True])
def test_standard_is_torchs_attention(causal):
    module, (x, _) = layer("standard", causal=causal), inputs()
    expected = F.scaled_dot_product_attention(*heads(module, x), is_causal=causal)
    torch.testing.assert_close(module(x)[0], projected(module, expected))


@pytest.mark.parametrize("causal", [False, True])
def test_quest_is_the_kernels_reference(causal):
    module, (x, _) = layer("quest", causal=causal), inputs()
    expected = quest_attention(*heads(module, x), causal=causal, backend="reference")
    torch.testing.assert_close(module(x)[0], projected(module, expected))


def test_the_other_rows_follow_their_equations():
    x, previous = inputs()
    for row in ROWS:
        module = layer(row)
        q, k, v = heads(module, x)
        m = variability(v, previous, causal=False)
        length = {"q": q.norm(dim=-1)[..., None], "k": k.norm(dim=-1)[:, :, None]}
        norm_q, norm_k = (F.layer_norm(part, (D,), eps=NORM_EPS) for part in (q, k))
        expected = {
            "standard": q @ k.mT / 2,
            "qnorm": length["k"] * cosines(q, k),
            "qknorm": norm_q @ norm_k.mT / 2,
            "qknorm_hs": 2 * cosines(q, k),
            "qknorm_ds": 2 * cosines(q, k),
            "quest": length["q"] * cosines(q, k),
            "elliptical": (q * m) @ k.mT / 2,
            "elliptical_quest": (q * m) @ k.mT / length["k"],
        }[row]
        found = module.explicit(x, previous_BHTD=previous)[2]
        torch.testing.assert_close(found, expected, msg=lambda text, row=row: f"{row}: {text}")


def test_the_scales_act_per_head_and_per_feature():
    x, _ = inputs()
    module = layer("qknorm_hs")
    module.scales.head_scale.data = torch.tensor([1.0, 3.0, 9.0]).double()
    q, k, _ = heads(module, x)
    torch.testing.assert_close(
        module.explicit(x)[2], module.scales.head_scale[:, None, None] * cosines(q, k)
    )
    module = layer("qknorm_ds")
    module.scales.query_scale.data[1:], module.scales.key_scale.data[0] = 0.0, 5.0
    q, k, _ = (F.normalize(part, dim=-1) for part in heads(module, x))
    torch.testing.assert_close(module.explicit(x)[2], 5 * D**0.25 * q[..., :1] @ k[..., :1].mT)


def test_the_length_of_a_key_matters_only_where_it_should():
    factors = torch.tensor([0.5, 1.0, 20.0]).double()
    x, previous = inputs()
    for row in ROWS:
        module = layer(row)
        before = module(x, previous_BHTD=previous)[0]
        rescale(module, 1, factors)
        change = (module(x, previous_BHTD=previous)[0] - before).abs().max()
        if row in UNIT_KEYS:
            assert change < 1e-12, row
        elif row == "qknorm":
            assert change < 1e-3  # LayerNorm adds 1e-6 to a variance
        else:
            assert change > 0.05, row


def test_the_length_of_a_query_sets_the_sharpness_of_quest_and_nothing_with_unit_queries():
    x, _ = inputs()
    factors = torch.full((H,), 3.0).double()
    for row in ("quest", "qnorm", "qknorm_hs", "qknorm_ds"):
        module = layer(row)
        before = module.explicit(x)[2]
        rescale(module, 0, factors)
        times = 3 if row == "quest" else 1
        torch.testing.assert_close(module.explicit(x)[2], times * before)


def test_head_scales_equal_quest_where_all_queries_are_as_long():
    """Constant queries of length sqrt(D) in every head: one cosine attention in two forms."""
    x, _ = inputs()
    outputs = []
    for row in ("quest", "qknorm_hs"):
        module = layer(row)
        module.qkv.weight.data[:C] = 0.0
        module.qkv.bias.data[:C] = 1.0
        outputs.append(module(x)[0])
    torch.testing.assert_close(*outputs)


@pytest.mark.parametrize("row", ROWS)
def test_tokens_without_a_key_are_harmless(row):
    """A zero input to zero biases has q = k = 0: logits 0, finite outputs and gradients."""
    module, (x, previous) = layer(row), inputs()
    module.qkv.bias.data.zero_()
    x[:, 2] = 0.0
    x.requires_grad_()
    logits = module.explicit(x, previous_BHTD=previous)[2]
    assert not logits[:, :, 2].any() and not logits[..., 2].any()
    output, _ = module(x, previous_BHTD=previous)
    (gradient,) = torch.autograd.grad(output.square().sum(), x)
    assert output.isfinite().all() and gradient.isfinite().all()


@pytest.mark.parametrize("row", [row for row in ROWS if row not in WITH_METRIC])
def test_the_gradient_is_the_derivative(row):
    torch.manual_seed(3)
    module = RowAttention(4, num_heads=2, row=row, causal=True).double()
    x = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in module.named_parameters()]

    def function(x, *values):
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(module, given, (x,))[0]

    assert torch.autograd.gradcheck(function, (x, *module.parameters()))


@pytest.mark.parametrize("row", ROWS)
def test_causal_rows_do_not_see_the_future(row):
    module, (x, previous) = layer(row, causal=True), inputs()
    before = module(x, previous_BHTD=previous)[0]
    x[:, 4:], previous[:, :, 4:] = 7.0, -7.0
    after = module(x, previous_BHTD=previous)[0]
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


def test_the_metric_is_the_mean_change_over_its_largest():
    v = torch.zeros(1, 1, 2, 3)
    previous = torch.tensor([[[[1.0, 2.0, 0.0], [1.0, -6.0, 2.0]]]])
    whole = variability(v, previous, causal=False)
    torch.testing.assert_close(whole, torch.tensor([[[[2 / 8, 1.0, 2 / 8]]]]))
    causal = variability(v, previous, causal=True)
    expected = torch.tensor([[[[0.5, 1.0, 0.0], [2 / 8, 1.0, 2 / 8]]]])
    torch.testing.assert_close(causal, expected)
    assert torch.equal(variability(v, v, causal=False), torch.ones(1, 1, 1, 3))


def test_the_metric_is_the_identity_in_the_first_layer_and_carries_no_gradient():
    x, previous = inputs()
    previous.requires_grad_()
    for row, plain in (("elliptical", "standard"), ("elliptical_quest", "quest")):
        module = layer(row)
        torch.testing.assert_close(module(x)[0], layer(plain)(x)[0])
        output, values = module(x, previous_BHTD=previous)
        assert not values.requires_grad
        (gradient,) = torch.autograd.grad(output.sum(), previous, allow_unused=True)
        assert gradient is None


def test_values_of_another_shape_are_refused():
    x, previous = inputs()
    with pytest.raises(InputError, match="must have the shape"):
        layer("elliptical")(x, previous_BHTD=previous[:, :, 1:])


@pytest.mark.parametrize(
    ("change", "told"),
    [({"row": "cosine"}, "must be one of standard, "), ({"num_heads": 5}, "a multiple of")],
)
def test_what_does_not_fit_is_refused(change, told):
    options = {"num_heads": 4, "row": "quest", "causal": False} | change
    with pytest.raises(InputError, match=told):
        RowAttention(8, **options)


def test_rows_share_their_matrices_and_scales_are_vectors():
    """What an optimizer decays, matrices, has one set of names and shapes in every row."""
    shapes = [{n: p.shape for n, p in layer(row).named_parameters() if p.ndim >= 2} for row in ROWS]
    assert all(each == shapes[0] for each in shapes)
    extra = {row: sum(p.numel() for p in layer(row).parameters()) for row in ROWS}
    base = extra["standard"]
    assert {row: count - base for row, count in extra.items() if count != base} == {
        "qknorm": 2 * D,
        "qknorm_hs": H,
        "qknorm_ds": 2 * D,
    }


def test_the_largest_logit_is_among_what_attention_sees():
    x, _ = inputs()
    whole, causal = (layer("standard", causal=causal).explicit(x)[2] for causal in (False, True))
    assert largest_logit(whole) == whole.abs().max()
    assert largest_logit(causal) == whole.tril().abs().max()
