"""Kernels: what to compute at each point of a grid. Which thread computes it is the schedule's business."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal as OneOf

import numpy as np

from polyax.ir.lazy import lazy
from polyax_kernels.ir.census import Census, census
from polyax_kernels.ir.expr import INT, Axis, Expr, points

Role = OneOf["in", "out", "inout", "local"]


@dataclass(frozen=True)
class Operand:
    """A row-major buffer that a kernel reads or writes.

    ``in``: read. ``out``: written, every element that the plan relies on. ``inout``: updated in place (stores to a
    region, scatter). ``local``: scratch private to one point of the grid, of a few kilobytes.
    """

    shape: tuple[int | Expr, ...]
    dtype: np.dtype
    role: Role


@dataclass(frozen=True)
class Store:
    """``operands[slot][indices] = value``, where ``mask`` holds. ``combine`` accumulates instead (scatter-add)."""

    slot: int
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None
    combine: str | None = None


@dataclass(frozen=True)
class Stage:
    """Loops over ``axes`` inside each point of the grid, with stores at their innermost."""

    axes: tuple[Axis, ...]
    stores: tuple[Store, ...]
    lockstep: bool = False
    """Only the first threads of a group take part in it and in the next one, so few that devices run them together."""

    @lazy
    def census(self) -> Census:
        """What it computes at each point of the grid."""
        return census([x for store in self.stores for x in store_roots(store)], points(self.axes))

    @lazy
    def reads(self) -> frozenset[int]:
        """The slots that it loads from."""
        return frozenset([x.attr.slot for x in self.census.loads])

    @lazy
    def writes(self) -> frozenset[int]:
        return frozenset([s.slot for s in self.stores])


@dataclass(frozen=True)
class Kernel:
    """``for point in grid: for stage in stages: for axes: stores``. Points of the grid are independent.

    Operands are addressed by position; the ones that are not local are the launch arguments, in order.
    """

    grid: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    operands: tuple[Operand, ...]
    name: str = "kernel"
    primitives: tuple[str, ...] = ()
    ordered: bool = False
    """The grid must run in order on one thread: scatters whose indices may repeat."""


@dataclass(frozen=True)
class Schedule:
    """How a kernel is mapped to a device; chosen by the backend's policy from the kernel, never from measured time."""

    parallel: int = 1
    """How many leading grid axes are split among threads or blocks."""
    lanes: int = 1
    """Points of the innermost grid axis computed together when a fold would otherwise walk memory with a stride:
    ``for block: acc[lanes] = init; for fold axis: for lane: acc[lane] = combine(...)``."""
    rows: int = 1
    """Points of the axis before it that such lanes are computed for together, so that what does not depend on that axis
    is read once for all of them."""
    columns: bool = False
    """Whether folds down a few columns take several rows side by side; the grid has one axis less then."""
    tile: int = 1
    """The side of the squares of points that are computed together when memory would otherwise be read across the
    innermost grid axis: ``for square: scratch = part of the operand; for i: for j: out[i, j] = scratch[j, i]``."""
    cut: bool = False
    """Whether an axis is cut where conditions on its index change, so that none is asked at each point."""
    short_rows: bool = False
    """Whether rows of a few elements are written out, so that many are computed side by side."""
    row_blocks: bool = False
    """Whether rows of a few vectors are reduced several together."""
    grain: int = 1
    """Points of the first grid axis that a thread computes together."""
    index_dtype: np.dtype = INT
    """What emitters are given for indices, extents and offsets (``indices.index_dtype``)."""


def map_kernel(kernel: Kernel, change: Callable[[Expr], Expr]) -> Kernel:
    """``kernel`` with each expression of its stores changed; it itself, if none is."""
    return with_stages(kernel, map_stages(kernel.stages, change))


def with_stages(kernel: Kernel, stages: tuple[Stage, ...]) -> Kernel:
    return kernel if stages == kernel.stages else replace(kernel, stages=stages)


def map_stages(stages: Iterable[Stage], change: Callable[[Expr], Expr]) -> tuple[Stage, ...]:
    return tuple([with_stores(stage, map_stores(stage.stores, change)) for stage in stages])


def with_stores(stage: Stage, stores: tuple[Store, ...]) -> Stage:
    return stage if stores == stage.stores else Stage(stage.axes, stores, stage.lockstep)


def map_stores(stores: Iterable[Store], change: Callable[[Expr], Expr]) -> tuple[Store, ...]:
    return tuple([map_store(store, change) for store in stores])


def map_store(store: Store, change: Callable[[Expr], Expr]) -> Store:
    mask = None if store.mask is None else change(store.mask)
    indices, value = tuple([change(i) for i in store.indices]), change(store.value)
    if value is store.value and mask is store.mask and indices == store.indices:
        return store
    return Store(store.slot, indices, value, mask, store.combine)


def store_roots(store: Store) -> tuple[Expr, ...]:
    """The expressions that a store evaluates."""
    return (*store.indices, store.value, *(() if store.mask is None else (store.mask,)))


def kernel_roots(kernel: Kernel) -> tuple[Expr, ...]:
    """Every expression that the kernel's stores evaluate."""
    return tuple(x for stage in kernel.stages for store in stage.stores for x in store_roots(store))
