"""What the special functions share: promotion, accuracy of at least float32, derivatives by one formula an argument."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.calls.custom import SymbolicZero
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import as_array, promote_args_inexact
from polyax.trace.tree import tree_map

Slope = Callable[..., Any]
"""``(result, *args)``: the derivative by one argument."""


def special(*slopes: Slope | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: an elementwise function of real arguments, which are promoted to one floating dtype and broadcast.

    Args:
      slopes: the derivative by each argument, or None where there is no formula; without any, the function is
        differentiated through its steps.
    """

    def decorate(fun: Callable[..., Any]) -> Callable[..., Any]:
        program = fused(_differentiable(fun, slopes) if slopes else fun)
        signature = inspect.signature(fun)

        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).args if kwargs else args
            xs, dtype = _wide(fun.__name__, given)
            return tree_map(lambda y: y if y.dtype == dtype else y.astype(dtype), program(*xs))

        return call

    return decorate


def real_arguments(name: str, *args: Any) -> list[Any]:
    """Arguments of one floating dtype.

    Raises:
      ValueError: one is complex.
    """
    xs = promote_args_inexact(name, *args)
    dtype = aval_of(xs[0]).dtype
    if dtypes.is_complex(dtype):
        raise ValueError(f"{name} does not support complex-valued inputs, got dtype {dtype}.")
    return list(xs)


def _wide(name: str, args: Sequence[Any]) -> tuple[list[Any], Any]:
    """Arguments of one dtype and shape, of at least float32, and the dtype that the result should have."""
    xs = [jnp.asarray(x) for x in real_arguments(name, *args)]
    dtype = xs[0].dtype
    wide = dtypes.wider(dtype, np.float32)
    xs = xs if wide == dtype else [x.astype(wide) for x in xs]
    return jnp.broadcast_arrays(*xs) if len(xs) > 1 else xs, dtype


def _differentiable(fun: Callable[..., Any], slopes: Sequence[Slope | None]) -> Callable[..., Any]:
    rule = custom_jvp(fun)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        primals = [as_array(x) for x in primals]
        out = rule(*primals)
        total = tree_map(jnp.zeros_like, out)
        for i, (slope, t) in enumerate(zip(slopes, tangents, strict=True)):
            if isinstance(t, SymbolicZero):
                continue
            if slope is None:
                raise NotImplementedError(f"the derivative of {fun.__name__} by argument {i} is not known here")
            total = tree_map(lambda a, s, t=t: a + s * t, total, slope(out, *primals))
        return out, total

    rule.defjvp(jvp, symbolic_zeros=True)
    return rule


def real_floats(x: Any) -> Any:
    """``x`` as an array that isn't weakly typed.

    Raises:
      TypeError: it isn't floating-point.
    """
    x = jnp.asarray(x)
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"x.dtype={x.dtype} is not supported.")
    return lax.convert_element_type(x, x.dtype)


def horner(coefficients: Sequence[float], x: Any) -> Any:
    """A polynomial at ``x``, from the coefficient of the highest power on."""
    return functools.reduce(lambda value, c: value * x + c, coefficients[1:], coefficients[0])
