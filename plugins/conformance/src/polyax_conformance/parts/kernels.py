"""Small kernels that together ask all of an emitter: operations, casts, memory, loops, folds, scratch, scalars.

What they mean is said by ``NumpyEmitter``. All functions are called inside ``with consing():``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax_kernels.api.emitters import (
    SCALARS,
    Kernel,
    Operand,
    Stage,
    Store,
    bitcast,
    fold,
    index,
    param,
)
from polyax_kernels.api.lowerings import COMPARISONS, Axis, Expr, cast, const, load, op

F32 = np.dtype("float32")
EXACT = frozenset((
    *("add", "sub", "mul", "div", "neg", "abs", "max", "min", "sign", "square", "floor", "ceil", "trunc", "round"),
    *("round_even", "sqrt", "select", "clamp", "nextafter", *COMPARISONS),
))  # fmt: skip
"""Operations of floats of which there is one right result."""
FLOATS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, 20.0, -20.0, np.inf, -np.inf, np.nan)
NARROWER: dict[str, tuple[float, ...]] = {
    "pow": (0.5, 1.0, 2.0, 3.0, 0.25),
    "atan2": (0.5, -1.0, 2.0, 3.0, -0.25),
    "rem": (0.5, -1.0, 2.5, 3.0, -0.25, 7.75),
    "lgamma": (0.5, 1.5, 3.0, 20.0, np.nan),
    "digamma": (0.5, 1.5, 3.0, 20.0, np.nan),
    "logistic": (0.0, 0.5, -0.5, 3.0, -3.0, 20.0, np.inf, np.nan),
}
"""Numbers of operations that are right elsewhere by other tests: the table isn't sharp at their ends."""


@dataclass(frozen=True)
class KernelCase:
    """A kernel, the arrays of its operands that aren't scratch, and its scalars; ``rtol`` 0 means bit by bit."""

    name: str
    kernel: Kernel
    arrays: Sequence[np.ndarray]
    scalars: tuple[int, ...] = ()
    rtol: float = 0.0
    results: tuple[str, ...] = ()
    """What the operands behind the inputs are called, if there are several."""


def numbers(dtype: np.dtype, name: str = "") -> np.ndarray:
    """Those with which most goes wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 7, ends.max, ends.max - 1, ends.min, ends.min + 1, ends.max // 2], dtype)
    return np.array(NARROWER.get(name, FLOATS)).astype(dtype)


def elementwise(name: str, value: Callable[..., Expr], arrays: Sequence[np.ndarray], rtol: float = 0.0) -> KernelCase:
    """``value`` of the elements of arrays of one shape."""
    grid = tuple(Axis(n, f"i{k}") for k, n in enumerate(arrays[0].shape))
    i = tuple(map(index, grid))
    return stored(name, grid, i, value(*[load(n, x.dtype, i) for n, x in enumerate(arrays)]), arrays, rtol=rtol)


def stored(
    name: str,
    grid: tuple[Axis, ...],
    at: tuple[Expr, ...],
    value: Expr,
    arrays: Sequence[np.ndarray],
    *,
    mask: Expr | None = None,
    rtol: float = 0.0,
) -> KernelCase:
    """``value`` stored at a point of a result of the grid's shape."""
    shape = tuple(a.extent for a in grid)
    operands = (*inputs(arrays), Operand(shape, value.dtype, "out"))
    kernel = Kernel(grid, (Stage((), (Store(len(arrays), at, value, mask),)),), operands, "kernel")
    return KernelCase(name, kernel, [*arrays, blank(shape, value.dtype)], rtol=rtol)


def inputs(arrays: Iterable[np.ndarray]) -> tuple[Operand, ...]:
    return tuple(Operand(x.shape, x.dtype, "in") for x in arrays)


def blank(shape: Any, dtype: np.dtype) -> np.ndarray:
    """Memory that shows where nothing was stored."""
    return np.full(shape, 77 if dtype.kind != "b" else 1, dtype)


def tolerance(dtype: np.dtype) -> float:
    return {"float64": 1e-12, "float32": 2e-6}.get(dtype.name, 1e-2 if dtype.kind in "fV" else 0.0)


# --- values -----------------------------------------------------------------------------------------------------------


def operations(dtypes: Sequence[np.dtype]) -> Iterator[KernelCase]:
    """Each operation of the table on each dtype that it has."""
    for (name, scalar), dtype in itertools.product(SCALARS.items(), dtypes):
        if dtype not in scalar.dtypes or (dtype.itemsize < 4 and dtype.kind in "fV"):
            continue
        columns = np.meshgrid(*[numbers(dtype, name)] * min(scalar.arity, 2))
        arrays = [np.ascontiguousarray(x.reshape(-1)) for x in columns]
        if name == "select":
            arrays = [arrays[0] != 0, *arrays]
        elif scalar.arity == 3:
            arrays.append(arrays[0][::-1].copy())
        exact = dtype.kind not in "fV" or name in EXACT
        rtol = 0.0 if exact else tolerance(dtype)
        yield elementwise(f"{name} of {dtype}", lambda *xs, name=name: op(name, *xs), arrays, rtol)


