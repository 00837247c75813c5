"""Where the blocks of one array lie: from a block spec and the array's type to what is read and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.refs.slices import Slice
from polyax.experimental.pallas.blocks import BlockDim, Blocked, BlockSpec, BoundedSlice, Element, Squeezed, block_dim
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.lax import lenient as lax
from polyax.trace.recording import SourceOf


def uninitialized(shape: Sequence[int], dtype: Any) -> Any:
    """What is where nothing was written: NaN or the least integer, so that it is seen."""
    if dtypes.issubdtype(dtype, np.inexact):
        return jnp.full(shape, np.nan, dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return jnp.full(shape, jnp.iinfo(dtype).min, dtype)
    return jnp.zeros(shape, dtype)


@dataclass(frozen=True)
class Mapping:
    """The blocks of one array.

    Args:
      what: how errors call the array.
      aval: its type.
      dims: what each dimension of a block is.
      index_map: from a place to which block, one number for each dimension.
    """

    what: str
    aval: ShapedArray
    dims: tuple[BlockDim, ...]
    index_map: Callable[..., Any] | None

    @classmethod
    def of(cls, what: str, aval: ShapedArray, spec: BlockSpec) -> Mapping:
        """Raises ValueError where ``spec`` isn't for arrays of so many dimensions."""
        shape = aval.shape if spec.block_shape is None else spec.block_shape
        dims = tuple(map(block_dim, shape))
        if len(dims) != aval.ndim:
            raise ValueError(
                f"Block shape for {what} (= {dims}) must have the same number of dimensions as the array shape "
                f"{aval.shape}."
            )
        return cls(what, aval, dims, spec.index_map)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of a block in the array."""
        return tuple(1 if isinstance(d, Squeezed) else d.block_size for d in self.dims)

    @property
    def _squeezed(self) -> tuple[int, ...]:
        return tuple(n for n, d in enumerate(self.dims) if isinstance(d, Squeezed))

    @property
    def _told(self) -> str:
        return "" if self.index_map is None else str(SourceOf(self.index_map, tuple))

    def starts(self, indices: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """The first element of the block that is seen at a place.

        Raises:
          ValueError: the index map gives too many numbers or too few, or something else.
        """
        if self.index_map is None:
            return [0] * len(self.dims)
        given = self.index_map(*indices, *scalars)
        found = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if len(found) != len(self.dims):
            raise ValueError(
                f"Index map function {self._told} for {self.what} must return {len(self.dims)} values to match "
                f"block_shape={self.dims}. Currently returning {len(found)} values: {found}"
            )
        return [self._start(n, x, d) for n, (x, d) in enumerate(zip(found, self.dims, strict=True))]

    def _start(self, n: int, x: Any, dim: BlockDim) -> Any:
        if isinstance(dim, BoundedSlice):
            if not isinstance(x, Slice):
                raise ValueError(
                    f"index_map returned a value of type {type(x)} at position {n} with block dimension {dim} when it "
                    "should be pl.Slice"
                )
            return jnp.asarray(x.start, np.int32)
        aval = aval_of(x)
        if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
            raise ValueError(
                f"Index map function {self._told} for {self.what} must return integer scalars. Output[{n}] has type "
                f"{aval}."
            )
        start = jnp.asarray(x, np.int32)
        return start * dim.block_size if isinstance(dim, Blocked) else start

    def padded(self, x: Any) -> Any:
        """The array, such that blocks fill it."""
        edges = [d.padding if isinstance(d, Element) else (0, 0) for d in self.dims]
        full = [low + n + high for (low, high), n in zip(edges, x.shape, strict=True)]
        width = [
            (low, high + -n % size, 0) for (low, high), n, size in zip(edges, full, map(max, self.sizes, [1] * x.ndim))
        ]
        if not any(low or high for low, high, _ in width):
            return x
        return lax.pad(x, uninitialized((), x.dtype), width)

    def unpadded(self, x: Any) -> Any:
        """The array without what ``padded`` added."""
        low = [d.padding[0] if isinstance(d, Element) else 0 for d in self.dims]
        return lax.slice(x, low, [a + n for a, n in zip(low, self.aval.shape, strict=True)])

    def read(self, x: Any, starts: Sequence[Any]) -> Any:
        """The block of the padded array that begins there."""
        return lax.squeeze(lax.dynamic_slice(x, starts, self.sizes), self._squeezed)

    def write(self, x: Any, starts: Sequence[Any], block: Any) -> Any:
        """The padded array with that block in it."""
        return lax.dynamic_update_slice(x, lax.expand_dims(block, self._squeezed), starts)
