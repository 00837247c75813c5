"""Gradients of scalar functions: ``grad value_and_grad``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from polyax.api.arguments import check_int_or_tuple, restrict, wraps
from polyax.api.vjp import vjp_tree
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.refs import is_ref, met
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import check_arrays, check_callable
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.tree import tree_flatten, tree_leaves


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a scalar-valued function, by reverse mode.

    Args:
      fun: a function whose result is a scalar of a floating-point type (complex if ``holomorphic``).
      argnums: positions of the arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of which only the first is differentiated.
      holomorphic: whether ``fun`` is promised to be holomorphic.
      allow_int: whether integer inputs are allowed; their gradients are of type ``float0``.
      reduce_axes: not supported; must be empty.

    Returns:
      A function with the arguments of ``fun`` that gives the gradient, shaped like the argument (a tuple for several
      ``argnums``), or a pair of it and the auxiliary output.

    Raises:
      TypeError: the output is not a real scalar, or an input is not a float.

    >>> grad(lambda x: x ** 3)(2.0).item()
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    docs = "Gradient of {fun} with respect to positional argument(s) " + str(argnums) + "."

    @wraps(fun, docs)
    @api_boundary
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return grad_f


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Like ``grad``, giving ``(value, gradient)``, or ``((value, aux), gradient)`` with ``has_aux``.

    >>> value, g = value_and_grad(lambda x: x ** 2)(3.0)
    >>> value.item() if hasattr(value, 'item') else value, g.item()
    (9.0, 6.0)
    """
    check_callable(fun)
    check_int_or_tuple("argnums", argnums)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to grad is deprecated in JAX and not supported")

    @wraps(fun, "Value and gradient of {fun} with respect to positional argument(s) " + str(argnums) + ".")
    @api_boundary
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        _check_argnums(argnums, len(args))
        f, chosen = restrict(fun, argnums, args, kwargs)
        for x in chosen:
            check_reverse_inputs(x, "grad", holomorphic, allow_int)
            _refuse_refs(x)
        out, pullback, *aux = vjp_tree(f, chosen, has_aux)
        _check_scalar(out, holomorphic)
        grads = pullback(_one(aval_of(out)))
        g = grads[0] if isinstance(argnums, int) else grads
        return ((out, aux[0]) if has_aux else out), g

    return value_and_grad_f


def _refuse_refs(tree: Any) -> None:
    for x in tree_leaves(tree) if met.any else ():
        if is_ref(x):
            aval = aval_of(x)
            raise ValueError(
                f"Expected cotangent type {aval} but got {aval.str_short()[4:-1]}: the gradient with respect to a "
                "reference lives in a reference. Use vjp, and the `with_refs` method of the function that it returns."
            )


def _one(aval: ShapedArray) -> Any:
    """The cotangent of a scalar with respect to itself, as weakly typed as it is."""
    weakly = [one for one in (1.0, 1 + 0j) if aval.weak_type and aval.dtype == aval_of(one).dtype]
    return weakly[0] if weakly else np.ones((), aval.dtype)[()]


def _check_argnums(argnums: int | Sequence[int], count: int) -> None:
    needed = max((argnums,) if isinstance(argnums, int) else argnums) + 1
    if needed > count:
        raise TypeError(
            f"differentiating with respect to {argnums=} requires at least {needed} positional "
            "arguments to be passed by "
            f"the caller, but got only {count} positional arguments."
        )


def check_reverse_inputs(tree: Any, name: str, holomorphic: bool, allow_int: bool) -> None:
    """Raises unless reverse mode can differentiate with respect to all leaves."""
    for where, aval in _leaves(tree, name, holomorphic):
        if not dtypes.is_inexact(aval.dtype) and not allow_int and not holomorphic:
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtypes.full_name(aval.dtype)}. If you want to use Boolean- or integer-valued inputs, use vjp or "
                f"set allow_int to True. The input{where} is {aval}."
            )


def check_forward_inputs(tree: Any, name: str, holomorphic: bool) -> None:
    """Raises unless forward mode with real directions covers all leaves."""
    for where, aval in _leaves(tree, name, holomorphic):
        if not holomorphic and not dtypes.is_float(aval.dtype):
            raise TypeError(
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
                f"{dtypes.full_name(aval.dtype)}{where}. For holomorphic differentiation, pass holomorphic=True. For "
                "differentiation of non-holomorphic functions involving complex inputs or integer inputs, use jvp "
                "directly."
            )


def _leaves(tree: Any, name: str, holomorphic: bool) -> Iterator[tuple[str, ShapedArray]]:
    """Where each leaf is, and its type, which must be complex if ``holomorphic``."""
    check_arrays(tree, f"an argument of {name}")
    for path, x in tree_leaves_with_path(tree):
        aval, where = aval_of(x), f" (at {keystr(path)})" if path else ""
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtypes.full_name(aval.dtype)}{where}."
            )
        yield where, aval


def check_outputs(tree: Any, name: str, holomorphic: bool) -> None:
    """Raises unless all leaves are real, or complex if ``holomorphic``."""
    for path, x in tree_leaves_with_path(tree):
        aval, where = aval_of(x), f" (at {keystr(path)})" if path else ""
        kind = dtypes.full_name(aval.dtype)
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but got {kind}{where}.")
        if not holomorphic and not dtypes.is_float(aval.dtype):
            holo = "For holomorphic differentiation, pass holomorphic=True. " if kind.startswith("complex") else ""
            what = "non-holomorphic functions involving complex" if holo else "functions with integer"
            raise TypeError(
                f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
                f"{kind}{where}. {holo}For differentiation of {what} outputs, use vjp directly."
            )


def _check_scalar(out: Any, holomorphic: bool) -> None:
    leaves, tree = tree_flatten(out)
    if len(leaves) != 1 or not tree.is_leaf():
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was a pytree of structure {tree}.")
    aval = aval_of(out)
    if is_ref(aval):
        raise TypeError(f"Gradient only defined for scalar-output functions. Output had abstract value {aval}.")
    if aval.shape != ():
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. It is {aval}: sum or "
            "average it, or use jacrev or vjp."
        )
    check_outputs(out, "grad", holomorphic)
