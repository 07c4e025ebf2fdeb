"""What defines QUEST attention, on the reference and on torch's path: closed forms, symmetries."""

import math

import pytest
import torch
import torch.nn.functional as F
from quest_cases import Case, attend, inputs

from kernels.quest import quest_attention

DOUBLE = Case(batch=2, heads=4, groups=2, queries=7, keys=9, dim=6, dtype="float64")


@pytest.fixture(params=["reference", "torch"])
def backend(request):
    return request.param


@pytest.mark.parametrize("mask", ["none", "keys", "full"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_gradient_is_the_derivative(backend, causal, mask):
    case = Case(heads=2, groups=1, queries=4, keys=5, dim=3, mask=mask, dtype="float64")
    given = inputs(case)
    given["k"][:, :, 3] = 1.0  # at a zero key the function jumps and has no derivative
    leaves = [given[name].requires_grad_() for name in "qkv"]

    def function(q, k, v):
        return quest_attention(q, k, v, mask=given["mask"], causal=causal, backend=backend)

    assert torch.autograd.gradcheck(function, leaves)


def test_it_is_plain_attention_on_normalised_keys_without_a_scale(backend):
    q, k, v = (inputs(DOUBLE)[name] for name in "qkv")
    ours = quest_attention(q, k, v, backend=backend)
    keys, values = (x.repeat_interleave(2, dim=1) for x in (F.normalize(k, dim=-1), v))
    weights = torch.einsum("bhtd,bhsd->bhts", q, keys).softmax(dim=-1)
    torch.testing.assert_close(ours, weights @ values, rtol=1e-12, atol=1e-12)


def test_the_length_of_a_key_does_not_matter(backend):
    """A factor c for each key: the same output, dq and dv; dk shrinks by 1 / c."""
    given = inputs(DOUBLE)
    c = torch.logspace(-8, 8, DOUBLE.keys, dtype=torch.float64)[:, None]
    before = attend(given, causal=True, backend=backend)
    after = attend({**given, "k": given["k"] * c}, causal=True, backend=backend)
    after["dk"] *= c
    torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-12)


def test_the_gradient_of_a_key_is_orthogonal_to_it(backend):
    given = inputs(DOUBLE)
    dk = attend(given, causal=False, backend=backend)["dk"]
    assert dk.abs().amax() > 0.01
    assert (given["k"] * dk).sum(dim=-1).abs().amax() < 1e-14


def test_the_length_of_a_query_sets_how_sharp_its_row_is(backend):
    q, k, _ = (inputs(DOUBLE)[name] for name in "qkv")
    values = torch.eye(9, dtype=torch.float64).expand(2, 2, 9, 9)
    q, k = F.pad(q, (0, 3)), F.pad(k, (0, 3))  # head dim 9, so that the output is the weights
    entropies = []
    for length in (0.0, 0.5, 1.0, 2.0, 4.0):
        weights = quest_attention(q * length, k, values, backend=backend)
        entropies.append(torch.special.entr(weights).sum(dim=-1))
    torch.testing.assert_close(entropies[0], torch.full_like(entropies[0], math.log(9)))
    assert all((b < a).all() for a, b in zip(entropies, entropies[1:], strict=False))


def test_queries_of_one_length_give_cosine_attention_with_that_length_as_its_scale(backend):
    q, k, v = (inputs(DOUBLE)[name] for name in "qkv")
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    unit = F.normalize(q, dim=-1)
    cosines = F.cosine_similarity(q[:, :, :, None], k[:, :, None], dim=-1)
    expected = (3.5 * cosines).softmax(dim=-1) @ v
    torch.testing.assert_close(quest_attention(3.5 * unit, k, v, backend=backend), expected)


def test_keys_may_be_normalised_before_or_after_a_rotary_embedding(backend):
    def rotate(x):
        half = x.shape[-1] // 2
        angles = torch.arange(x.shape[2])[:, None] * torch.tensor([1.0, 0.1, 0.01]).double()
        a, b = x[..., :half], x[..., half:]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1
        )

    q, k, v = (inputs(DOUBLE)[name] for name in "qkv")
    after = quest_attention(rotate(q), rotate(k), v, backend=backend)
    before = quest_attention(rotate(q), rotate(F.normalize(k, dim=-1)), v, backend=backend)
    torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)


def test_a_zero_key_has_logit_zero_and_no_gradient(backend):
    """Logits 0 and 2: the weight of the second key is the logistic function of 2."""
    q = torch.tensor([[[[2.0, 1.0]]]])
    k = torch.tensor([[[[0.0, 0.0], [5.0, 0.0]]]])
    v = torch.tensor([[[[0.0, 0.0], [1.0, 1.0]]]])
    found = attend(
        {"q": q, "k": k, "v": v, "do": torch.ones_like(q), "mask": None},
        causal=False, backend=backend,
    )  # fmt: skip
    torch.testing.assert_close(found["o"], torch.full_like(q, 1 / (1 + math.exp(-2))))
    assert torch.equal(found["dk"][0, 0, 0], torch.zeros(2))
    assert all(x.isfinite().all() for x in found.values())


def test_a_query_without_keys_gets_zero_and_gives_no_gradient(backend):
    case = DOUBLE._replace(keys=4)  # causal: the first three of seven queries see nothing
    found = attend(inputs(case), causal=True, backend=backend)
    assert not found["o"][:, :, :3].any() and found["o"][:, :, 3:].all()
    assert not found["dq"][:, :, :3].any()
    assert all(x.isfinite().all() for x in found.values())


def test_causal_queries_continue_a_cache(backend):
    """The last queries of a sequence, alone, give the last rows of the whole."""
    q, k, v = (inputs(DOUBLE._replace(queries=9))[name] for name in "qkv")
    whole = quest_attention(q, k, v, causal=True, backend=backend)
    for rows in (1, 4):
        tail = quest_attention(q[:, :, -rows:], k, v, causal=True, backend=backend)
        torch.testing.assert_close(tail, whole[:, :, -rows:])


def test_masked_keys_might_as_well_not_be_there(backend):
    q, k, v = (inputs(DOUBLE)[name] for name in "qkv")
    keep = torch.ones(2, 9, dtype=torch.bool)
    keep[:, [2, 5, 8]] = False
    masked = quest_attention(q, k, v, mask=keep, backend=backend)
    kept = [0, 1, 3, 4, 6, 7]
    torch.testing.assert_close(
        masked, quest_attention(q, k[:, :, kept], v[:, :, kept], backend=backend)
    )


def test_dropout_drops_weights_and_keeps_their_mean(backend):
    """Values of 1 make the output the sum of a row's kept weights, 1 on average."""
    torch.manual_seed(0)
    q = torch.zeros(64, 4, 16, 16)
    ones = torch.ones(64, 4, 8, 16)
    sums = quest_attention(q, ones, ones, dropout=0.25, backend=backend)[..., 0]
    # of 8 equal weights, kept ones count 1 / (8 * 0.75): variance 8 * 0.25 * 0.75 / 36
    assert abs(sums.mean().item() - 1) < 4 * math.sqrt(1.5 / 36 / sums.numel())
    assert abs(sums.var().item() - 1.5 / 36) < 0.004


def test_half_types_are_rounded_once_in_the_reference():
    """Keys of 300 have squares beyond float16."""
    q, k, v = (inputs(Case(dtype="float16", key_scale=300.0))[name] for name in "qkv")
    half = quest_attention(q, k, v, backend="reference")
    single = quest_attention(q.float(), k.float(), v.float(), backend="reference")
    assert half.isfinite().all() and torch.equal(half, single.half())
