"""Memory for merged tensors: a few blocks of huge pages instead of an allocation for each tensor.

Touching fresh memory in pages of 4 KiB costs as much as the sums that are written there. A block
that nobody holds any more is filled again, so a merge whose tensors are dropped as they come stays
in memory that it has touched before.
"""

import mmap
import sys

import numpy as np

HUGE_PAGE = 2**21  # bytes, on x86-64 and most other machines
BLOCK = 2**24  # bytes: at most one huge page in eight is touched for less than its size
ALIGNMENT = 64  # bytes: a cache line


class TensorMemory:
    """Arrays for results of `total` bytes in all, each to be kept or dropped as its user likes."""

    def __init__(self, total: int) -> None:
        self._left = total
        self._blocks: list[np.ndarray] = []
        self._block = np.empty(0, np.uint8)
        self._used = 0

    def take(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Return an array of `size` elements, not set to anything."""
        num_bytes = size * dtype.itemsize
        if self._used + num_bytes > self._block.size:
            self._block, self._used = self._free_block(num_bytes), 0
        array = self._block[self._used : self._used + num_bytes].view(dtype)
        self._used += -(-num_bytes // ALIGNMENT) * ALIGNMENT
        self._left -= num_bytes
        return array

    def _free_block(self, num_bytes: int) -> np.ndarray:
        self._block = None  # the one in use may be free, too
        for block in self._blocks:
            # Held by the list, by `block` and by the call: every array cut from it is gone.
            if sys.getrefcount(block) == 3 and block.size >= num_bytes:
                return block
        self._blocks.append(_map(max(num_bytes, min(BLOCK, self._left))))
        return self._blocks[-1]


def _map(num_bytes: int) -> np.ndarray:
    if num_bytes < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(num_bytes, np.uint8)
    # The system aligns a mapping to huge pages if its length is a multiple of theirs.
    size = -(-num_bytes // HUGE_PAGE) * HUGE_PAGE
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)
