"""Reading elements: ``x[index]``, ``take`` and their kin.

Indices of Python integers and slices become static slices, scalar ones dynamic slices, all others one gather.
Indices out of bounds are clamped unless a mode says otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import Typed, aval_of
from polyax.ir.config import config
from polyax.ir.dims import is_symbolic_dim, max_dim, min_dim
from polyax.ir.errors import InconclusiveDimensionOperation
from polyax.lax import lenient as lax
from polyax.numpy import slices
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.index_parse import Item, NewAxis, ParsedIndex, Point, Span, parse_index
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_arrays,
    in_range,
    refuse_traced,
    shape_of,
    unwrap,
)
from polyax.numpy.shapes import along, ravel
from polyax.trace.recording import recorder
from polyax.trace.tracer import Tracer

__all__ = ["take", "take_along_axis"]

_INT32 = np.dtype("int32")
_LARGEST = 2**31 - 1


def getitem(
    x: Any, index: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
    fill_value: Any = None, wrap_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """``x[index]``."""
    if slices.has(index):
        return slices.read(x, index, functools.partial(getitem, mode=mode, fill_value=fill_value))
    parsed = parse_index(index, x.shape)
    known = _is_inside if mode is None else is_static
    mode = lax.GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)  # what isn't has no derivative
    clamps = mode is not lax.GatherScatterMode.FILL_OR_DROP
    if clamps and wrap_negative_indices and not parsed.inserted:
        traced = (isinstance(x, Tracer) or recorder()) and not _is_symbolic_part(parsed, x.shape)
        if known(parsed, x.shape) and (traced or _is_one_program(parsed, x.shape)):
            return _static_slice(x, parsed.items)
        if _is_dynamic_slice(parsed):
            return _dynamic_slice(x, parsed.items)
    x = lax.expand_dims(x, parsed.inserted) if parsed.inserted else x
    plan = plan_gather(parsed, x.shape, wrap_negative_indices)
    result = _gathered(x, plan, mode, fill_value, indices_are_sorted, unique_indices)
    result = lax.rev(result, plan.reversed) if plan.reversed else result
    return lax.expand_dims(result, plan.new_axes) if plan.new_axes else result


def _gathered(x: Any, plan: GatherPlan, mode: Any, fill_value: Any, is_sorted: bool, unique: bool) -> Any:
    if 0 in plan.shape:
        return lax.full_like(x, 0, shape=plan.shape)
    if plan.indices.shape[-1] == 0 and len(plan.numbers.offset_dims) == len(plan.shape):
        return x
    if fill_value is not None:
        refuse_traced(fill_value, "fill_value argument to indexed get()")
        if shape_of(fill_value) != ():
            raise ValueError(f"fill_value argument to indexed get() must be a scalar, got shape {shape_of(fill_value)}")
        fill_value = np.asarray(fill_value).item()
    return lax.gather(
        x, plan.indices, plan.numbers, plan.slice_sizes, unique_indices=unique or plan.unique,
        indices_are_sorted=is_sorted or plan.unique, mode=mode, fill_value=fill_value,
    )  # fmt: skip


# --- slices -----------------------------------------------------------------------------------------------------------


def is_static(parsed: ParsedIndex, _: tuple[int, ...] = ()) -> bool:
    return not any(isinstance(i, Point) and not isinstance(i.index, int) for i in parsed.items)


def _is_inside(parsed: ParsedIndex, shape: tuple[int, ...]) -> bool:
    """Whether it is static and in bounds. Indices that aren't stay in the program, where checks can find them."""
    outside = [i for i in parsed.items if isinstance(i, Point) and isinstance(i.index, int) and is_outside(i, shape)]
    if outside and config.get("check_static_indices") and not is_symbolic_dim(shape[outside[0].axis]):
        index, axis = outside[0].index, outside[0].axis
        raise IndexError(
            f"index {index} out of bounds for axis {axis} with size {shape[axis]} (normalize_indices=True)"
        )
    return not outside and is_static(parsed)


