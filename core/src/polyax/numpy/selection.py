"""Choosing elements by conditions, and sorting and searching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.meshes.ambiguity import check_choice
from polyax.meshes.explicit import seen
from polyax.numpy.broadcast import as_mask, broadcast_to, choose
from polyax.numpy.fused import fused
from polyax.numpy.indexing import take
from polyax.numpy.logic import greater_equal, less
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_array,
    ensure_arrays,
    of_one_dtype,
    promote_dtypes,
    refuse_traced,
    unwrap,
)
from polyax.numpy.reductions import refuse_out
from polyax.numpy.shapes import along, ravel
from polyax.numpy.ufuncs import maximum, minimum
from polyax.runtime.arrays.placing import on_mesh_in_force

__all__ = [
    "argmax", "argmin", "argsort", "argwhere", "clip", "digitize", "flatnonzero", "lexsort", "nan_to_num", "nonzero",
    "piecewise", "searchsorted", "select", "sort", "where",
]  # fmt: skip


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """``x`` where the condition holds, else ``y``; all three broadcast. With one argument: ``nonzero``.

    Raises:
      TypeError: only one of ``x`` and ``y`` is given.

    >>> import polyax.numpy as jnp
    >>> jnp.where(jnp.array([True, False]), 1.0, jnp.zeros(2)).tolist()
    [1.0, 0.0]
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    if seen.any:
        _check_alike(condition, x, y)
    return as_array(_chosen(condition, x, y))


def _check_alike(condition: Any, *cases: Any) -> None:
    """Raises a ShardingTypeError unless operands are cut alike, where none has to be broadcast."""
    which, *others = [aval_of(unwrap(x)) for x in (condition, *cases)]
    if others[0].shape == others[1].shape and which.shape in ((), others[0].shape):
        check_choice(which, others)


_chosen = fused(choose)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds, else ``default``.

    Raises:
      ValueError: the lists have different lengths or are empty.

    >>> import polyax.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [-x, 10 * x], default=7).tolist()
    [0, 7, 7, 30]
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    *choices, result = promote_dtypes(*map(unwrap, choicelist), unwrap(default))
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = choose(as_mask(as_array(unwrap(condition))), choice, result)
    return as_array(result)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """For each element the function of the last condition that holds; one more function is the default, else zero.

    Functions may be constants; ``args`` and ``kw`` are passed to them.

    >>> import polyax.numpy as jnp
    >>> x = jnp.array([-2.0, 3.0])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: 10 * x]).tolist()
    [2.0, 30.0]
    """
    x = ensure_array("piecewise", x)
    conditions = [as_mask(as_array(unwrap(c))) for c in condlist]
    default = funclist[len(conditions)] if len(funclist) == len(conditions) + 1 else 0
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            f"expected; got {len(funclist)}"
        )
    parts = (default, *funclist[: len(conditions)])
    constants = {i: part for i, part in enumerate(parts) if not callable(part)}
    functions = frozenset((i, part) for i, part in enumerate(parts) if callable(part))
    return _piecewise(x, conditions, constants, functions, *args, **kw)


@fused(static_argnames=("functions",))
def _piecewise(x: Any, conditions: Any, constants: Any, functions: Any, *args: Any, **kw: Any) -> Any:
    """Traced once for the same functions, however often it is called eagerly."""
    values = constants | {i: function(x, *args, **kw) for i, function in functions}
    pieces = [broadcast_to(convert(unwrap(values[i]), x.dtype), x.shape) for i in range(len(values))]
    result = pieces[0]
    for condition, piece in zip(conditions, pieces[1:], strict=True):
        result = choose(condition, piece, result)
    return result


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """``arr`` with elements below ``min`` raised to it and those above ``max`` lowered to it.

    Raises:
      ValueError: complex arguments, or no array.

    >>> import polyax.numpy as jnp
    >>> jnp.clip(jnp.array([-1, 2, 9]), 0, 5).tolist()
    [0, 2, 5]
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", *(v for v in (arr, min, max) if v is not None))
    if any(dtypes.is_complex(aval_of(unwrap(t)).dtype) for t in (arr, min, max) if t is not None):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. Complex values have no "
            "ordering and cannot be clipped. Please convert to a real value or array by taking the real or imaginary "
            "components via jax.numpy.real/imag respectively."
        )
    result = unwrap(arr)
    result = result if min is None else maximum(min, result)
    result = result if max is None else minimum(max, result)
    return as_array(result)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and infinities replaced: by zero and by the largest and smallest finite numbers unless given.

    >>> import polyax.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan])).tolist()
    [1.0, 0.0]
    """
    x = ensure_array("nan_to_num", x)
    if x.dtype in dtypes.COMPLEX:
        return lax.complex(*(nan_to_num(part(x), copy, nan, posinf, neginf) for part in (lax.real, lax.imag)))
    if not dtypes.is_inexact(x.dtype):
        return x
    info = dtypes.finfo(x.dtype)
    x = choose(lax.ne(x, x), convert(unwrap(nan), x.dtype), x)
    x = choose(lax.eq(x, np.inf), convert(info.max if posinf is None else unwrap(posinf), x.dtype), x)
    return choose(lax.eq(x, -np.inf), convert(info.min if neginf is None else unwrap(neginf), x.dtype), x)


