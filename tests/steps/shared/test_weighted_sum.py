"""The kernel on every 16-bit pattern, and the rounding to 16 bits against torch."""

import numpy as np
import pytest
import torch

from steps.shared.weighted_sum import narrow, weighted_sum

PATTERNS = np.arange(2**16, dtype=np.uint16)
SIXTEEN_BITS = {"BF16": (torch.bfloat16, np.uint16), "F16": (torch.float16, np.int16)}


@pytest.mark.parametrize("dtype", SIXTEEN_BITS)
@pytest.mark.parametrize("total", [np.float32, np.float64])
def test_every_stored_value_is_widened_exactly(dtype, total):
    torch_dtype, storage = SIXTEEN_BITS[dtype]
    out = np.empty(PATTERNS.size, total)
    weighted_sum([PATTERNS.view(storage)], np.ones((1, 1), total), [out], start=0)
    truth = torch.from_numpy(PATTERNS).view(torch_dtype).double().numpy()
    np.testing.assert_array_equal(out, truth)


@pytest.mark.parametrize("dtype", SIXTEEN_BITS)
def test_narrow_rounds_like_torch(dtype):
    """Random values, every representable value, and the ties half way between two of them."""
    torch_dtype, storage = SIXTEEN_BITS[dtype]
    exact = torch.from_numpy(PATTERNS).view(torch_dtype).float()
    exact = exact[exact.isfinite() & (exact >= 0)].sort().values
    ties = (exact[1:].double() + exact[:-1].double()) / 2
    noise = torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    values = torch.cat([exact, ties.float(), noise])
    ours = torch.from_numpy(narrow(values.numpy(), dtype).view(np.int16))
    assert narrow(values.numpy(), dtype).dtype == storage
    assert torch.equal(ours, values.to(torch_dtype).view(torch.int16))


def test_start_selects_a_part_and_the_order_of_the_sum_is_fixed():
    """The sum is ((c0 x0 + c1 x1) + c2 x2) + ..., each operation rounded on its own."""
    rng = np.random.default_rng(0)
    sources = [rng.standard_normal(5000).astype(np.float32) for _ in range(12)]
    weights = rng.random((2, 12)).astype(np.float32)
    outs = [np.empty(3001, np.float32) for _ in range(2)]
    weighted_sum(sources, weights, outs, start=1999)
    for row, out in zip(weights, outs, strict=True):
        expected = row[0] * sources[0][1999:]
        for w, source in zip(row[1:], sources[1:], strict=True):
            expected = expected + w * source[1999:]
        np.testing.assert_array_equal(out, expected)
