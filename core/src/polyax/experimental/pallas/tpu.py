"""``polyax.experimental.pallas.tpu``: what kernels for TPUs name, so that they run as loops elsewhere.

Memory is memory here: what the spaces tell a compiler changes nothing.
"""

from __future__ import annotations

import enum
from typing import Any

from polyax import late
from polyax import numpy as jnp
from polyax.experimental.pallas.blocks import CompilerParams as CompilerParams
from polyax.experimental.pallas.blocks import GridSpec, MemoryKind, no_block_spec

__all__ = [
    "ANY", "ARBITRARY", "CMEM", "CORE_PARALLEL", "HBM", "PARALLEL", "SMEM", "SUBCORE_PARALLEL", "VMEM", "VMEM_SHARED",
    "CompilerParams", "GridDimensionSemantics", "MemorySpace", "PrefetchScalarGridSpec", "load", "roll", "store",
    "sync_copy",
]  # fmt: skip


class TpuMemory(MemoryKind):
    """Kinds of memory. Calling one makes the type of scratch memory.

    >>> TpuMemory.VMEM((2, 3), "float32").shape
    (2, 3)
    """

    ANY = "any"
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    HBM = "hbm"
    HOST = "host"


class GridDimensionSemantics(enum.Enum):
    """Whether places along an axis of a grid may be taken in any order. Here they are taken in their own."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


MemorySpace = TpuMemory
ANY, HBM, SMEM, VMEM = TpuMemory.ANY, TpuMemory.HBM, TpuMemory.SMEM, TpuMemory.VMEM
CMEM, VMEM_SHARED = TpuMemory.CMEM, TpuMemory.VMEM_SHARED
ARBITRARY, PARALLEL = GridDimensionSemantics.ARBITRARY, GridDimensionSemantics.PARALLEL
CORE_PARALLEL, SUBCORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL, GridDimensionSemantics.SUBCORE_PARALLEL


class PrefetchScalarGridSpec(GridSpec):
    """A ``GridSpec`` whose index maps and kernel get references to the first so many arguments, which have no specs.

    Args:
      num_scalar_prefetch: how many.
      grid, in_specs, out_specs, scratch_shapes: as those of ``GridSpec``.
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Any:
    """``x`` with its elements moved along ``axis``, those beyond the end to the beginning.

    Args:
      stride, stride_axis: row n along ``stride_axis`` is moved by ``n * stride`` more.

    Raises:
      ValueError: only one of the two is given.
    """
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not specified.")
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    rows = jnp.split(x, x.shape[stride_axis], stride_axis)
    return jnp.concatenate([jnp.roll(r, shift + n * stride, axis) for n, r in enumerate(rows)], stride_axis)


def sync_copy(src_ref: Any, dst_ref: Any) -> None:
    """Copies what a reference holds into another."""
    dst_ref[...] = src_ref[...]


def load(ref: Any, *, mask: Any = None) -> Any:
    """What a reference, or a part of one (``ref.at[...]``), holds; 0 where ``mask`` doesn't hold."""
    found = ref[...]
    return found if mask is None else jnp.where(mask, found, 0)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Writes into a reference, or a part of one (``ref.at[...]``), where ``mask`` holds."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


def __getattr__(name: str) -> Any:
    return late.load(__name__, late.NOTHING, name)
