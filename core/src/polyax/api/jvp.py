"""Pushforwards: ``jvp linearize``, and the tangents that they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.api.arguments import as_array
from polyax.api.vjp import drop_tangents, fits, materialize
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import eval_jaxpr
from polyax.ops.basis import convert_element_type
from polyax.ops.zeros import instantiate
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.context import transformed
from polyax.trace.flat import Flat, FlatAux, check_arrays, check_callable
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_flatten, tree_structure
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
    given = [_as_tangent(p, t) for p, t in zip(leaves, tangent_leaves, strict=True)]
    flat = (FlatAux if has_aux else Flat)(fun, tree_structure((tuple(primals), {})))
    with transformed("jvp"):
        outs, out_tangents = jvp_flat(flat, leaves, given)
    pair = flat.unflatten(list(map(as_array, outs))), flat.unflatten([materialize(t) for t in out_tangents])
    return (*pair, drop_tangents(flat.aux)) if isinstance(flat, FlatAux) else pair


def _as_tangent(primal: Any, tangent: Any) -> Any:
    want, got = aval_of(primal).to_tangent_aval(), aval_of(tangent)
    if want.dtype == dtypes.float0 and got.dtype == dtypes.float0:
        return Zero(want)
    if not fits(got, want):
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool primal "
            f"dtype the tangent dtype must be float0.Got primal dtype {dtypes.full_name(aval_of(primal).dtype)} and so "
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

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> f_jvp(1.0).item()
    6.0
    """
    check_callable(fun)
    check_arrays(primals, "primals")
    leaves, in_tree = tree_flatten((primals, {}))
    flat = (FlatAux if has_aux else Flat)(fun, in_tree)
    differentiable = [dtypes.is_inexact(aval_of(x).dtype) for x in leaves]
    with transformed("jvp"):
        outs, lin = linearize_flat(flat, leaves, differentiable)
    primal_tree = tree_structure(primals)

    @api_boundary
    def f_jvp(*tangents: Any) -> Any:
        given, tree = tree_flatten(tangents)
        if tree != primal_tree:
            raise TypeError(f"linearized function called with tangents of structure {tree}, expected {primal_tree}")
        given = [_same_tangent(p, t) for p, t in zip(leaves, given, strict=True)]
        chosen = [instantiate(t) for t, nz in zip(given, lin.nonzero_in, strict=True) if nz]
        results = iter(eval_jaxpr(lin.jaxpr.jaxpr, lin.jaxpr.consts, chosen))
        zeros = [Zero(a.to_tangent_aval()) for a in lin.out_avals]
        return flat.unflatten(
            [materialize(next(results) if nz else z) for nz, z in zip(lin.nonzero_out, zeros, strict=True)]
        )

    out = flat.unflatten(list(map(as_array, outs)))
    return (out, f_jvp, drop_tangents(flat.aux)) if isinstance(flat, FlatAux) else (out, f_jvp)


def _same_tangent(primal: Any, tangent: Any) -> Any:
    try:
        return _as_tangent(primal, tangent)
    except (TypeError, ValueError):
        aval = aval_of(primal)
        raise ValueError(
            "linearized function called on tangent values inconsistent with the original primal values: got tangent "
            f"{aval_of(tangent)} for primal {aval}, but expected {aval.to_tangent_aval()}"
        ) from None