def is_outside(item: Point, shape: tuple[int, ...]) -> bool:
    """Whether a static position is out of bounds, or may be, if the size is symbolic."""
    try:
        return not -shape[item.axis] <= item.index < shape[item.axis]
    except InconclusiveDimensionOperation:  # it is known when the dimension is
        return True


def _is_symbolic_part(parsed: ParsedIndex, shape: tuple[int, ...]) -> bool:
    """Whether sizes are symbolic, of which all isn't taken: it is told by them alone, whether ends are inside."""
    spans = [i for i in parsed.items if isinstance(i, Span)]
    return any(_is_symbolic(i, shape[i.axis]) and (i.size != shape[i.axis] or i.step != 1) for i in spans)


def _is_symbolic(span: Span, size: int) -> bool:
    return any(map(is_symbolic_dim, (span.start, span.size, span.step, size)))


def clamped(index: int, size: int) -> int:
    """The position that a static index means; out of bounds it is the nearest end."""
    return min_dim(max_dim(_from_start(index, size), 0), size - 1)


def _from_start(index: int, size: int) -> int:
    return index + size if index < 0 else index


def _static_slice(x: Any, items: Sequence[Item]) -> Any:
    starts, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for item in items:
        if isinstance(item, Point):
            starts[item.axis] = clamped(item.index, x.shape[item.axis])
            limits[item.axis] = starts[item.axis] + 1
        elif isinstance(item, Span):
            first, step = item.ascending if item.size else (0, 1)
            starts[item.axis], strides[item.axis] = first, step
            limits[item.axis] = first + (item.size - 1) * step + 1 if item.size else 0
    if any(starts) or limits != list(x.shape) or any(s != 1 for s in strides):
        x = lax.slice(x, starts, limits, None if all(s == 1 for s in strides) else strides)
    return _finished(x, items)


def _finished(x: Any, items: Sequence[Item]) -> Any:
    """Reverses descending spans, drops the axes of points, adds new axes."""
    backwards = [i.axis for i in items if isinstance(i, Span) and i.step < 0]
    points = [i.axis for i in items if isinstance(i, Point)]
    kept = [i for i in items if not isinstance(i, Point)]
    new = [n for n, i in enumerate(kept) if isinstance(i, NewAxis)]
    x = lax.rev(x, backwards) if backwards else x
    x = lax.squeeze(x, points) if points else x
    return lax.expand_dims(x, new) if new else x


def _is_one_program(parsed: ParsedIndex, shape: tuple[int, ...]) -> bool:
    """Whether it doesn't cost a program for each position; or it is to be seen which keys are taken."""
    return not _is_symbolic_part(parsed, shape) and (not _is_cut(parsed, shape) or config.get("debug_key_reuse"))


def _is_cut(parsed: ParsedIndex, shape: tuple[int, ...]) -> bool:
    """Whether a static index picks a part by its position alone. Of an array that is there, such a part is read by a
    dynamic slice: one program serves all positions."""
    if 0 in shape or not _is_dynamic_slice(parsed):
        return False
    return any(isinstance(i, Point) or (isinstance(i, Span) and i.size != shape[i.axis]) for i in parsed.items)


def _is_dynamic_slice(parsed: ParsedIndex) -> bool:
    return all(
        shape_of(i.index) == () if isinstance(i, Point) else isinstance(i, NewAxis) or i.step in (1, -1)
        for i in parsed.items
    )


def _dynamic_slice(x: Any, items: Sequence[Item]) -> Any:
    starts: list[Any] = [0] * x.ndim
    sizes = list(x.shape)
    for item in items:
        if isinstance(item, Point):
            starts[item.axis], sizes[item.axis] = _dynamic_start(item, x.shape), 1
        elif isinstance(item, Span):
            starts[item.axis], sizes[item.axis] = (item.ascending[0] if item.size else 0), item.size
    return _finished(lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False), items)


