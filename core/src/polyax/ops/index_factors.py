"""Reading and writing at indices in arrays that are cut: where an index points, just one device has the element.

A dimension of which slices hold all is free. Along one of which they hold one element, each device looks indices up in
its block: it reads zeros for those outside, and what all read is summed; and it drops what is written there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.lazy import lazy
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, Place, factors, fitted
from polyax.ops.basis import broadcast_in_dim, convert, eq, full_like, mul, select_n, sub
from polyax.ops.compare import bitwise_and, bitwise_or, gt, lt
from polyax.ops.elementwise import max, min
from polyax.ops.gather import Dims, GatherDimensionNumbers, GatherScatterMode, gather_p
from polyax.ops.reduce import reduce_or
from polyax.ops.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)

Begins = Mapping[int, Any]
"""Where a block begins along the dimensions of the operand that are cut and that indices point along."""


def summable(x: ShapedArray) -> bool:
    """Whether zeros of devices that don't have an element leave it as it is in a sum."""
    return not dtypes.is_extended(x.dtype) and x.dtype != np.bool_


def begins_of(place: Place, whole: Dims, block: Any, pointed: Mapping[int, int]) -> Begins:
    """``pointed`` holds the factors of the dimensions that indices point along."""
    return {d: place.begin(f) for d, f in pointed.items() if np.shape(block)[d] != whole[d]}


def signed(indices: Any) -> Any:
    """Integers that differences can be taken of."""
    return convert(indices, np.dtype(np.int64 if aval_of(indices).dtype.itemsize == 8 else np.int32))


def clamped(indices: Any, last: Any) -> Any:
    """``signed`` indices from 0 to ``last``."""
    dtype = aval_of(indices).dtype
    top = np.minimum(last, dtypes.iinfo(dtype).max).astype(dtype)
    return signed(min(max(indices, np.zeros_like(top)), top))


@dataclass(frozen=True)
class Slices:
    """How slices of an array correspond to it and to the indices that point to them; factors are numbered by the
    dimensions of the indices, then by those of the array."""

    array: Dims
    indices: Dims
    numbers: GatherDimensionNumbers
    sizes: Dims

    @lazy
    def full(self) -> list[int]:
        """The dimensions of which slices hold all."""
        return [i for i, (k, n) in enumerate(zip(self.sizes, self.array, strict=True)) if k == n]

    @lazy
    def pointed(self) -> dict[int, int]:
        """The factors of those of which slices hold the one element that an index points to."""
        return {
            i: len(self.indices) + i for i in self.numbers.start_index_map if self.sizes[i] == 1 and i not in self.full
        }

    @lazy
    def of_array(self) -> list[int | None]:
        paired = zip(self.numbers.operand_batching_dims, self.numbers.start_indices_batching_dims, strict=True)
        known = {i: len(self.indices) + i for i in self.full} | self.pointed | dict(paired)
        return [known.get(i) for i in range(len(self.array))]

    @property
    def of_indices(self) -> list[int | None]:
        return [*range(len(self.indices) - 1), None]

    @property
    def of_slices(self) -> list[int | None]:
        d = self.numbers
        left_out = {*d.collapsed_slice_dims, *d.operand_batching_dims}
        window = iter([f if i in self.full else None for i, f in enumerate(self.of_array) if i not in left_out])
        batch = iter(self.of_indices)
        rank = len(self.indices) - 1 + len(d.offset_dims)
        return [next(window) if i in d.offset_dims else next(batch) for i in range(rank)]

    def _row(self, components: Any) -> np.ndarray:
        return np.reshape(components, (1,) * (len(self.indices) - 1) + (-1,))

    @property
    def _last(self) -> np.ndarray:
        return self._row([self.array[i] - self.sizes[i] for i in self.numbers.start_index_map])

    def in_block(self, indices: Any, begins: Begins, *, clamp: bool) -> Any:
        """``indices`` as those of a block, which are out of its bounds unless it has what they point to."""
        indices = clamped(indices, self._last) if clamp else signed(indices)
        dtype = aval_of(indices).dtype
        for d, begin in begins.items():
            component = self._row(np.equal(self.numbers.start_index_map, d)).astype(dtype)
            indices = sub(indices, mul(convert(begin, dtype), component))
        return indices

    def outside(self, indices: Any) -> Any:
        """Which index vectors point to slices that leave the array."""
        indices = signed(indices)
        last = self._last.astype(aval_of(indices).dtype)
        return reduce_or(bitwise_or(lt(indices, np.zeros_like(last)), gt(indices, last)), (len(self.indices) - 1,))


