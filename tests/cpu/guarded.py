"""Native functions on arrays behind which nothing may be read or written."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np


def at_the_end_of_a_page(array: np.ndarray) -> np.ndarray:
    """A copy; the page behind it belongs to nobody."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    bytes_ = np.frombuffer(memory, "uint8")
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.mprotect(ctypes.c_void_p(bytes_.ctypes.data + pages * mmap.PAGESIZE), mmap.PAGESIZE, 0)
    copy = bytes_[pages * mmap.PAGESIZE - array.nbytes : pages * mmap.PAGESIZE].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def run(address: int, arrays: Sequence[np.ndarray], work: Any) -> None:
    """Calls the function of a library at ``address`` over its whole range."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    function(pointers, (ctypes.c_int64 * len(work.scalars))(*work.scalars), 0, work.extent)
