"""Changing how an array is cut, from inside the program of one device: slicing, exchanging, gathering.

What to do is found out before anything is done, so that ways can be compared by the bytes that they move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts, sums_of
from polyax.ops.basis import eq, zeros_like
from polyax.ops.collective import axis_index, pmax, pmin, psum
from polyax.ops.compare import select
from polyax.ops.exchange import all_gather, all_to_all, psum_scatter
from polyax.ops.index import dynamic_slice
from polyax.partition.shares import Names, blocks_along

FREE = frozenset({"slice", "part"})
"""Steps that exchange nothing."""
REDUCTIONS = {"sum": "psum", "max": "pmax", "min": "pmin"}
_REDUCE = {"psum": psum, "pmax": pmax, "pmin": pmin}


@dataclass(frozen=True)
class Move:
    """An exchange between devices."""

    collective: str
    axes: tuple[Any, ...]
    aval: ShapedArray
    """What each device hands in."""
    nbytes: int
    """What each device sends, each time."""
    reason: str
    source: str = ""
    """The user's line that it is done for."""
    times: int = 1
    """How often it is done, as far as is known: loops repeat it."""

    @property
    def total(self) -> int:
        """What each device sends in all."""
        return self.nbytes * self.times


@dataclass(frozen=True)
class Step:
    """``slice``, ``all_to_all`` (from dimension ``source``), ``all_gather``, ``reduce_scatter``, or a reduction; or
    ``part``: of a sum, of which the first device along each axis has all and others have nothing."""

    kind: str
    axes: Names
    dim: int = -1
    source: int = -1


@dataclass(frozen=True)
class Way:
    """The steps from one way to cut an array to another, and for each the bytes that a device sends, and of what."""

    steps: tuple[Step, ...]
    nbytes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def total(self) -> int:
        return sum(self.nbytes)


