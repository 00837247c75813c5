"""What a device can take: the numbers that bind lowering, fusion and schedules. Knows no particular device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyax.ir.dtypes import BOOL, FLOATS, INTS, UINTS, bfloat16, real_part

REALS: frozenset[np.dtype] = frozenset(BOOL | INTS | UINTS | FLOATS)
NARROW = (np.dtype("float16"), bfloat16)
"""What is computed in float32."""
FLOAT32 = np.dtype("float32")
INT64 = np.dtype("int64")
NATIVE: frozenset[np.dtype] = REALS - set(NARROW)
"""The dtypes that C compilers and LLVM handle everywhere."""


@dataclass(frozen=True)
class Limits:
    """The limits of one kind of device; backends make their own with ``dataclasses.replace``."""

    dtypes: frozenset[np.dtype] = NATIVE
    """What kernels may load, compute and store; complex numbers are pairs of these. Primitives on others run on the
    host."""
    index_dtype: np.dtype = INT64
    """What kernels compute places in, int64 or int32: the latter where there is nothing wider, or it is faster. Then no
    array may have more elements than that counts."""
    operands: int = 64
    """Buffers that one kernel may take."""
    kernel_nodes: int = 256
    """Scalar operations of one kernel, weighted by what they expand to: compilers are superlinear in it."""
    duplicable_nodes: int = 8
    """A producer of several kernels is computed in each of them if that costs no more operations than this."""
    recomputable_nodes: int = 4
    """A producer is computed anew for each use of an element if that costs no more operations than this."""
    local_bytes: int = 64 * 1024
    """Scratch that a kernel may use for one row."""
    lanes: int = 2048
    """Points along the last grid axis that strided folds compute together at most: 1 where threads do that alone."""
    tile: int = 32
    """The side of the squares in which arrays are turned: 1 where threads do best with single elements."""
    split_elements: int = 32 * 1024
    """Reductions to few elements are cut into chunks of about this many elements, which run side by side."""
    split_chunks: int = 64
    """At most this many of them."""
    threads: int = 1
    """The most threads that a group may have."""
    group: int = 1
    """Threads that share one row: a power of two where groups have fast memory of their own; 1 where a thread does
    best alone with whole rows, as on processors that offer no more than a few threads."""
    atomics: frozenset[int] = frozenset()
    """Sizes in bytes of the numbers in memory that threads may compare and replace at once: then updates that meet in
    one place need no order."""
    units: int = 1
    """Groups that surely run side by side: compute units."""
    vector_bytes: int = 32
    """What a processor computes with one instruction; matters where threads are alone."""

    def has(self, dtype: np.dtype) -> bool:
        """Whether arrays of the dtype may be used: complex ones where their parts may."""
        return real_part(dtype) in self.dtypes

    def why_not(self, dtype: np.dtype) -> str | None:
        """Why arrays of the dtype can't be used, if so, and what can be done."""
        if self.has(dtype) or dtype.kind not in "biufcV":
            return None
        known = ", ".join(sorted(d.name for d in self.dtypes))
        return f"the device has no {dtype}; it has {known}. Convert the array, or choose another device."


DEFAULT = Limits()
"""Those of a host."""
