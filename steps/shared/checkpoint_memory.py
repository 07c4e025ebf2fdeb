"""Memory for merged tensors: a few blocks instead of an allocation for each tensor.

Touching fresh memory costs as much as the sums that are written there. A block that nobody holds
any more is filled again, so a merge whose tensors are dropped as they come stays in memory that it
has touched before.
"""

import mmap
import sys

import numpy as np

BLOCK = 2**24  # bytes
ALIGNMENT = 64  # bytes: a cache line


class TensorMemory:
    """Arrays for results, each to be kept or dropped as its user likes."""

    def __init__(self) -> None:
        self._left = 0
        self._blocks: list[np.ndarray] = []
        self._block = np.empty(0, np.uint8)
        self._used = 0

    def expect(self, total: int) -> None:
        """Say how many bytes are going to be taken from now on: no block is larger than needed."""
        self._left = total

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
        # Not numpy's: it asks for huge pages, which cost an eighth where memory is at hand and ten
        # times as much in a virtual machine that hands free ones back to its host.
        memory = mmap.mmap(
            -1,
            max(num_bytes, min(BLOCK, self._left), 1),
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        )
        self._blocks.append(np.frombuffer(memory, np.uint8))
        return self._blocks[-1]