def block_shape(shape: Sequence[int], cuts: Cuts, sizes: Mapping[Any, int]) -> tuple[int, ...]:
    return tuple([n // blocks_along(c, sizes) if c else n for n, c in zip(shape, cuts, strict=True)])


def block_aval(aval: ShapedArray, cuts: Cuts, axes: Axes) -> ShapedArray:
    """The type of a block of an array of type ``aval``."""
    return aval.with_shape(block_shape(aval.shape, cuts, dict(axes)))


@lru_cache(8192)
def way(
    shape: tuple[int, ...], itemsize: int, before: Cuts, after: Cuts, axes: Axes, parts: tuple[tuple[str, Names], ...]
) -> Way:
    """From ``before`` to ``after``, for an array of this shape.

    ``parts``: how, and along which axes, what devices have are parts of it that are to be put together; sums that
    ``after`` names may wait.
    """
    sizes = dict(axes)
    plan = _Plan(list(before), tuple(after))
    summed, wanted = sums_of(before).union(*[names for how, names in parts if how == "sum"]), sums_of(after)
    for how, names in (("sum", [a for a in sizes if a in summed - wanted]), *[p for p in parts if p[0] != "sum"]):
        plan.put_together(how, names)
    plan.lead()
    if more := tuple([a for a in sizes if a in wanted - summed]):
        plan.steps.append(Step("part", more))
    block, found = block_shape(shape, before, sizes), []
    for step in plan.steps:
        found.append((step, math.ceil(_sent(step, sizes) * math.prod(block) * itemsize), block))
        block = _applied(block, step, sizes)
    return Way(*map(tuple, zip(*found, strict=True))) if found else Way((), (), ())


class _Plan:
    """Steps that lead from ``now`` to ``after``; what takes least is done first."""

    def __init__(self, now: list[Names], after: Cuts) -> None:
        self.now = now
        self.after = after
        self.steps: list[Step] = []

    def put_together(self, how: str, names: Sequence[Any]) -> None:
        """Sums that are wanted cut along an axis that they are taken along are scattered."""
        rest = list(names)
        while how == "sum" and (found := next(((d, a) for d, a in self._wanted() if a in rest), None)):
            rest.remove(found[1])
            self._cut("reduce_scatter", *found)
        if rest:
            self.steps.append(Step(REDUCTIONS[how], tuple(rest)))

    def lead(self) -> None:
        while tuple(self.now) != self.after:
            _ = self._slice() or self._exchange() or self._gather()

    def _wanted(self) -> list[tuple[int, Any]]:
        """The axes that dimensions can be cut along next, as they are to be in the end."""
        pairs = enumerate(zip(self.now, self.after, strict=True))
        return [(d, t[len(n)]) for d, (n, t) in pairs if len(n) < len(t) and t[: len(n)] == n]

    def _cut(self, kind: str, dim: int, axis: Any, source: int = -1) -> None:
        self.steps.append(Step(kind, (axis,), dim, source))
        self.now[dim] += (axis,)
        if source >= 0:
            self.now[source] = self.now[source][:-1]

    def _slice(self) -> bool:
        used = {a for names in self.now for a in names}
        free = [(d, a) for d, a in self._wanted() if a not in used]
        for d, a in free[:1]:
            self._cut("slice", d, a)
        return bool(free)

    def _exchange(self) -> bool:
        """An axis that cuts another dimension, innermost there, goes from that one to where it is wanted."""
        last = {names[-1]: d for d, names in enumerate(self.now) if names}
        movable = [(d, a) for d, a in self._wanted() if last.get(a, d) != d]
        for d, a in movable[:1]:
            self._cut("all_to_all", d, a, last[a])
        return bool(movable)

    def _gather(self) -> bool:
        """One axis, so that what it was in the way of may go before others are gathered."""
        wrong = [d for d, (n, t) in enumerate(zip(self.now, self.after, strict=True)) if t[: len(n)] != n]
        self.steps.append(Step("all_gather", self.now[wrong[0]][-1:], wrong[0]))
        self.now[wrong[0]] = self.now[wrong[0]][:-1]
        return True


def _sent(step: Step, sizes: Mapping[Any, int]) -> float:
    """What a device sends, in blocks that it hands in: rings, in which each sends to the next."""
    n = blocks_along(step.axes, sizes)
    kinds = {"slice": 0.0, "part": 0.0, "all_gather": n - 1, "all_to_all": (n - 1) / n, "reduce_scatter": (n - 1) / n}
    return kinds.get(step.kind, 2 * (n - 1) / n)


def _applied(block: tuple[int, ...], step: Step, sizes: Mapping[Any, int]) -> tuple[int, ...]:
    shape, n = list(block), blocks_along(step.axes, sizes)
    if step.kind == "all_gather":
        shape[step.dim] *= n
    elif step.dim >= 0:
        shape[step.dim] //= n
    if step.source >= 0:
        shape[step.source] *= n
    return tuple(shape)


def follow(x: Any, steps: Sequence[Step], sizes: Mapping[Any, int]) -> Any:
    """Does the steps to a block; slices that follow each other are one."""
    for kind, some in groupby(steps, lambda s: s.kind):
        if kind == "slice":
            x = _sliced(x, list(some), sizes)
            continue
        for step in some:
            x = _exchanged(x, step)
    return x


def _exchanged(x: Any, step: Step) -> Any:
    match step.kind:
        case "all_gather":
            return all_gather(x, step.axes, axis=step.dim, tiled=True)
        case "reduce_scatter":
            return psum_scatter(x, step.axes, scatter_dimension=step.dim, tiled=True)
        case "all_to_all":
            return all_to_all(x, step.axes, step.dim, step.source, tiled=True)
        case "part":
            return select(eq(axis_index(step.axes), np.int32(0)), x, zeros_like(x))
        case kind:
            return _REDUCE[kind](x, step.axes)


def _sliced(x: Any, steps: Sequence[Step], sizes: Mapping[Any, int]) -> Any:
    shape = list(aval_of(x).shape)
    names: dict[int, Names] = {}
    for step in steps:
        names[step.dim] = names.get(step.dim, ()) + step.axes
    starts: list[Any] = [np.int32(0)] * len(shape)
    for dim, own in names.items():
        shape[dim] //= blocks_along(own, sizes)
        starts[dim] = axis_index(own) * np.int32(shape[dim])
    return dynamic_slice(x, starts, shape, allow_negative_indices=False)
