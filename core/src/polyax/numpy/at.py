"""``x.at[index]``: copies of an array with some elements replaced or combined with others.

Writes out of bounds are dropped. Static slices are written in place of the old part, all other indices by scatters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from polyax.control.folds.scatter_apply import applied
from polyax.ir import dtypes
from polyax.ir.aval import Typed, aval_of
from polyax.ir.config import config
from polyax.lax import lenient as lax
from polyax.meshes.resharding import placed_as, retyped, with_out_sharding
from polyax.numpy import slices
from polyax.numpy.arrays import asarray
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.index_parse import NewAxis, Point, Span, parse_index
from polyax.numpy.indexing import GatherPlan, clamped, getitem, is_outside, is_static, plan_gather
from polyax.numpy.promotion import convert, holds, in_range, is_arraylike, promote_dtypes, result_dtype, unwrap
from polyax.numpy.types import ComplexWarning
from polyax.numpy.ufuncs import maximum, minimum, power, true_divide
from polyax.runtime.contract.tracebacks import warn_user


class AtIndexer:
    """The ``at`` property: ``x.at[index]``."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> AtReference:
        return AtReference(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class AtReference:
    """Elements of an array, to be read or to be changed in a copy.

    All methods accept ``indices_are_sorted``, ``unique_indices`` (promises that allow faster code), ``mode`` ('drop' by
    default for writes, 'clip', 'fill', 'promise_in_bounds') and ``wrap_negative_indices``.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, fill_value: Any = None, out_sharding: Any = None, **options: Any) -> Any:
        """The elements; out of bounds clamped, or ``fill_value`` in mode 'fill'."""
        if out_sharding is not None:
            return placed_as(out_sharding, getitem, self.array, self.index, fill_value=fill_value, **options)
        return getitem(self.array, self.index, fill_value=fill_value, **options)

    def set(self, values: Any, **options: Any) -> Any:
        """A copy with the elements replaced by ``values``, which broadcast."""
        return _update(self.array, self.index, values, lax.scatter, None, **options)

    def add(self, values: Any, **options: Any) -> Any:
        """A copy with ``values`` added; an index that occurs twice is added to twice."""
        return _update(self.array, self.index, values, lax.scatter_add, lax.add, **options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """A copy with ``values`` subtracted."""
        return _update(self.array, self.index, values, lax.scatter_sub, lax.sub, **options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """A copy with the elements multiplied by ``values``."""
        return _update(self.array, self.index, values, lax.scatter_mul, lax.mul, **options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """A copy with the elements divided by ``values``."""
        return true_divide(self.array, self._factors(values, options))

    def power(self, values: Any, **options: Any) -> Any:
        """A copy with the elements raised to ``values``."""
        return power(self.array, self._factors(values, options))

    def _factors(self, values: Any, options: dict[str, Any]) -> Any:
        return AtReference(lax.full_like(self.array, 1), self.index).multiply(values, **options)

    def min(self, values: Any, **options: Any) -> Any:
        """A copy with the smaller of element and value."""
        return _update(self.array, self.index, values, lax.scatter_min, minimum, **options)

    def max(self, values: Any, **options: Any) -> Any:
        """A copy with the larger of element and value."""
        return _update(self.array, self.index, values, lax.scatter_max, maximum, **options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Any:
        """A copy with the function ``func`` of scalars applied to the elements; twice where an index occurs twice."""

        def scatter(x: Any, indices: Any, updates: Any, numbers: Any, **flags: Any) -> Any:
            return lax.scatter_apply(x, indices, func, numbers, update_shape=updates.shape, **flags)

        zero = lax.full_like(self.array, 0, shape=())
        return _update(self.array, self.index, zero, scatter, lambda old, _: applied(func, old), **options)


@with_out_sharding
def _update(
    x: Any, index: Any, values: Any, scatter: Callable[..., Any], combine: Callable[[Any, Any], Any] | None, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
    wrap_negative_indices: bool = True, out_sharding: Any = None,
) -> Any:  # fmt: skip
    if slices.has(index):
        inner = functools.partial(_update, scatter=scatter, combine=combine, mode=mode)
        return slices.written(x, index, lambda part, rest: inner(part, rest, values))
    mode = lax.GatherScatterMode.from_any(mode)
    values = as_values(values)
    dtype, weak_type = x.dtype, x.weak_type
    x, values = _common(x, values)
    parsed = parse_index(index, x.shape)
    if wrap_negative_indices and is_static(parsed) and _is_region(parsed.items, x.shape):
        return _as_before(_write_region(x, index, parsed.items, values, combine), dtype, weak_type)
    inner = lax.expand_dims(x, parsed.inserted) if parsed.inserted else x
    plan = plan_gather(parsed, inner.shape, wrap_negative_indices)
    if 0 in plan.shape:
        return _as_before(x, dtype, weak_type)
    result = scatter(
        inner, plan.indices, _as_updates(values, plan), _scatter_numbers(plan.numbers), mode=mode,
        indices_are_sorted=indices_are_sorted or plan.unique, unique_indices=unique_indices or plan.unique,
    )  # fmt: skip
    result = lax.squeeze(result, parsed.inserted) if parsed.inserted else result
    return _as_before(result, dtype, weak_type)


def _as_before(x: Any, dtype: Any, weak_type: bool) -> Any:
    """``x`` in the type of the array that was updated, which may lose imaginary parts."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = lax.real(x)
        warn_user("Casting complex values to real discards the imaginary part", ComplexWarning)
    return convert(x, dtype, weak_type)


def as_values(values: Any) -> Any:
    """What is to be written, which may also be a list.

    Raises:
      ValueError: it is None.
    """
    return unwrap(values) if is_arraylike(values) else asarray(values)


def _common(x: Any, values: Any) -> tuple[Any, Any]:
    """Both in the dtype that they promote to; a value that ``x`` can't hold is a deprecated thing to write.

    Raises:
      OverflowError: it is an integer of Python that is too large for the type of integers, and for ``x``.
    """
    values = values if type(values) is int and holds(x.dtype, values) else in_range(values)
    dtype = result_dtype(x, values)[0]
    if dtype != x.dtype:
        warn_user(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={dtype} to dtype={x.dtype} "
            "with "
            f"jax_numpy_dtype_promotion={config.numpy_dtype_promotion}. In future JAX releases this will result in an "
            "error.",
            FutureWarning,
        )
    if not isinstance(values, Typed) and dtype == x.dtype and not dtypes.is_extended(dtype):
        return x, convert(values, dtype)
    first, second = promote_dtypes(x, values)
    return first, convert(second, dtype)


# --- regions ----------------------------------------------------------------------------------------------------------


def _is_region(items: Any, shape: tuple[int, ...]) -> bool:
    """Unit steps and points in bounds: the elements are one block of the array."""
    return all(
        not is_outside(i, shape) if isinstance(i, Point) else not isinstance(i, Span) or i.step in (1, -1)
        for i in items
    )


def _write_region(x: Any, index: Any, items: Any, values: Any, combine: Callable[[Any, Any], Any] | None) -> Any:
    shape = tuple([1 if isinstance(i, NewAxis) else i.size for i in items if not isinstance(i, Point)])
    if 0 in shape:
        return x
    new = broadcast_to(values, shape)
    new = new if combine is None else broadcast_to(combine(getitem(x, index), new), shape)
    starts, sizes, backwards = [0] * x.ndim, list(x.shape), []
    for item in items:
        if isinstance(item, Point):
            starts[item.axis], sizes[item.axis] = clamped(item.index, x.shape[item.axis]), 1
        elif isinstance(item, Span):
            starts[item.axis], sizes[item.axis] = item.ascending[0], item.size
            backwards += [item.axis] if item.step < 0 else []
    new = lax.reshape(new, sizes)
    new = lax.rev(new, backwards) if backwards else new
    new = _cut_alike(new, x)
    return new if sizes == list(x.shape) else lax.dynamic_update_slice(x, new, starts)


def _cut_alike(new: Any, x: Any) -> Any:
    """What isn't cut yet, as the array that it is written to, where that divides it."""
    told, aval = aval_of(x).told, aval_of(new)
    if told is None or aval.told is not None:
        return new
    parts = [math.prod(told.mesh.shape[a] for a in names) for names in told.cuts(x.ndim)]
    divides = all(n % k == 0 for n, k in zip(aval.shape, parts, strict=True))
    return retyped(new, aval.update(sharding=told)) if divides else new


# --- scatters ---------------------------------------------------------------------------------------------------------


def _as_updates(values: Any, plan: GatherPlan) -> Any:
    """``values`` in the shape that the gather of the same index gives, before new axes and reversal."""
    shape = list(plan.shape)
    for axis in plan.new_axes:
        shape.insert(axis, 1)
    values = broadcast_to(values, tuple(shape))
    values = lax.squeeze(values, plan.new_axes) if plan.new_axes else values
    return lax.rev(values, plan.reversed) if plan.reversed else values


def _scatter_numbers(numbers: Any) -> Any:
    return lax.ScatterDimensionNumbers(numbers.offset_dims, numbers.collapsed_slice_dims, numbers.start_index_map)