def casts(dtypes: Sequence[np.dtype]) -> Iterator[KernelCase]:
    """From each dtype to all others, and its bits as those of the same width."""
    for source in dtypes:
        x = numbers(source)
        if source.kind == "f":
            x = np.concatenate([x, np.array([300.7, -300.7, 7e4, -7e4, 3e9, -3e9], source)])
        (axis,) = grid = (Axis(len(x), "i"),)
        value = load(0, source, (index(axis),))
        yield together(f"casts from {source}", grid, {f"to {d}": cast(value, d) for d in dtypes if d != source}, [x])
        alike = [d for d in dtypes if d.itemsize == source.itemsize and "b" not in (d.kind, source.kind)]
        if len(alike) > 1:
            bits = {f"as {d}": bitcast(value, d) for d in alike if d != source}
            yield together(f"bits of {source}", grid, bits, [np.where(x == x, x, 1).astype(source)])


def constants(dtypes: Sequence[np.dtype]) -> Iterator[KernelCase]:
    for dtype in dtypes:
        values = {str(value): const(value.item(), dtype) for value in numbers(dtype)}
        yield together(f"constants of {dtype}", (Axis(2, "i"),), values, [])


def together(
    name: str, grid: tuple[Axis, ...], values: dict[str, Expr], arrays: Sequence[np.ndarray], rtol: float = 0.0
) -> KernelCase:
    """Several results at the points of one grid."""
    i, shape = tuple(map(index, grid)), tuple(a.extent for a in grid)
    stores = tuple(Store(len(arrays) + n, i, value) for n, value in enumerate(values.values()))
    operands = (*inputs(arrays), *(Operand(shape, value.dtype, "out") for value in values.values()))
    blanks = [blank(shape, value.dtype) for value in values.values()]
    return KernelCase(name, Kernel(grid, (Stage((), stores),), operands), [*arrays, *blanks], (), rtol, tuple(values))


# --- memory -----------------------------------------------------------------------------------------------------------


def ramp(*shape: int, dtype: Any = F32) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)


def memory(dtypes: Sequence[np.dtype]) -> Iterator[KernelCase]:
    """Loads and stores, of each dtype: in order, across, with masks, at one place of several."""
    for dtype in dtypes:
        x = ramp(3, 4, dtype=dtype)
        rows, columns = Axis(4, "i"), Axis(3, "j")
        i, j = index(rows), index(columns)
        across = load(0, dtype, (j, i))
        yield stored(f"a transpose of {dtype}", (rows, columns), (i, j), across, [x])
        inside = op("lt", i, const(3))
        kept = load(0, dtype, (i, j), inside, const(5, dtype))
        yield stored(f"a load of {dtype} with a mask", (rows, columns), (i, j), kept, [ramp(3, 3, dtype=dtype)])
        none = load(0, dtype, (i,), op("lt", i, const(0)), const(5, dtype))
        yield stored(f"a load of {dtype} from nothing", (rows,), (i,), none, [np.empty(0, dtype)])
        yield stored(f"a store of {dtype} with a mask", (rows, columns), (i, j), across, [x], mask=inside)
        yield updated(dtype)


def updated(dtype: np.dtype) -> KernelCase:
    """A region of an operand that is there already."""
    axis = Axis(2, "i")
    value = load(0, dtype, (index(axis),))
    store = Store(1, (index(axis) + const(1),), value)
    operands = (Operand((2,), dtype, "in"), Operand((4,), dtype, "inout"))
    kernel = Kernel((axis,), (Stage((), (store,)),), operands)
    return KernelCase(f"an update of {dtype} in place", kernel, [ramp(2, dtype=dtype), blank(4, dtype)])


def grids() -> Iterator[KernelCase]:
    for shape in ((), (1,), (0,), (3, 0), (2, 3, 4), (70_000,)):
        yield elementwise(f"a grid of {shape}", lambda x: x + x, [ramp(*shape) if shape else np.ones((), F32)])
    yield several()
    yield any_size()
    yield in_order()


def several() -> KernelCase:
    """Two results, of two dtypes."""
    (axis,) = grid = (Axis(5, "i"),)
    x = load(0, F32, (index(axis),))
    return together("two results", grid, {"the sum": x + x, "the comparison": op("gt", x, const(2, F32))}, [ramp(5)])


def any_size() -> KernelCase:
    """Extents and offsets that launches bring."""
    axis = Axis(param(0), "i")
    i, inner = index(axis), Axis(param(1), "k")
    value = fold("add", (inner,), (const(0, F32),), (load(0, F32, (i * param(1) + index(inner),)),))
    operands = (Operand((param(0),), F32, "in"), Operand((param(0),), F32, "out"))
    kernel = Kernel((axis,), (Stage((), (Store(1, (i,), value * cast(param(2), F32)),)),), operands)
    return KernelCase("scalars that a launch brings", kernel, [ramp(12), blank(4, F32)], (4, 3, -2))


