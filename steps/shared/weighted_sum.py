"""Weighted sums of equally long arrays in one pass over memory: `out[j] = sum_k c[j, k] x[k]`.

The sum walks the arrays a few kilobytes at a time: each block of `x[k]` is read from memory once
and stays in the first-level cache while all curves `j` take it up; what leaves the cache is the sum
as it is stored. Every element is summed over k = 0, 1, ... with separately rounded products and
sums (never fused), so the result is the same bit for bit whatever the number of curves, the split
into calls, the threads or the processor. bfloat16 and float16 are widened and rounded in registers.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cfunc, from_dtype, njit, types
from numba.extending import overload

CACHE_BLOCK = 1024  # elements: 4 KiB each of 5 sources and 1 sum fit a 32 KiB first-level cache
ROW = CACHE_BLOCK + 80  # between the sums of two curves: not a power of two, which caches alias

LARGEST = {
    "F64": float(np.finfo(np.float64).max),
    "F32": float(np.finfo(np.float32).max),
    "BF16": float(np.uint32(0x7F7F0000).view(np.float32)),
    "F16": float(np.finfo(np.float16).max),
}


def weighted_sum(
    sources: Sequence[np.ndarray],
    weights: np.ndarray,
    outs: Sequence[np.ndarray],
    *,
    start: int,
) -> float:
    """Write `sum_k weights[j, k] sources[k][start : start + size]` to `outs[j]`, `size` its length.

    `sources` are n arrays of one type: float64, float32, uint16 that holds bfloat16, or int16 that
    holds float16 (numpy has no bfloat16, numba no float16). `weights` (curves, n) has the type to
    sum in, float32 or float64. Sums are rounded to the type of `outs` (any of the four; to nearest,
    ties to even). All are contiguous. Returns the largest magnitude of a sum before it is rounded
    to the type of `outs`; it is infinite or NaN where any sum is.
    """
    kernel = _kernel(sources[0].dtype, weights.dtype, outs[0].dtype)
    sums = np.empty(len(outs) * ROW, weights.dtype)
    bits = kernel(
        _addresses(sources),
        weights.ctypes.data,
        _addresses(outs),
        sums.ctypes.data,
        *weights.shape,
        start,
        outs[0].size,
    )
    return float(np.array(bits).astype(f"i{weights.itemsize}").view(weights.dtype))


def _addresses(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


@functools.cache
def _kernel(source: np.dtype, total: np.dtype, out: np.dtype) -> Callable[..., int]:
    """Compile `_sum` for types of storage, sum and result, or load it from numba's cache."""
    word, pointer = types.intp, types.CPointer
    one, real, result = from_dtype(source), from_dtype(total), from_dtype(out)
    arguments = (pointer(pointer(one)), pointer(real), pointer(pointer(result)), pointer(real))
    compiled = cfunc(types.int64(*arguments, *[word] * 4), cache=True)(_sum)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4, *[ctypes.c_ssize_t] * 4)
    call = prototype(compiled.address)
    call.compiled = compiled  # type: ignore[attr-defined]  # keeps the machine code alive
    return call


def _sum(sources, weights, outs, sums, num_curves, num_sources, start, size):  # noqa: ANN001, ANN202
    largest = _magnitude(weights[0] * 0)
    for low in range(0, size, CACHE_BLOCK):
        count, base = min(size - low, CACHE_BLOCK), start + low
        for j in range(num_curves):
            row, x, w = j * ROW, sources[0], weights[j * num_sources]
            for e in range(count):
                sums[row + e] = w * _widen(x[base + e])
        # Five sources at a time spare trips of the sum; its order stays the same.
        for k in range(1, num_sources - 4, 5):
            x0, x1, x2, x3, x4 = (
                sources[k], sources[k + 1], sources[k + 2], sources[k + 3], sources[k + 4],
            )  # fmt: skip
            for j in range(num_curves):
                row, at = j * ROW, j * num_sources + k
                w0, w1, w2, w3, w4 = (
                    weights[at], weights[at + 1], weights[at + 2], weights[at + 3], weights[at + 4],
                )  # fmt: skip
                for e in range(count):
                    i = base + e
                    sums[row + e] = (
                        sums[row + e] + w0 * _widen(x0[i]) + w1 * _widen(x1[i])
                        + w2 * _widen(x2[i]) + w3 * _widen(x3[i]) + w4 * _widen(x4[i])
                    )  # fmt: skip
        for k in range(num_sources - (num_sources - 1) % 5, num_sources):
            x = sources[k]
            for j in range(num_curves):
                row, w = j * ROW, weights[j * num_sources + k]
                for e in range(count):
                    sums[row + e] += w * _widen(x[base + e])
        for j in range(num_curves):
            row, out = j * ROW, outs[j]
            for e in range(count):
                value = sums[row + e]
                largest = max(largest, _magnitude(value))
                _store(out, low + e, value)
    return largest


