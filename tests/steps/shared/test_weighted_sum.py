"""The kernel on every 16-bit pattern, and its rounding to 16 bits against torch."""

import numpy as np
import pytest
import torch

from steps.shared.weighted_sum import weighted_sum

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


def rounded(values: np.ndarray, storage: type) -> np.ndarray:
    out = np.empty(values.size, storage)
    weighted_sum([values], np.ones((1, 1), values.dtype), [out], start=0)
    return out.view(np.int16)


@pytest.mark.parametrize("dtype", SIXTEEN_BITS)
def test_sums_are_rounded_like_torch(dtype):
    """Random values, every representable value, the ties between two, and their neighbours."""
    torch_dtype, storage = SIXTEEN_BITS[dtype]
    ties = halfway(torch_dtype).float()
    exact = torch.from_numpy(PATTERNS).view(torch_dtype).float()
    noise = torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    low, high = torch.zeros(1), torch.full((1,), torch.inf)
    near = [torch.nextafter(ties, low), torch.nextafter(ties, high)]
    values = torch.cat([exact[exact.isfinite()], ties, -ties, *near, noise])
    truth = values.to(torch_dtype).view(torch.int16)
    assert torch.equal(torch.from_numpy(rounded(values.numpy(), storage)), truth)


@pytest.mark.parametrize("dtype", SIXTEEN_BITS)
def test_float64_is_rounded_to_16_bits_once(dtype):
    """Just above a tie the nearest is the upper value; by way of float32 it would be a tie."""
    torch_dtype, storage = SIXTEEN_BITS[dtype]
    ties = halfway(torch_dtype).numpy()
    above = rounded(ties * (1 + 2.0**-40), storage)
    np.testing.assert_array_equal(above, np.arange(1, ties.size + 1))
    np.testing.assert_array_equal(rounded(ties * (1 - 2.0**-40), storage), above - 1)


def halfway(torch_dtype: torch.dtype) -> torch.Tensor:
    exact = torch.from_numpy(PATTERNS[:32768]).view(torch_dtype).double()
    exact = exact[exact.isfinite()]
    return (exact[1:] + exact[:-1]) / 2


@pytest.mark.parametrize("total", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_the_largest_magnitude_tells_of_nan_and_infinity(total, bad):
    source = np.full(1500, -2.5, np.float32)
    out = np.empty(1500, total)
    assert weighted_sum([source], np.ones((1, 1), total), [out], start=0) == 2.5
    source[1400] = bad
    assert not np.isfinite(weighted_sum([source], np.ones((1, 1), total), [out], start=0))


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
