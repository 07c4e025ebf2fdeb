"""Weighted sums of equally long arrays in one pass over memory: `out[j] = sum_k c[j, k] x[k]`.

The sum walks the arrays a few kilobytes at a time: each block of `x[k]` is read from memory once
and stays in the first-level cache while all curves `j` take it up. Every element is summed over
k = 0, 1, ... with separately rounded products and sums, so the result is the same bit for bit
whatever the number of curves, the split into calls, the threads or the processor. bfloat16 and
float16 are widened in registers, never stored wider.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cfunc, from_dtype, njit, types
from numba.extending import overload

CACHE_BLOCK = 1024  # elements: 4 KiB each of 5 sources and 1 sum fit a 32 KiB first-level cache

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
) -> None:
    """Write `sum_k weights[j, k] sources[k][start : start + size]` to `outs[j]`, `size` its length.

    `sources` are n arrays of one type: float64, float32, uint16 that holds bfloat16, or int16 that
    holds float16 (numpy has no bfloat16, numba no float16). `weights` (curves, n) and the arrays
    `outs`, one a curve, have the type to sum in, float32 or float64. All are contiguous.
    """
    kernel = _kernel(sources[0].dtype, weights.dtype)
    kernel(
        _addresses(sources),
        weights.ctypes.data,
        _addresses(outs),
        *weights.shape,
        start,
        outs[0].size,
    )


def narrow(values: np.ndarray, dtype: str) -> np.ndarray:
    """Round finite float32 or float64 values to the nearest `dtype` (ties to even), as stored."""
    if dtype == "F16":
        return values.astype(np.float16).view(np.int16)
    if dtype == "BF16":
        bits = values.astype(np.float32, copy=False).view(np.uint32)
        return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    return values.astype({"F32": np.float32, "F64": np.float64}[dtype], copy=False)


def _addresses(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


@functools.cache
def _kernel(source: np.dtype, total: np.dtype) -> Callable[..., None]:
    """Compile `_sum` for one storage and one accumulator type, or load it from numba's cache."""
    word, pointer = types.intp, types.CPointer
    one, real = from_dtype(source), from_dtype(total)
    arguments = (pointer(pointer(one)), pointer(real), pointer(pointer(real)), *[word] * 4)
    compiled = cfunc(types.void(*arguments), cache=True)(_sum)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_ssize_t] * 4)(compiled.address)
    call.compiled = compiled  # type: ignore[attr-defined]  # keeps the machine code alive
    return call


def _sum(sources, weights, outs, num_curves, num_sources, start, size):  # noqa: ANN001, ANN202
    for low in range(0, size, CACHE_BLOCK):
        high = min(size, low + CACHE_BLOCK)
        for j in range(num_curves):
            out, x, w = outs[j], sources[0], weights[j * num_sources]
            for e in range(low, high):
                out[e] = w * _widen(x[start + e])
        # Five sources at a time spare trips of `out`; the order of the sum stays the same.
        for k in range(1, num_sources - 4, 5):
            x0, x1, x2, x3, x4 = (
                sources[k], sources[k + 1], sources[k + 2], sources[k + 3], sources[k + 4],
            )  # fmt: skip
            for j in range(num_curves):
                out, at = outs[j], j * num_sources + k
                w0, w1, w2, w3, w4 = (
                    weights[at], weights[at + 1], weights[at + 2], weights[at + 3], weights[at + 4],
                )  # fmt: skip
                for e in range(low, high):
                    i = start + e
                    out[e] = (
                        out[e] + w0 * _widen(x0[i]) + w1 * _widen(x1[i]) + w2 * _widen(x2[i])
                        + w3 * _widen(x3[i]) + w4 * _widen(x4[i])
                    )  # fmt: skip
        for k in range(num_sources - (num_sources - 1) % 5, num_sources):
            x = sources[k]
            for j in range(num_curves):
                out, w = outs[j], weights[j * num_sources + k]
                for e in range(low, high):
                    out[e] += w * _widen(x[start + e])


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
