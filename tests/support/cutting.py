"""Equations cut by hand: the blocks of operands as ``Factors`` say, each device's part, and the whole put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

import polyax
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive
from polyax.meshes.factors import Dim, Dims, Factors
from polyax.trace.recording import trace_to_jaxpr

Cut = Mapping[int, int]
"""How many blocks there are along each factor that is cut."""
Shape = tuple[int, ...]
TOGETHER: dict[str, Callable[[Any, Any], Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True)
class Equation:
    primitive: Primitive
    args: tuple[Any, ...]
    params: dict[str, Any]

    @property
    def key(self) -> Any:
        return self.primitive.name, tuple(map(str, map(aval_of, self.args))), repr(self.params)

    def factors(self) -> Factors | None:
        rule = self.primitive.factors
        return rule(*map(aval_of, self.args), **self.params) if rule else None

    def avals(self, weak: bool) -> list[ShapedArray]:
        """The types of the operands; weak, if so asked, where dtypes are those of Python's scalars."""
        scalars = [polyax.dtypes.canonicalize_dtype(kind) for kind in (bool, int, float, complex)]
        return [a.update(weak_type=weak and a.dtype in scalars) for a in map(aval_of, self.args)]

    def types(self, weak: bool) -> list[ShapedArray]:
        return list(self.primitive.rule("abstract_eval")(*self.avals(weak), **self.params))

    def run(self) -> list[np.ndarray]:
        return [np.asarray(y) for y in self.primitive.bind_all(*self.args, **self.params)]


