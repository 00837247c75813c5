"""``closure_convert`` and ``custom_gradient``: what functions close over becomes arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom_vjp import custom_vjp
from polyax.control.inner.programs import run
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.trace.flat import check_callable, trace_tree
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_structure, tree_unflatten


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A function of ``fun``'s arguments and of the values that it closes over, and these values.

    Of what it closes over, values of floating-point type that are being traced become arguments: those that may be
    differentiated. Useful for functions with rules of their own that take functions.

    Args:
      example_args: arguments that ``fun`` is traced with.

    >>> import polyax
    >>> def scaled(y):
    ...     converted, consts = closure_convert(lambda x: x * y, 1.0)
    ...     return converted(2.0, *consts)
    >>> polyax.grad(scaled)(3.0).item()
    2.0
    """
    closed, out_tree = trace_tree(fun, example_args)
    in_tree = tree_structure(tuple(example_args))
    hoisted = [_may_be_differentiated(c) for c in closed.consts]
    values = [c for c, h in zip(closed.consts, hoisted, strict=True) if h]
    count = len(values)

    @functools.wraps(fun)
    def converted(*args: Any) -> Any:
        own, given = args[: len(args) - count], iter(args[len(args) - count :])
        leaves, tree = tree_flatten(tuple(own))
        if tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree structure as the "
                f"example arguments that closure_convert was called with. Expected {in_tree}, but got {tree}"
            )
        consts = [next(given) if h else c for c, h in zip(closed.consts, hoisted, strict=True)]
        return tree_unflatten(out_tree, run(ClosedJaxpr(closed.jaxpr, consts), leaves))

    return converted, values


def _may_be_differentiated(x: Any) -> bool:
    return isinstance(x, Tracer) and dtypes.is_inexact(x.dtype)


class _Backward:
    """The program of a user's backward function; its constants are the residuals."""

    def __init__(self) -> None:
        self.closed: ClosedJaxpr | None = None
        self.tree: PyTreeDef | None = None


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a derivative of its own: ``fun`` gives its result and a function from the cotangent of the
    result to the cotangents of the arguments.

    >>> import polyax
    >>> f = custom_gradient(lambda x: (x**2, lambda ct: (10 * ct * x,)))
    >>> polyax.grad(f)(3.0).item()
    30.0
    """
    check_callable(fun)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        backward = _Backward()

        def primal(*xs: Any) -> Any:
            return fun(*xs, **kwargs)[0]

        def forward(*xs: Any) -> tuple[Any, list[Any]]:
            result, rule = fun(*xs, **kwargs)
            leaves, tree = tree_flatten(result)
            cts = tree_unflatten(tree, [aval_of(x).to_tangent_aval() for x in leaves])
            backward.closed, backward.tree = trace_tree(rule, (cts,))
            return result, backward.closed.consts

        def back(residuals: Sequence[Any], ct: Any) -> tuple[Any, ...]:
            assert backward.closed is not None and backward.tree is not None
            outs = run(ClosedJaxpr(backward.closed.jaxpr, residuals), tree_leaves(ct))
            cts = tree_unflatten(backward.tree, outs)
            return cts if isinstance(cts, tuple) else (cts,)

        primal.__name__ = getattr(fun, "__name__", "custom_gradient")
        call = custom_vjp(primal)
        call.defvjp(forward, back)
        return call(*args)

    return wrapped
