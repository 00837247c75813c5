"""``linear_transpose``: from a linear function to its transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.api.arguments import shaped
from polyax.api.vjp import fits, materialize
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import Jaxpr
from polyax.ops.basis import convert, convert_element_type
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import Flat
from polyax.trace.nodes import Partial
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.symbolic import UndefPrimal
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten
from polyax.transforms.transpose import backward_pass


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Callable[..., Any]:
    """The transpose of ``fun``, which must be linear; ``primals`` (arrays or types) tell its argument types.

    It is a pytree, whose leaves are what ``fun`` closes over.

    >>> import numpy as np
    >>> f = linear_transpose(lambda x: 3 * x, np.float32(0))
    >>> f(np.float32(2))[0].item()
    6.0
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to linear_transpose is deprecated in JAX and not supported")
    leaves, in_tree = tree_flatten((primals, {}))
    avals = [shaped(x) for x in leaves]
    flat = Flat(fun, in_tree)
    closed = trace_to_jaxpr(flat, avals)
    _check_dtypes(avals, closed.out_avals)
    assert flat.out_tree is not None
    return Partial(functools.partial(_transposed, closed.jaxpr, tree_structure(primals), flat.out_tree), closed.consts)


@api_boundary
def _transposed(jaxpr: Jaxpr, in_tree: PyTreeDef, out_tree: PyTreeDef, consts: Sequence[Any], cotangents: Any) -> Any:
    cts, tree = tree_flatten(cotangents)
    if tree != out_tree:
        raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {tree}")
    cts = [_as_cotangent(ct, v.aval) for ct, v in zip(cts, jaxpr.outvars, strict=True)]
    avals = [v.aval for v in jaxpr.invars]
    found = map(materialize, backward_pass(jaxpr, consts, [UndefPrimal(a) for a in avals], cts))
    kept = [convert(x, a.dtype, True) if a.weak_type else x for x, a in zip(found, avals, strict=True)]
    return tree_unflatten(in_tree, kept)


def _check_dtypes(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Raises unless all are of floating-point or complex types, or all of integers."""
    inexact = {dtypes.is_inexact(a.dtype) for a in (*avals, *outs)}
    if len(inexact) > 1 or any(a.dtype == np.bool_ for a in avals):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
            f"functions, but got {', '.join(map(str, avals))} -> {', '.join(map(str, outs))}."
        )


def _as_cotangent(ct: Any, aval: ShapedArray) -> Any:
    got = aval_of(ct)
    whole = not (dtypes.is_inexact(got.dtype) or dtypes.is_inexact(aval.dtype))
    adapts = got.weak_type and (
        whole or (fits(got, aval) and dtypes.is_complex(got.dtype) == dtypes.is_complex(aval.dtype))
    )
    if got.shape != aval.shape or not (got.dtype == aval.dtype or adapts):
        raise TypeError(f"cotangent type does not match function output, expected {aval} but got {got}")
    return convert_element_type(ct, aval.dtype) if got.dtype != aval.dtype else ct