def _dynamic_start(item: Point, shape: tuple[int, ...]) -> Any:
    if isinstance(item.index, int):
        if not config.enable_x64 and not -_LARGEST - 1 <= item.index <= _LARGEST:
            raise OverflowError(f"Python int {item.index} too large to convert to int32")
        return min_dim(max_dim(_from_start(item.index, shape[item.axis]), -_LARGEST), _LARGEST)
    if shape[item.axis] == 0:
        raise IndexError(f"index is out of bounds for axis {item.axis} with size 0")
    return _positions(item.index, shape[item.axis], wrap=True)


# --- gathers ----------------------------------------------------------------------------------------------------------


class GatherPlan(NamedTuple):
    """A gather, or the scatter that writes the same places, and how its result becomes that of the index."""

    indices: Any
    numbers: Any
    slice_sizes: tuple[int, ...]
    shape: tuple[int, ...]  # of the gather's result
    reversed: tuple[int, ...]
    new_axes: tuple[int, ...]
    unique: bool


class _Planner:
    """Goes through the items and collects index columns, batch dimensions and offset dimensions."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.columns: list[tuple[int, Any, int]] = []  # axis, positions, the batch dimension that they begin at
        self.batch: list[int] = []
        self.result: list[int] = []
        self.offset: list[int] = []
        self.collapsed: list[int] = []
        self.reversed: list[int] = []
        self.new_axes: list[int] = []
        self.sizes = list(shape)

    def points(self, points: list[tuple[int, Any]], shape: tuple[int, ...]) -> None:
        """All points together: they broadcast to one block of dimensions."""
        for axis, positions in points:
            self.columns.append((axis, positions, len(self.batch) + len(shape) - len(shape_of(positions))))
            self._collapse(axis)
        self.batch.extend(shape)
        self.result.extend(shape)

    def span(self, span: Span) -> None:
        if _is_symbolic(span, self.sizes[span.axis]) and span.step != 1:
            self._strided(span)
            return
        first, step = span.ascending if span.size else (0, 1)
        if span.step < 0:
            self.reversed.append(len(self.result))
        if step == 1:
            if span.size != self.sizes[span.axis]:
                self.columns.append((span.axis, _as_int32(first), len(self.batch)))
            self.offset.append(len(self.result))
            self.sizes[span.axis] = span.size
        else:
            self._places(span, np.arange(span.size, dtype=np.int32) * np.int32(step) + np.int32(first))
        self.result.append(span.size)

    def _strided(self, span: Span) -> None:
        """Its places as a column: none, if a symbolic size is 0."""
        steps = lax.mul(lax.iota(np.int32, span.size), _as_int32(span.step))
        self._places(span, lax.add(steps, _as_int32(span.start)))
        self.result.append(span.size)

    def _places(self, span: Span, positions: Any) -> None:
        self.columns.append((span.axis, positions, len(self.batch)))
        self.batch.append(span.size)
        self._collapse(span.axis)

    def new_axis(self) -> None:
        self.new_axes.append(len(self.result) + len(self.new_axes))

    def _collapse(self, axis: int) -> None:
        self.collapsed.append(axis)
        self.sizes[axis] = 1


def _as_int32(size: Any) -> Any:
    return convert(unwrap(size), _INT32) if is_symbolic_dim(size) else np.int32(size)


def plan_gather(parsed: ParsedIndex, shape: tuple[int, ...], wrap: bool) -> GatherPlan:
    """The gather that reads ``parsed`` from an array of ``shape``."""
    points = [(i.axis, _positions(i.index, shape[i.axis], wrap)) for i in parsed.items if isinstance(i, Point)]
    block = lax.broadcast_shapes(*(shape_of(p) for _, p in points)) if points else ()
    planner = _Planner(shape)
    waiting = bool(points)
    if waiting and not parsed.adjacent:
        planner.points(points, block)
        waiting = False
    for item in parsed.items:
        if isinstance(item, Span):
            planner.span(item)
        elif isinstance(item, NewAxis):
            planner.new_axis()
        elif waiting:
            planner.points(points, block)
            waiting = False
    numbers = lax.GatherDimensionNumbers(
        tuple(planner.offset), tuple(sorted(planner.collapsed)), tuple(axis for axis, _, _ in planner.columns)
    )
    return GatherPlan(
        _index_vectors(planner.columns, tuple(planner.batch)), numbers, tuple(planner.sizes), tuple(planner.result),
        tuple(planner.reversed), tuple(planner.new_axes), block == (),
    )  # fmt: skip


def _positions(index: Any, size: int, wrap: bool) -> Any:
    """int32 positions; negative ones count from the end if ``wrap``."""
    if not isinstance(index, Typed):
        index = np.asarray(index)
        index = index.astype(np.int64) if index.dtype.itemsize < 8 else index  # which holds all sizes
        from_end = wrap and bool((index < 0).any())
        if not (from_end and is_symbolic_dim(size)):
            wrapped = np.where(index < 0, index + size, index) if from_end else index
            return np.clip(wrapped, -(2**31), 2**31 - 1).astype(np.int32)
    if dtypes.is_unsigned(index.dtype) or not wrap:
        return convert(index, _INT32)
    index = convert(index, _INT32)
    return lax.select(lax.lt(index, 0), lax.add(index, size), index)


def _index_vectors(columns: list[tuple[int, Any, int]], batch: tuple[int, ...]) -> Any:
    """The columns side by side along a new last dimension."""
    if not columns:
        return np.zeros((*batch, 0), np.int32)
    spread = [_spread(positions, at, batch) for _, positions, at in columns]
    if all(isinstance(s, np.ndarray) for s in spread):
        return np.concatenate(spread, -1)
    return lax.concatenate(spread, len(batch)) if len(spread) > 1 else spread[0]


def _spread(positions: Any, at: int, batch: tuple[int, ...]) -> Any:
    shape = (*batch, 1)
    have = shape_of(positions)
    aligned = (1,) * at + have + (1,) * (len(shape) - at - len(have))
    if not isinstance(positions, Typed):
        return np.broadcast_to(np.reshape(positions, aligned), shape)
    return broadcast_to(lax.reshape(positions, aligned), shape)


# --- take -------------------------------------------------------------------------------------------------------------


def take(
    a: Any, indices: Any, axis: Any = None, out: None = None, mode: str | None = None, unique_indices: bool = False,
    indices_are_sorted: bool = False, fill_value: Any = None,
) -> Any:  # fmt: skip
    """The elements (slices along ``axis``) of ``a`` at ``indices``; of the flattened array if ``axis`` is None.

    Args:
      mode: out of bounds 'fill' (the default: NaN, or ``fill_value``), 'clip' or 'wrap'.
      indices: integers; booleans are 0 and 1.

    Raises:
      IndexError: the axis has no elements, and there are indices.
      ValueError: the indices are of another type.

    >>> import polyax.numpy as jnp
    >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0])).tolist()
    [30, 10]
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.take is not supported.")
    check_arraylike("take", a, indices)
    a, indices = as_array(unwrap(a)), in_range(unwrap(indices))
    kind = aval_of(indices).dtype
    if not dtypes.is_integer(kind) and kind not in dtypes.BOOL:
        raise ValueError(f"indices must have an integer type, got {kind}")
    indices = convert(indices, np.dtype("int32")) if kind in dtypes.BOOL else indices
    a, axis = along(a, axis)
    if a.shape[axis] == 0 and 0 not in shape_of(indices):
        raise IndexError(f"Cannot do a non-empty jnp.take() from an empty axis: axis {axis} of shape {a.shape}.")
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    if mode == "wrap":
        indices, mode = wrapped(indices, a.shape[axis]), "clip"
    index = (slice(None),) * axis + (indices if isinstance(indices, Typed) else np.asarray(indices),)
    wrap = mode != "clip"
    return getitem(
        a, index, mode=mode or "fill", fill_value=fill_value, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted, wrap_negative_indices=wrap,
    )  # fmt: skip