def _magnitude(value):  # noqa: ANN001, ANN202
    """Stand for the bits of |value|, which order like it, infinity and NaN last; for `_sum`."""
    raise NotImplementedError


@overload(_magnitude)
def _magnitude_by_type(value):  # noqa: ANN001, ANN202
    if value == types.float32:
        return lambda value: np.float32(value).view(np.int32) & np.int32(0x7FFFFFFF)
    return lambda value: np.float64(value).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF)


def _store(out, at, value):  # noqa: ANN001, ANN202
    """Stand for `out[at] = value` rounded to the type stored; for `_sum` only."""
    raise NotImplementedError


@overload(_store)
def _store_by_type(out, at, value):  # noqa: ANN001, ANN202
    if out.dtype == types.uint16:

        def store(out, at, value):  # noqa: ANN001, ANN202
            out[at] = _round_bf16(_single(value))

    elif out.dtype == types.int16:

        def store(out, at, value):  # noqa: ANN001, ANN202
            out[at] = _round_f16(_single(value))

    else:

        def store(out, at, value):  # noqa: ANN001, ANN202
            out[at] = value

    return store


def _single(value):  # noqa: ANN001, ANN202
    """Stand for a float32 that rounds to 16 bits as `value` does; for `_store` only."""
    raise NotImplementedError


@overload(_single)
def _single_by_type(value):  # noqa: ANN001, ANN202
    if value == types.float32:
        return lambda value: value
    return lambda value: _round_to_odd(value)


@njit
def _round_to_odd(value):  # noqa: ANN001, ANN202
    """Cut a float64 to float32, its last bit set where something was cut: no second tie arises."""
    near = np.float32(value)
    bits = near.view(np.uint32)
    if abs(np.float64(near)) > abs(value):
        bits = np.uint32(bits - np.uint32(1))
    if np.float64(near) != value:
        bits = np.uint32(bits | np.uint32(1))
    return np.uint32(bits).view(np.float32)


@njit
def _round_bf16(value):  # noqa: ANN001, ANN202
    bits = np.float32(value).view(np.uint32)
    odd = np.uint32(bits >> np.uint32(16)) & np.uint32(1)
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))


@njit
def _round_f16(value):  # noqa: ANN001, ANN202
    bits = np.float32(value).view(np.uint32)
    size = bits & np.uint32(0x7FFFFFFF)
    odd = np.uint32(size >> np.uint32(13)) & np.uint32(1)
    # Normal numbers: the exponent's bias goes from 127 to 15.
    half = np.uint32(size - np.uint32(112 << 23) + np.uint32(0xFFF) + odd) >> np.uint32(13)
    if size < np.uint32(113 << 23):  # subnormal: a sum with 0.5 is rounded where a half ends
        shifted = np.uint32(size).view(np.float32) + np.float32(0.5)
        half = np.uint32(np.float32(shifted).view(np.uint32) - np.uint32(126 << 23))
    sign = np.uint32(bits >> np.uint32(16)) & np.uint32(0x8000)
    return np.int16(np.uint16(half | sign))


def _widen(x):  # noqa: ANN001, ANN202
    """Stand for the exact float32 or float64 value of a stored element; for `_sum` only."""
    raise NotImplementedError


@overload(_widen)
def _widen_by_type(x):  # noqa: ANN001, ANN202
    if x == types.uint16:
        return lambda x: np.uint32(np.uint32(x) << np.uint32(16)).view(np.float32)
    if x == types.int16:
        return lambda x: _widen_f16(x)
    return lambda x: x


@njit
def _widen_f16(x):  # noqa: ANN001, ANN202
    bits = np.uint32(np.uint32(x) & np.uint32(0x7FFF)) << np.uint32(13)
    # An exact product moves the exponent's bias from 15 to 127, for subnormals too.
    value = np.uint32(bits).view(np.float32) * np.float32(2.0**112)
    if bits >= np.uint32(0x0F800000):  # infinity or NaN
        value = np.uint32(bits | np.uint32(0x7F800000)).view(np.float32)
    return -value if x < 0 else value
