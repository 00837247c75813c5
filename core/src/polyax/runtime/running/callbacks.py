"""Callbacks as users ask for them: their functions get arrays, as they would outside of programs.

What runs programs hands out what lies in the host's memory; here that becomes arrays again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.control import callback as bound
from polyax.runtime.arrays.placing import from_host
from polyax.trace.flat import check_callable
from polyax.trace.tree import tree_map


def on_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, which is given arrays in place of NumPy's."""
    check_callable(fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*tree_map(_array, args), **tree_map(_array, kwargs))

    return call


def _array(x: Any) -> Any:
    return from_host(x) if isinstance(x, (np.ndarray, np.generic)) else x


@functools.wraps(bound.pure_callback)
def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    return bound.pure_callback(on_arrays(callback), result_shape_dtypes, *args, **kwargs)


@functools.wraps(bound.io_callback)
def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    return bound.io_callback(on_arrays(callback), result_shape_dtypes, *args, **kwargs)


@functools.wraps(bound.debug_callback)
def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    how = {"ordered": ordered, "partitioned": partitioned}
    if callback is None:
        return lambda fun: functools.partial(debug_callback, fun, **how)
    if not callable(callback):
        raise TypeError(
            f"first argument to jax.debug.callback must be callable, but got an object of type {type(callback)}"
        )
    return bound.debug_callback(
        on_arrays(callback), *tree_map(_as_operand, args), **how, **tree_map(_as_operand, kwargs)
    )


def _as_operand(x: Any) -> Any:
    """Of Python's numbers arrays: else they would be handed on as they are."""
    return from_host(x) if isinstance(x, (bool, int, float, complex)) else x