def wrapped(indices: Any, size: int) -> Any:
    if not isinstance(indices, Typed):
        return np.mod(indices, size)
    return lax.rem(lax.add(lax.rem(indices, size), size), size)


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: Any = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: Any = None,
) -> Any:
    """For each position the element of ``arr`` at ``indices`` along ``axis``, as ``argsort`` and ``argmax`` give them.

    Args:
      mode: of indices out of bounds, as of ``Array.at``; or 'one_hot', which selects by a sum in place of a gather,
        zero out of bounds.

    Raises:
      TypeError: the indices are not integers.

    >>> import polyax.numpy as jnp
    >>> x = jnp.array([[3, 1], [2, 9]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1).tolist()
    [[1, 3], [2, 9]]
    """
    arr, indices = ensure_arrays("take_along_axis", arr, indices)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {indices.dtype}")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {indices.shape}")
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {indices.ndim} vs. {arr.ndim}")
    axis = canonicalize_axis(axis, arr.ndim)
    if mode == "one_hot":
        return _summed_along(arr, indices, axis, wrap_negative_indices is not False)
    plan = _plan_along(arr.shape, indices, axis, wrap_negative_indices is not False)
    return _gathered(arr, plan, lax.GatherScatterMode.from_any(mode or "fill"), fill_value, False, False)


