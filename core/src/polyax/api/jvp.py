"""Pushforwards: ``jvp linearize``, and the tangents that they take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.api.arguments import as_array
from polyax.api.vjp import LinearProgram, drop_tangents, fits, materialize
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import Jaxpr, eval_jaxpr
from polyax.ops.basis import convert_element_type
from polyax.ops.zeros import instantiate
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.context import transformed
from polyax.trace.flat import Flat, FlatAux, check_arrays, check_callable
from polyax.trace.nodes import Partial
from polyax.trace.symbolic import Zero
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.linearize import linearize_flat


@api_boundary
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """``fun(*primals)`` and its directional derivative along ``tangents``, by forward mode.

    >>> y, t = jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(t)
    6.0
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    check_arrays(primals, "primals")
    leaves, tree = tree_flatten(primals)
    tangent_leaves, tangent_tree = tree_flatten(tangents)
    if tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure "
            f"{tree} whereas tangents have tree structure {tangent_tree}."
        )
    given = [_as_tangent(aval_of(p), t) for p, t in zip(leaves, tangent_leaves, strict=True)]
    flat = (FlatAux if has_aux else Flat)(fun, tree_structure((tuple(primals), {})))
    with transformed("jvp"):
        outs, out_tangents = jvp_flat(flat, leaves, given)
    pair = flat.unflatten(list(map(as_array, outs))), flat.unflatten([materialize(t) for t in out_tangents])
    return (*pair, drop_tangents(flat.aux)) if isinstance(flat, FlatAux) else pair


def _as_tangent(primal: ShapedArray, tangent: Any) -> Any:
    want, got = primal.to_tangent_aval(), aval_of(tangent)
    if want.dtype == dtypes.float0 and got.dtype == dtypes.float0:
        return Zero(want)
    if not fits(got, want):
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool primal "
            f"dtype the tangent dtype must be float0.Got primal dtype {dtypes.full_name(primal.dtype)} and so "
            f"expected tangent dtype {dtypes.full_name(want.dtype)}, but got tangent dtype "
            f"{dtypes.full_name(got.dtype)} instead."
        )
    if got.shape != want.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes;Got primal shape {want.shape} and tangent shape as "
            f"{got.shape}"
        )
    converted = got.dtype != want.dtype or got.weak_type > want.weak_type
    return convert_element_type(tangent, want.dtype) if converted else tangent


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``fun(*primals)`` and the linear function of tangents that approximates ``fun`` there; it can be called often.

    That function is a pytree: its leaves are what it needs of the forward pass.

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> f_jvp(1.0).item()
    6.0
    """
    check_callable(fun)
    check_arrays(primals, "primals")
    leaves, in_tree = tree_flatten((primals, {}))
    flat = (FlatAux if has_aux else Flat)(fun, in_tree)
    avals = tuple(map(aval_of, leaves))
    with transformed("jvp"):
        outs, linearized = linearize_flat(flat, leaves, [dtypes.is_inexact(a.dtype) for a in avals])
    assert flat.out_tree is not None
    linear = LinearProgram.of(linearized, fun)
    pushed = functools.partial(_pushed, linear.jaxpr, linear, avals, tree_structure(primals), flat.out_tree)
    f_jvp = Partial(pushed, linearized.residuals)
    out = flat.unflatten(list(map(as_array, outs)))
    return (out, f_jvp, drop_tangents(flat.aux)) if isinstance(flat, FlatAux) else (out, f_jvp)


@api_boundary
def _pushed(
    jaxpr: Jaxpr,
    linear: LinearProgram,
    in_avals: tuple[ShapedArray, ...],
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    residuals: Sequence[Any],
    *tangents: Any,
) -> Any:
    """The tangents of the results of a linearized function; its program comes first, as in JAX."""
    given, tree = tree_flatten(tangents)
    if tree != in_tree:
        raise TypeError(f"linearized function called with tangents of structure {tree}, expected {in_tree}")
    given = [_same_tangent(a, t) for a, t in zip(in_avals, given, strict=True)]
    chosen = [instantiate(t) for t, nz in zip(given, linear.nonzero_in, strict=True) if nz]
    results = iter(eval_jaxpr(jaxpr, residuals, chosen))
    zeros = [Zero(a.to_tangent_aval()) for a in linear.out_avals]
    dots = [materialize(next(results) if nz else z) for nz, z in zip(linear.nonzero_out, zeros, strict=True)]
    return tree_unflatten(out_tree, dots)


def _same_tangent(aval: ShapedArray, tangent: Any) -> Any:
    try:
        return _as_tangent(aval, tangent)
    except (TypeError, ValueError):
        raise ValueError(
            "linearized function called on tangent values inconsistent with the original primal values: got tangent "
            f"{aval_of(tangent)} for primal {aval}, but expected {aval.to_tangent_aval()}"
        ) from None