# --- positions --------------------------------------------------------------------------------------------------------


def _arg_extremum(name: str, op: Callable[..., Any], a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    refuse_out(name, out)
    a = ensure_array(name, a)
    refuse_traced(axis, f"axis argument to jnp.{name}().")
    if a.dtype in dtypes.COMPLEX:
        raise TypeError(f"{name} does not support complex numbers, got {a.aval.str_short()}")
    rank = a.ndim
    a, axis = along(a, axis)
    if a.shape[axis] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if a.dtype in dtypes.BOOL:
        a = convert(a, np.dtype("int32"))
    result = op(a, axis, dtypes.default_int())
    if not keepdims:
        return result
    return lax.expand_dims(result, (axis,) if result.ndim == rank - 1 and result.ndim else tuple(range(rank)))


def argmax(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The position of the (first) largest element along ``axis``, or flattened; NaN counts as largest.

    >>> import polyax.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 9], [7, 3]]), axis=1).tolist()
    [1, 0]
    """
    return _arg_extremum("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The position of the (first) smallest element along ``axis``, or flattened; NaN counts as smallest.

    >>> import polyax.numpy as jnp
    >>> jnp.argmin(jnp.array([4, 1, 3])).item()
    1
    """
    return _arg_extremum("argmin", lax.argmin, a, axis, out, keepdims)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The positions of the nonzero elements, one array for each dimension.

    Args:
      size: length of the results, needed inside transformations; the rest is ``fill_value`` (0 by default).

    Raises:
      ConcretizationTypeError: ``a`` is traced and ``size`` is not given.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.nonzero(jnp.array([0, 3, 0, 5]), size=2)]
    [[1, 3]]
    """
    a = ensure_array("nonzero", a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None:
        refuse_traced(
            a,
            "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero within JAX "
            "transformations.",
        )
        return tuple(on_mesh_in_force(as_array(p.astype(dtypes.default_int()))) for p in np.nonzero(np.asarray(a)))
    if not a.size:
        return (lax.full((size,), 0, dtypes.default_int()),) * a.ndim  # as JAX does it, without regard to fill_value
    return _positions_of_true(ravel(as_mask(a)), a.shape, size, _fills(fill_value, a.ndim))


def _fills(fill_value: Any, ndim: int) -> list[Any]:
    if fill_value is None:
        return [0] * ndim
    return list(fill_value) if isinstance(fill_value, (tuple, list)) else [fill_value] * ndim


def _positions_of_true(mask: Any, shape: tuple[int, ...], size: int, fills: list[Any]) -> tuple[Any, ...]:
    """The place of a true element in the result is the number of true ones before it; the others are dropped."""
    count = convert(mask, np.dtype("int32"))
    place = lax.sub(lax.cumsum(count, 0), 1)
    place = lax.select(mask, place, lax.full_like(place, size))
    order = lax.iota(np.int32, mask.size)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    flat = lax.scatter(lax.full((size,), 0, np.int32), lax.expand_dims(place, (1,)), order, numbers, mode="drop")
    found = lax.lt(lax.iota(np.int32, size), lax.reduce_sum(count, (0,)))
    results, stride = [], 1
    for n, fill in zip(reversed(shape), reversed(fills), strict=True):
        position = lax.rem(lax.div(flat, stride), max(n, 1))
        results.append(choose(found, *(convert(x, dtypes.default_int()) for x in (position, fill))))
        stride *= max(n, 1)
    return tuple(reversed(results))


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the nonzero elements of the flattened array."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the nonzero elements as rows.

    >>> import polyax.numpy as jnp
    >>> jnp.argwhere(jnp.array([[0, 1], [1, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    a = ensure_array("argwhere", a)
    if a.ndim == 0:
        return lax.full((int(bool(a)) if size is None else size, 0), 0, dtypes.default_int())
    parts = nonzero(a, size=size, fill_value=fill_value)
    return lax.concatenate([lax.expand_dims(p, (1,)) for p in parts], 1)


# --- order ------------------------------------------------------------------------------------------------------------


def _refuse_order(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


def sort(
    a: Any, axis: Any = -1, *, kind: None = None, order: None = None, stable: bool = True, descending: bool = False
) -> Any:
    """``a`` sorted along ``axis``, or flattened if it is None; NaN comes last.

    >>> import polyax.numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    _refuse_order("sort", kind, order)
    a = ensure_array("sort", a)
    a, axis = along(a, axis)
    result = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(result, (axis,)) if descending else result


