"""The rows: the kernel, closed forms, what each is blind to, and a fair start."""

import math

import pytest
import torch
import torch.nn.functional as F

from kernels.quest import quest_attention
from steps.quest import rows
from steps.quest.attention import RowAttention
from steps.quest.row_names import ROWS
from steps.shared.runtime import InputError

B, H, T, D = 3, 2, 5, 8


@pytest.fixture
def qkv() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(3, B, H, T, D, generator=generator, dtype=torch.float64))


def logits(row: str, q: torch.Tensor, k: torch.Tensor, m: torch.Tensor | None = None):
    scales = rows.initial_scales(row, heads=H, dim=D)
    return rows.logits(row, q, k, {name: value.double() for name, value in scales.items()}, m)


@pytest.mark.parametrize("backend", ["reference", "torch"])
def test_the_quest_row_is_the_kernel(qkv, backend):
    q, k, v = qkv
    own = logits("quest", q, k).softmax(-1) @ v
    torch.testing.assert_close(own, quest_attention(q, k, v, backend=backend))


def test_the_standard_row_is_torchs_attention(qkv):
    q, k, v = qkv
    own = logits("standard", q, k).softmax(-1) @ v
    torch.testing.assert_close(own, F.scaled_dot_product_attention(q, k, v))


def test_every_row_starts_at_sqrt_d_times_the_cosine(qkv):
    q, k, _ = qkv
    # centred vectors of length sqrt(D), of which a LayerNorm changes nothing
    q, k = (F.layer_norm(part, (D,)) for part in (q, k))
    cosine = F.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1)
    for row in ROWS:
        torch.testing.assert_close(logits(row, q, k), math.sqrt(D) * cosine, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_sees_the_norms_that_it_should(qkv, row):
    q, k, _ = qkv
    base = logits(row, q, k)
    both = row.startswith("qknorm")
    sees_query = row not in ("qnorm",) and not both
    sees_key = row in ("standard", "qnorm", "elliptical")
    for factor, seen in ((logits(row, 3 * q, k), sees_query), (logits(row, q, 3 * k), sees_key)):
        torch.testing.assert_close(factor, 3 * base if seen else base, rtol=1e-4, atol=1e-5)


def test_a_key_without_direction_gets_logit_zero(qkv):
    q, k, _ = qkv
    k[:, :, 0] = 0
    for row in ROWS:
        found = logits(row, q, k)
        assert found.isfinite().all()
        assert (found[..., 0] == 0).all()


def test_the_gradient_of_a_unit_key_is_orthogonal_to_it(qkv):
    q, k, v = qkv
    k.requires_grad_()
    (logits("quest", q, k).softmax(-1) @ v).square().sum().backward()
    assert k.grad.abs().max() > 1e-3
    assert (k * k.grad).sum(-1).abs().max() < 1e-12


def test_head_scales_are_the_quest_row_where_all_queries_have_that_length(qkv):
    q, k, _ = qkv
    q = 2.5 * F.normalize(q, dim=-1)
    scales = {"head_scale": torch.full((H,), 2.5, dtype=torch.float64)}
    torch.testing.assert_close(rows.logits("qknorm_hs", q, k, scales), logits("quest", q, k))


def test_variability_is_the_mean_move_over_the_largest_coordinate():
    before = torch.zeros(1, 1, 2, 3)
    after = torch.tensor([[[[1.0, -2.0, 0.0], [3.0, 0.0, 0.0]]]], requires_grad=True)
    m = rows.variability(after, before, causal=False)
    torch.testing.assert_close(m, torch.tensor([[[[1.0, 0.5, 0.0]]]]))
    assert not m.requires_grad
    assert (rows.variability(before, before, causal=False) == 1).all()


def test_elliptical_rows_weigh_features(qkv):
    q, k, _ = qkv
    m = torch.zeros(B, H, 1, D, dtype=torch.float64)
    m[..., 2] = 0.5
    product = q[..., :, None, 2] * k[..., None, :, 2]
    torch.testing.assert_close(logits("elliptical", q, k, m), 0.5 * product / math.sqrt(D))
    unit = F.normalize(k, dim=-1)[..., None, :, 2]
    torch.testing.assert_close(logits("elliptical_quest", q, k, m), 0.5 * q[..., :, None, 2] * unit)
    # the others take no notice
    torch.testing.assert_close(logits("quest", q, k, m), logits("quest", q, k))


@pytest.mark.parametrize("row", ROWS)
def test_every_row_starts_as_sharp(row):
    """Unit-variance queries and keys: logits of deviation 1 before a metric, so one entropy."""
    torch.manual_seed(0)
    width, tokens = 64, 50
    module = RowAttention(width, num_heads=4, row=row, causal=False)
    torch.nn.init.normal_(module.qkv.weight, std=width**-0.5)
    torch.nn.init.zeros_(module.qkv.bias)
    logits = module.explicit(torch.randn(8, tokens, width))[2]
    assert logits.std().item() == pytest.approx(1.0, abs=0.05)
    # weights exp(z) / sum, z normal of variance 1: log T - 1/2 for many tokens, more for 50; logits
    # a quarter as large, from a scale of 1, would give log T - 1/32
    entropy = torch.special.entr(logits.softmax(-1)).sum(-1).mean().item()
    assert entropy == pytest.approx(math.log(tokens) - 0.5, abs=0.1)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_runs_under_autocast_to_a_half_type(row):
    """Scales, gains and the metric are float32 there, beside queries and keys of 16 bits."""
    torch.manual_seed(0)
    module = RowAttention(H * D, num_heads=H, row=row, causal=True)
    x, previous = torch.randn(B, T, H * D), torch.randn(B, H, T, D)
    expected = module(x, previous_BHTD=previous)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = module(x, previous_BHTD=previous)[0]
    assert found.dtype == torch.bfloat16
    # bfloat16 keeps 8 bits: 0.4 % of outputs of about 1, in a few operations
    torch.testing.assert_close(found.float(), expected, rtol=0.03, atol=0.03)
    found.float().square().sum().backward()
    assert all(value.grad.isfinite().all() for value in module.parameters())


def test_an_unknown_row_is_an_error():
    with pytest.raises(InputError, match="row = 'qest': must be one of standard, "):
        rows.initial_scales("qest", heads=H, dim=D)