def in_order() -> KernelCase:
    """Points that write to one place, one after the other."""
    axis = Axis(6, "i")
    at = cast(load(0, np.dtype("int32"), (index(axis),)), np.dtype("int64"))
    value = load(2, F32, (at,)) * const(2, F32) + load(1, F32, (index(axis),))
    kernel = Kernel(
        (axis,),
        (Stage((), (Store(2, (at,), value),)),),
        (*inputs([ramp(6, dtype="int32"), ramp(6)]), Operand((3,), F32, "inout")),
        ordered=True,
    )
    return KernelCase("points in order", kernel, [np.array([0, 2, 0, 0, 2, 1], np.int32), ramp(6), ramp(3)])


# --- loops ------------------------------------------------------------------------------------------------------------


def folds(dtypes: Sequence[np.dtype]) -> Iterator[KernelCase]:
    """Each by which reductions combine, over nothing, one, some, and many. Fewer than eight are written out."""
    for dtype, length in itertools.product(dtypes, (0, 1, 9, 300)):
        if dtype.itemsize >= 4 or dtype.kind not in "fV":
            x = (ramp(3, length) % 7 - 3).astype(dtype)
            yield folded(dtype, x, [n for n in combining(dtype) if n != "mul" or length < 10])
    for name in ("argmax", "argmin"):
        yield picked(name)
    yield nested()


def combining(dtype: np.dtype) -> tuple[str, ...]:
    names = ("max", "min") if dtype.kind == "b" else ("add", "mul", "max", "min")
    return (*names, "and", "or", "xor") if dtype.kind in "biu" else names


def folded(dtype: np.dtype, x: np.ndarray, names: Sequence[str]) -> KernelCase:
    rows = Axis(x.shape[0], "i")
    values: dict[str, Expr] = {}
    for name in names:
        along = Axis(x.shape[1], "k")
        values[name] = fold(name, (along,), (const(1, dtype),), (load(0, dtype, (index(rows), index(along))),))
    return together(f"folds over {x.shape[1]} of {dtype}", (rows,), values, [x], 4 * tolerance(dtype))


def picked(name: str) -> KernelCase:
    """The index of the first of equal ones; NaN wins."""
    x = np.array([[1, 3, 3, 0, 0], [1, np.nan, 5, np.nan, -5], [-0.0, 0.0, 0, 0, 0]], F32)
    rows, along = Axis(3, "i"), Axis(5, "k")
    int32 = np.dtype("int32")
    start = (const(-np.inf if name == "argmax" else np.inf, F32), const(0, int32))
    bodies = (load(0, F32, (index(rows), index(along))), cast(index(along), int32))
    value = fold(name, (along,), start, bodies, 1)
    return stored(f"{name} with NaN", (rows,), (index(rows),), value, [x])


def nested() -> KernelCase:
    """A fold of two axes, whose body needs another fold."""
    x = ramp(2, 3, 4) % 5
    rows, first, second, other = Axis(2, "i"), Axis(3, "j"), Axis(4, "k"), Axis(4, "l")
    largest = fold("max", (other,), (const(-np.inf, F32),), (load(0, F32, (index(rows), index(first), index(other))),))
    body = load(0, F32, (index(rows), index(first), index(second))) - largest
    value = fold("add", (first, second), (const(0, F32),), (body,))
    return stored("a fold in a fold", (rows,), (index(rows),), value, [x], rtol=tolerance(F32))


def stages() -> Iterator[KernelCase]:
    """A softmax by stages: rows of scratch, a fold of what a stage left, and a last stage that reads both."""
    for length in (1, 5, 40):
        rows, first, second, along = Axis(7, "i"), Axis(length, "j"), Axis(length, "l"), Axis(length, "k")
        i = index(rows)
        left = op("exp", load(0, F32, (i, index(first))))
        total = fold("add", (along,), (const(0, F32),), (load(2, F32, (index(along),)),))
        result = load(2, F32, (index(second),)) / total
        both = (
            Stage((first,), (Store(2, (index(first),), left),)),
            Stage((second,), (Store(1, (i, index(second)), result),)),
        )
        operands = (
            Operand((7, length), F32, "in"),
            Operand((7, length), F32, "out"),
            Operand((length,), F32, "local"),
        )
        x = ramp(7, length) % 5
        kernel = Kernel((rows,), both, operands)
        yield KernelCase(f"stages over {length}", kernel, [x, blank(x.shape, F32)], rtol=2 * tolerance(F32))


def every(dtypes: Sequence[np.dtype]) -> Iterator[KernelCase]:
    """All of them."""
    yield from operations(dtypes)
    yield from casts(dtypes)
    yield from constants(dtypes)
    yield from memory(dtypes)
    yield from grids()
    yield from folds(dtypes)
    yield from stages()