def argsort(
    a: Any,
    axis: Any = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """The positions, of ``dtype``, that sort ``a`` along ``axis``; equal elements keep their order.

    >>> import polyax.numpy as jnp
    >>> jnp.argsort(jnp.array([30, 10, 20])).tolist()
    [1, 2, 0]
    """
    _refuse_order("argsort", kind, order)
    a = ensure_array("argsort", a)
    a, axis = along(a, axis)
    position = lax.broadcasted_iota(canonical_dtype(dtype, np.int64), a.shape, axis)
    if not descending:
        return lax.sort((a, position), dimension=axis, is_stable=stable, num_keys=1)[1]
    backwards = lax.sort(
        (lax.rev(a, (axis,)), lax.rev(position, (axis,))), dimension=axis, is_stable=stable, num_keys=1
    )[1]
    return lax.rev(backwards, (axis,))


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The positions that sort by the last key, then by the one before it, and so on.

    >>> import polyax.numpy as jnp
    >>> jnp.lexsort((jnp.array([2, 1, 3]), jnp.array([0, 0, -1]))).tolist()
    [2, 1, 0]
    """
    arrays = [ensure_array("lexsort", k) for k in keys]
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    if arrays[0].ndim == 0:
        return as_array(dtypes.default_int().type(0))
    axis = canonicalize_axis(axis, arrays[0].ndim)
    position = lax.broadcasted_iota(dtypes.default_int(), arrays[0].shape, axis)
    return lax.sort((*arrays[::-1], position), dimension=axis, num_keys=len(arrays))[-1]


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Any:
    """Where to insert the elements of ``v`` into sorted ``a``: before equal elements if ``side`` is 'left'.

    Raises:
      ValueError: an unknown side or method, or ``a`` is not one-dimensional.

    >>> import polyax.numpy as jnp
    >>> jnp.searchsorted(jnp.array([10, 20, 30]), jnp.array([5, 20, 35])).tolist()
    [0, 1, 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument {side=}, expected 'left' or 'right'")
    if method not in (known := ["compare_all", "scan", "scan_unrolled", "sort"]):
        raise ValueError(f"invalid argument {method=}, expected one of {known}")
    a, v = of_one_dtype("searchsorted", a, v)
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        a = take(a, sorter, mode="clip")
    return _insertion_points(a, v, side)


def _insertion_points(a: Any, v: Any, side: str) -> Any:
    """Bisection by powers of two, the largest first, each of which is taken if that much of ``a`` belongs before ``v``:
    as many unrolled steps as the length of ``a`` has bits. NaN is larger than everything."""
    n = a.shape[0]
    low = lax.full(v.shape, 0, np.int32)
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    for step in (1 << bit for bit in reversed(range(int(n).bit_length()))):
        last = lax.add(low, step - 1)
        element = lax.gather(a, lax.expand_dims(last, (v.ndim,)), numbers, (1,), mode="clip")
        before = _precedes(element, v) if side == "left" else lax.bitwise_not(_precedes(v, element))
        low = lax.select(lax.bitwise_and(lax.lt(last, n), before), lax.add(low, step), low)
    return low


def _precedes(x: Any, y: Any) -> Any:
    """``x < y`` in the order of sorting."""
    return lax.bitwise_or(less(x, y), lax.bitwise_and(lax.eq(x, x), lax.ne(y, y)))


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """The bin that each element of ``x`` falls into; ``bins`` are sorted either way.

    >>> import polyax.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([1.0, 2.0])).tolist()
    [0, 2]
    """
    x, bins = ensure_arrays("digitize", x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins}")
    if bins.shape[0] == 0:
        return lax.full(x.shape, 0, np.int32)
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side)
    falling = lax.sub(bins.shape[0], searchsorted(lax.rev(bins, (0,)), x, side))
    first, last = (lax.index_in_dim(bins, i, 0, keepdims=False) for i in (0, -1))
    return choose(greater_equal(last, first), rising, falling)
