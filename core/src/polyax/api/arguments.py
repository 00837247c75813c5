"""Argument handling that the transformations share: chosen arguments, their types, checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.ir.primitive import ambient
from polyax.ir.refs import AbstractRef
from polyax.meshes.explicit import sharding_of, typed
from polyax.ops.basis import convert
from polyax.trace.calls import UserCall
from polyax.trace.flat import name_of


def wraps(fun: Callable[..., Any], docs: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Like ``functools.wraps`` for functions of another meaning: the name stays, ``docs`` say what changed before what
    the function itself says."""

    def decorate(wrapper: Callable[..., Any]) -> Callable[..., Any]:
        named = isinstance(getattr(fun, "__name__", ""), str)  # objects that can be called may have anything there
        assigned = functools.WRAPPER_ASSIGNMENTS if named else ("__module__", "__doc__")
        functools.update_wrapper(wrapper, fun, assigned, updated=())
        own = getattr(fun, "__doc__", None)
        wrapper.__doc__ = docs.format(fun=name_of(fun)) + (f"\n\nOriginal documentation:\n\n{own}" if own else "")
        return wrapper

    return decorate


def as_indices(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Positions as non-negative numbers; ValueError when out of range."""
    out = []
    for i in (argnums,) if isinstance(argnums, int) else tuple(argnums):
        if not -count <= i < count:
            raise ValueError(f"argnums {i} is out of range for a call with {count} positional arguments")
        out.append(i % count)
    return tuple(out)


def shaped(x: Any) -> Any:
    """The aval of an array, or of anything with a shape and a dtype."""
    if not is_array_like(x) and hasattr(x, "shape") and hasattr(x, "dtype"):
        aval = ShapedArray(tuple(x.shape), dtypes.canonicalize(x.dtype), getattr(x, "weak_type", False))
        if (kind := getattr(x, "manual_axis_type", None)) is not None:
            aval = aval.update(manual_axis_type=kind)
        aval = typed(aval, sharding_of(x))
        return AbstractRef(aval) if getattr(x, "is_ref", False) else aval
    return aval_of(x)


def shapes(call: UserCall) -> list[ShapedArray]:
    """The types of a call's leaves, of which some may have no more than a shape and a dtype."""
    return [shaped(x) if hasattr(x, "shape") else call.aval(x) for x in call.leaves]


def as_array(x: Any) -> Any:
    """``x``, as an array if it is a scalar that a function passed through; programs keep those in place."""
    if ambient.trace is not None or not (type(x) in dtypes.PYTHON_SCALARS or isinstance(x, np.generic)):
        return x
    aval = aval_of(x)
    return convert(x, aval.dtype, aval.weak_type)


def check_int_or_tuple(name: str, value: Any) -> None:
    """Raises unless ``value`` is a position or a sequence of them."""
    for i in value if isinstance(value, (tuple, list)) else (value,):
        if not hasattr(i, "__index__"):
            raise TypeError(f"{name} must be an integer or a sequence of integers, got {value!r}")


def restrict(fun: Callable[..., Any], argnums: int | Sequence[int], args: tuple[Any, ...], kwargs: Any) -> Any:
    """``fun`` of the chosen arguments alone, and these."""
    indices = as_indices(argnums, len(args))

    def f(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(indices, xs, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return f, tuple(args[i] for i in indices)