def _summed_along(arr: Any, indices: Any, axis: int, wrap: bool) -> Any:
    """Of all elements along the axis those whose position is the index, the others as zeros."""
    positions = lax.expand_dims(_positions(indices, arr.shape[axis], wrap), (axis + 1,))
    elements = lax.expand_dims(arr, (axis,))
    shape = lax.broadcast_shapes(positions.shape, elements.shape)
    elements, positions = (lax.broadcast_in_dim(x, shape, range(len(shape))) for x in (elements, positions))
    chosen = lax.eq(positions, lax.broadcasted_iota(positions.dtype, shape, axis + 1))
    total = lax.reduce_or if arr.dtype in dtypes.BOOL else lax.reduce_sum
    return total(lax.select(chosen, elements, lax.full_like(elements, 0)), (axis + 1,))


def _plan_along(shape: tuple[int, ...], indices: Any, axis: int, wrap: bool) -> GatherPlan:
    """Dimensions that the array and the indices share go together; of one that is 1 in the indices all is taken."""
    given = shape_of(indices)
    others = [i for i in range(len(shape)) if i != axis]
    lax.broadcast_shapes(*(tuple([s[i] for i in others]) for s in (shape, given)))
    taken = [i for i in others if given[i] == 1 != shape[i]]
    shared = [i for i in others if given[i] == shape[i] != 1]
    left = [i for i in range(len(shape)) if i not in taken]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(taken),
        collapsed_slice_dims=tuple([i for i in left if i not in shared]),
        start_index_map=(axis,),
        operand_batching_dims=tuple(shared),
        start_indices_batching_dims=tuple([left.index(i) for i in shared]),
    )
    rows = lax.reshape(_positions(indices, shape[axis], wrap), (*(given[i] for i in left), 1))
    sizes = tuple([n if i in taken else 1 for i, n in enumerate(shape)])
    found = tuple([shape[i] if i in taken else given[i] for i in range(len(shape))])
    return GatherPlan(rows, numbers, sizes, found, (), (), False)


def along_axis(shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Index arrays that run over all positions, with ``indices`` for ``axis``."""

    def positions(i: int) -> Any:
        return np.arange(shape[i], dtype=np.int32).reshape([-1 if j == i else 1 for j in range(len(shape))])

    return tuple(indices if i == axis else positions(i) for i in range(len(shape)))
