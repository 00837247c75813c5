"""What a kernel sees of an array at each place of the grid: block specs, grids, and where scratch memory lies."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import as_dtype


@dataclass(frozen=True)
class Blocked:
    """Blocks of ``block_size`` elements, of which the index map gives the number. An integer means this."""

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclass(frozen=True)
class Element:
    """``block_size`` elements, of which the index map gives the first, in the array with ``padding`` around it."""

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        told = "" if self.padding == (0, 0) else f", padding={self.padding}"
        return f"Element({self.block_size}{told})"


@dataclass(frozen=True)
class Squeezed:
    """One element, and no dimension of the block. None means this."""


@dataclass(frozen=True)
class BoundedSlice:
    """At most ``block_size`` elements, of which the index map gives a ``ds``; the block always has that size."""

    block_size: int


BlockDim = Blocked | Element | Squeezed | BoundedSlice
squeezed = Squeezed()


def block_dim(given: Any) -> BlockDim:
    """What an entry of a block shape means.

    Raises:
      ValueError: it is neither a kind of block dimension nor an integer nor None.
    """
    if given is None:
        return squeezed
    if isinstance(given, BlockDim):
        return given
    try:
        return Blocked(int(given))
    except (TypeError, ValueError):
        raise ValueError(
            f"Unsupported block dimension type: {type(given)}. Allowed types: `pl.Squeezed`, `pl.Blocked`, "
            "`pl.Element`, `pl.BoundedSlice`, `int`, `None`."
        ) from None


class RevisitMode(enum.Enum):
    """Whether a block of a result is written once or at several places of the grid: here either may be."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """How many blocks a device holds at a time. For compatibility: blocks are read when they are needed."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class MemoryKind(enum.Enum):
    """Where a block lies. For compatibility, but for what calling one makes: the type of scratch memory."""

    def from_type(self, type: ShapedArray) -> MemoryRef:
        return MemoryRef(type, self)

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return self.from_type(ShapedArray(tuple(shape), as_dtype(dtype)))

    def __str__(self) -> str:
        return self.value


class KernelMemory(MemoryKind):
    """Kinds of memory that all devices have.

    >>> KernelMemory.ANY((2, 3), "float32").shape
    (2, 3)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


@dataclass(frozen=True)
class MemoryRef:
    """The type of scratch memory."""

    inner_aval: ShapedArray
    memory_space: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype


class NoBlockSpec:
    """In place of block specs: all arrays are seen whole."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


@dataclass
class BlockSpec:
    """What a kernel sees of an array.

    Args:
      block_shape: for each dimension an integer, None, or a kind of block dimension; None for the whole array.
      index_map: from a place of the grid to as many numbers: which block is seen there. None for the first.
      memory_space, pipeline_mode: for compatibility.

    >>> BlockSpec((2, None), lambda i: (i, 0)).index_map(3)
    (3, 0)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    replace = replace


class GridSpec:
    """A grid and what is seen at each place of it, as one argument of ``pallas_call``.

    Args:
      grid: the sizes, which may be computed; an integer is a grid of one dimension. Pairs of names and sizes give
        names to axes, of which kernels learn the size (``lax.axis_size``).
      in_specs: a sequence of ``BlockSpec``, one for each argument.
      out_specs: a pytree of ``BlockSpec`` as that of the results.
      scratch_shapes: types of scratch memory.

    Raises:
      ValueError: ``in_specs`` is no sequence, or the grid is not of integers.
    """

    num_scalar_prefetch = 0

    def __init__(
        self, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec, scratch_shapes: Any = ()
    ) -> None:
        if in_specs is not no_block_spec and not isinstance(in_specs, Sequence):
            raise ValueError(f"`in_specs` must be a tuple or a list. Found: {in_specs}")
        self.in_specs = tuple(in_specs) if isinstance(in_specs, Sequence) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes if isinstance(scratch_shapes, Mapping) else tuple(scratch_shapes)
        sizes: tuple[Any, ...] = (grid,) if isinstance(grid, int) else tuple(grid)
        self.names: tuple[str, ...] = ()
        if sizes and isinstance(sizes[0], tuple):
            self.names, sizes = zip(*sizes, strict=True)
        for size in sizes:
            if not isinstance(size, int) and getattr(size, "shape", None) != ():
                raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
        self.grid = sizes


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs. For compatibility.

    Raises:
      ValueError: a number isn't an integer.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not isinstance(value, int):
                raise ValueError(
                    f"All fields in CostEstimate must be ints. {f.name} is not an int: {type(value)}({value})"
                )


@dataclass(frozen=True)
class CompilerParams:
    """What one maker's compiler is told. For compatibility: names and values are kept, and nothing reads them."""

    def __init__(self, **params: Any) -> None:
        vars(self).update(params)
