"""``jet``, as users call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax import numpy as jnp
from polyax.experimental.jet.terms import coefficients, fact, scaled
from polyax.experimental.jet.trace import jet_flat
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import Flat, check_arrays, check_callable
from polyax.trace.tree import tree_flatten

Function = Callable[..., Any]


@api_boundary
def jet(
    fun: Function, primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """The value of ``fun`` and its derivatives along a curve: Taylor-mode differentiation.

    Args:
      fun: a function of pytrees.
      primals: where the curve begins, a tuple with each argument.
      series: for each argument a list of the derivatives of the curve there, the first, the second and so on: arrays,
        or pytrees like the argument; as many for all.
      factorial_scaled: whether series are derivatives; if not, they are Taylor coefficients, without the factorials.

    Returns:
      The value, and the list of its derivatives along the curve; of pytrees, a tree of lists.

    Raises:
      ValueError: series don't have one order, or not the structure and the shapes of their arguments.

    >>> from polyax import numpy as jnp
    >>> value, (first, second) = jet(jnp.exp, (0.0,), ([1.0, 0.0],))
    >>> value.item(), first.item(), second.item()
    (1.0, 1.0, 1.0)
    """
    check_callable(fun)
    check_arrays(primals, "primals")
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals and {len(series)} series; give each argument a list")
    leaves, tree = tree_flatten((tuple(primals), {}))
    leaves = [float(x) if type(x) is int else x for x in leaves]  # else no curve would go through them
    given = [terms for n, (p, s) in enumerate(zip(primals, series, strict=True)) for terms in _of_leaves(n, p, s)]
    if len({len(s) for s in given}) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    order = len(given[0]) if given else 0
    curves = [_typed(p, s) for p, s in zip(leaves, given, strict=True)]
    if not factorial_scaled:
        curves = [[scaled(t, float(fact(k))) for k, t in enumerate(s, 1)] for s in curves]
    flat = Flat(fun, tree)
    outs, higher = jet_flat(flat, leaves, curves)
    if not factorial_scaled:
        higher = [coefficients(p, s)[1:] for p, s in zip(outs, higher, strict=True)]
    assert flat.out_tree is not None
    whole = flat.unflatten(outs)
    return whole, flat.out_tree.unflatten(higher) if order else flat.out_tree.unflatten([[] for _ in outs])


def jet2(
    fun: Function, primals: Sequence[Any], series: Sequence[Any], *, factorial_scaled: bool = False, **_: Any
) -> tuple[Any, Any]:
    """``jet`` with Taylor coefficients, if not told otherwise."""
    return jet(fun, primals, series, factorial_scaled)


def _of_leaves(n: int, primal: Any, series: Any) -> list[list[Any]]:
    """The series of each leaf of an argument."""
    leaves, tree = tree_flatten(primal)
    if tree.is_leaf():
        if not isinstance(series, (list, tuple)):
            raise ValueError(f"jet: series for argument {n} should be a list of terms, got {type(series).__name__}")
        return [list(series)]
    try:
        return [list(s) for s in tree.flatten_up_to(series)]
    except ValueError:
        pass
    try:  # a list of pytrees
        terms = [tree.flatten_up_to(t) for t in series]
    except ValueError as e:
        raise ValueError(f"jet: the series for argument {n} don't have the structure of its primal: {e}") from e
    return [[t[k] for t in terms] for k in range(len(leaves))]


def _typed(primal: Any, series: list[Any]) -> list[Any]:
    aval = aval_of(primal)
    if not dtypes.is_inexact(aval.dtype):
        return [jnp.zeros(aval.shape, aval.dtype) for _ in series]
    found = [x if x.dtype == aval.dtype else x.astype(aval.dtype) for x in map(jnp.asarray, series)]
    for t in found:
        if t.shape != aval.shape:
            raise ValueError(f"jet: a term of shape {t.shape} in the series of a primal of shape {aval.shape}")
    return found


def jet_fun(fun: Function, *gen_static_args: Any) -> Function:
    """``(primals, series) -> (values, series)`` of a function of flat arguments that gives a list."""
    return lambda primals, series: jet_flat(fun, primals, series)


jet_subtrace = jet_fun


def traceable(fun: Function, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False) -> Function:
    """``fun`` of primals and series, as a function of a flat list of both."""

    def flat(in_tree: Any, *leaves: Any) -> Any:
        return tree_flatten(fun(*in_tree.unflatten(leaves)))

    return flat


def unzip2(xys: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Pairs as a pair of tuples."""
    pairs = list(xys)
    return tuple([x for x, _ in pairs]), tuple([y for _, y in pairs])