def _first(begins: Iterable[Any]) -> Any:
    """Whether this is the first of the devices that have parts of a sum."""
    return reduce(bitwise_and, [eq(b, np.int32(0)) for b in begins])


# --- gather ---------------------------------------------------------------------------------------------------------


@def_rule(gather_p, "factors")
def _gather_factors(
    operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: Any, slice_sizes: Dims, **_: Any
) -> Factors:
    slices = Slices(operand.shape, indices.shape, dimension_numbers, slice_sizes)

    def local(place: Place, block: Any, indices: Any, **params: Any) -> list[Any]:
        params["slice_sizes"] = fitted(slice_sizes, operand.shape, np.shape(block))
        begins = begins_of(place, operand.shape, block, slices.pointed)
        gathered = (
            _gathered(slices, begins, block, indices, params) if begins else gather_p.bind1(block, indices, **params)
        )
        return [gathered]

    pointed = slices.pointed.values()
    how: dict[str, Any] = {"reduced": dict.fromkeys(pointed, "sum")} if summable(operand) else {"whole": pointed}
    return factors([slices.of_array, slices.of_indices], [slices.of_slices], local=local, **how)


def _gathered(slices: Slices, begins: Begins, block: Any, indices: Any, params: dict[str, Any]) -> Any:
    """What the block has; one device fills in what no block has."""
    own = {**params, "mode": GatherScatterMode.FILL_OR_DROP, "fill_value": 0}
    fills = params["mode"] is GatherScatterMode.FILL_OR_DROP
    found = gather_p.bind1(block, slices.in_block(indices, begins, clamp=not fills), **own)
    if params["fill_value"] in (None, 0):
        return found
    batch = [i for i in range(np.ndim(found)) if i not in slices.numbers.offset_dims]
    missing = broadcast_in_dim(slices.outside(indices), np.shape(found), batch)
    first = broadcast_in_dim(_first(begins.values()), np.shape(found), ())
    return select_n(bitwise_and(missing, first), found, full_like(found, params["fill_value"]))


# --- scatter --------------------------------------------------------------------------------------------------------


def _scatter_factors(p: Primitive, parts: str | None) -> None:
    """``parts`` says how the results of parts of the updates are put together, if they can be."""

    @def_rule(p, "factors")
    def rule(
        operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, dimension_numbers: Any, **_: Any
    ) -> Factors:
        window = dimension_numbers.window(operand.shape, updates.shape)
        slices = Slices(operand.shape, indices.shape, dimension_numbers.gather_numbers(), window)
        lost = [f for f in slices.of_indices if f is not None and f not in slices.of_array]

        def local(place: Place, block: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
            if begins := begins_of(place, operand.shape, block, slices.pointed):
                indices = slices.in_block(indices, begins, clamp=params["mode"] is GatherScatterMode.CLIP)
                params["mode"] = GatherScatterMode.FILL_OR_DROP
            cut = [place.begin(f) for f in lost if np.shape(indices)[f] != slices.indices[f]]
            if cut and parts == "sum":
                block = select_n(_first(cut), full_like(block, 0), block)
            return p.bind_all(block, indices, updates, **params)

        apart = parts if parts != "sum" or summable(operand) else None
        how: dict[str, Any] = {"reduced": dict.fromkeys(lost, apart)} if apart else {"whole": lost}
        ins = [slices.of_array, slices.of_indices, slices.of_slices]
        return factors(ins, [slices.of_array], local=local, **how)


for _p, _parts in (
    (scatter_p, None),
    (scatter_add_p, "sum"),
    (scatter_sub_p, "sum"),
    (scatter_mul_p, None),
    (scatter_min_p, "min"),
    (scatter_max_p, "max"),
):
    _scatter_factors(_p, _parts)