@dataclass(frozen=True)
class Device:
    """One of the devices: its place along each factor that is cut. It is the ``Place`` of rules."""

    known: Factors
    sizes: Mapping[int, int]
    outs: Sequence[Shape]
    cut: Cut
    at: Mapping[int, int]
    zero: Any = 0

    def shape(self, result: int) -> Shape:
        return tuple(len(s) for s in _indices(self, self.outs[result], self.known.outs[result]))

    def start(self, result: int, dim: int) -> Any:
        return np.int32(_indices(self, self.outs[result], self.known.outs[result])[dim].start) + self.zero

    def begin(self, factor: int) -> Any:
        return np.int32(self.at.get(factor, 0) * self.sizes[factor] // self.cut.get(factor, 1)) + self.zero

    def block(self, x: Any, dims: Dims) -> Any:
        x = np.asarray(x)
        return x[np.ix_(*_indices(self, x.shape, dims))] if x.ndim else x[()]


def _indices(device: Device, shape: Shape, dims: Dims) -> list[range]:
    """Which indices of each dimension the device has."""
    return [_part(device, n, dim) for n, dim in zip(shape, dims, strict=True)]


def _part(device: Device, size: int, dim: Dim) -> range:
    blocks = math.prod(device.cut.get(f, 1) for f in dim)
    index = reduce(lambda i, f: i * device.cut.get(f, 1) + device.at.get(f, 0), dim, 0)
    return range(index * size // blocks, (index + 1) * size // blocks)


def factor_sizes(known: Factors, ins: Sequence[Shape], outs: Sequence[Shape]) -> dict[int, int]:
    """The size of each factor, which all its dimensions agree on."""
    sizes = dict(known.sizes)
    for dims, shape in zip((*known.ins, *known.outs), (*ins, *outs), strict=True):
        assert len(dims) == len(shape), "there are factors for each dimension"
        for dim, n in zip(dims, shape, strict=True):
            if len(dim) == 1:
                assert sizes.setdefault(dim[0], n) == n, f"factor {dim[0]} has size {sizes[dim[0]]} and {n}"
            elif dim:
                assert math.prod(known.sizes[f] for f in dim) == n, f"factors {dim} don't make a dimension of size {n}"
    return sizes


def ways_to_cut(known: Factors, sizes: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Each factor alone, with those outside of it in a dimension cut to pieces; and all at once."""
    together: dict[int, int] = {}
    for factor in sizes:
        outer = _outside(known, {factor}) - {factor}
        if sizes[factor] < 2 or {factor, *outer} & known.whole:
            continue
        way = {**{g: sizes[g] for g in outer if sizes[g] > 1}, factor: smallest_divisor(sizes[factor])}
        yield way
        together = {g: max(together.get(g, 1), way.get(g, 1)) for g in {**together, **way}}
    if len(together) > 1:
        yield together


def _outside(known: Factors, factors: set[int]) -> set[int]:
    """The factors, and all those that are outside of one of them in a dimension."""
    dims = [d for dims in (*known.ins, *known.outs) for d in dims]
    found = factors | {g for d in dims for f in factors & {*d} for g in d[: d.index(f)]}
    return found if found == factors else _outside(known, found)


def smallest_divisor(n: int) -> int:
    return next(k for k in range(2, n + 1) if n % k == 0)


def types_of_blocks(
    equation: Equation, known: Factors, sizes: Mapping[int, int], cut: Cut, weak: bool
) -> list[ShapedArray]:
    """The types of the results of a device, for which a program is made that knows no place but when it runs."""
    device = Device(known, sizes, [y.shape for y in equation.types(weak)], cut, dict.fromkeys(cut, 0))
    avals = equation.avals(weak)
    shapes = [tuple(map(len, _indices(device, a.shape, dims))) for a, dims in zip(avals, known.ins, strict=True)]
    blocks = [a.update(shape=shape) for a, shape in zip(avals, shapes, strict=True)]

    def run(zero: Any, *blocks: Any) -> Sequence[Any]:
        return on_blocks(equation, replace(device, zero=zero), blocks)

    return trace_to_jaxpr(run, [aval_of(np.int32(0)), *blocks]).out_avals


def on_blocks(equation: Equation, device: Device, blocks: Sequence[Any]) -> Sequence[Any]:
    if device.known.local is None:
        return equation.primitive.bind_all(*blocks, **equation.params)
    return device.known.local(device, *blocks, **equation.params)


def cut_by_hand(equation: Equation, known: Factors, sizes: Mapping[int, int], cut: Cut) -> list[np.ndarray]:
    """The results of ``equation``, put together from what each device makes of its blocks."""
    shapes = [y.shape for y in equation.run()]
    parts: list[dict[Any, Any]] = [{} for _ in shapes]
    for at in product(*map(range, cut.values())):
        device = Device(known, sizes, shapes, cut, dict(zip(cut, at, strict=True)))
        blocks = [device.block(x, dims) for x, dims in zip(equation.args, known.ins, strict=True)]
        for n, (y, dims) in enumerate(zip(on_blocks(equation, device, blocks), known.outs, strict=True)):
            assert np.shape(y) == device.shape(n), f"a block of {device.shape(n)} is of shape {np.shape(y)}"
            place = tuple((s.start, s.stop) for s in _indices(device, shapes[n], dims))
            lacking = tuple(device.at.get(f, 0) for f in known.reduced)
            parts[n].setdefault(place, {})[lacking] = np.asarray(y)
    return [_assembled(shape, places, known) for shape, places in zip(shapes, parts, strict=True)]


def _assembled(shape: Shape, places: Mapping[Any, Mapping[Any, np.ndarray]], known: Factors) -> np.ndarray:
    whole: np.ndarray | None = None
    for place, parts in places.items():
        block = _reduced(parts, list(known.reduced.values()))
        whole = np.empty(shape, block.dtype) if whole is None else whole
        whole[tuple(slice(*ends) for ends in place)] = block
    assert whole is not None
    return whole


def _reduced(parts: Mapping[Any, np.ndarray], kinds: Sequence[str]) -> np.ndarray:
    """The parts of devices that have the same place in the results."""
    for kind in kinds:
        rest: dict[Any, np.ndarray] = {}
        for (_, *others), part in parts.items():
            key = tuple(others)
            rest[key] = TOGETHER[kind](rest[key], part) if key in rest else part
        parts = rest
    (block,) = parts.values()
    return block
