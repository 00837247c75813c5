"""``linear_call``: a linear function whose transpose the user gives.

``linear_call[callee transpose num_res] *residuals *linear``: ``transpose`` takes the residuals, and cotangents of the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom import at_front
from polyax.control.calls.family import CallLike
from polyax.control.inner.differences import check_same, results
from polyax.control.inner.lists import nonzeros
from polyax.control.inner.programs import run, share_consts
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.flat import check_callable, trace_tree
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import tree_leaves, tree_structure, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import AxisData, batch_jaxpr

linear_call_p = Primitive("linear_call", higher_order=True)


def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """``fun(residual_args, linear_args)``, which is linear in ``linear_args``; reverse mode runs ``fun_transpose``.

    Args:
      fun_transpose: ``fun_transpose(residual_args, cotangents)`` gives cotangents like ``linear_args``.

    >>> import polyax
    >>> halve = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: 100 * ct, 2.0, x)
    >>> halve(4.0).item(), polyax.grad(halve)(4.0).item()
    (2.0, 100.0)
    """
    check_callable(fun)
    check_callable(fun_transpose)
    residuals, linear = tree_leaves(residual_args), tree_leaves(linear_args)
    callee, out_tree = trace_tree(fun, (residual_args, linear_args))
    cts = tree_unflatten(out_tree, callee.out_avals)
    transpose, ct_tree = trace_tree(fun_transpose, (residual_args, cts))
    tree = tree_structure(linear_args)
    if ct_tree != tree:
        raise TypeError(
            "transpose output pytree structure must match that of linear inputs, got output structure "
            f"{ct_tree} and input structure {tree}."
        )
    what = "fun_transpose of linear_call must give cotangents like linear_args: its output and linear_args must"
    check_same(
        results(what, ("fun_transpose's output", "linear_args"), "fun_transpose"),
        (ct_tree, tree),
        (transpose.out_avals, [aval_of(x) for x in linear]),
    )
    (callee, transpose), consts = share_consts([callee, transpose])
    num_res = len(consts) + len(residuals)
    outs = linear_call_p.bind(*consts, *residuals, *linear, callee=callee, transpose=transpose, num_res=num_res)
    return tree_unflatten(out_tree, outs)


CallLike(linear_call_p, "callee").install("impl", "abstract_eval", "sub_jaxprs")


@def_rule(linear_call_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, num_res: int, **params: Any) -> Any:
    """Of linear arguments the same call; of residuals the derivative of the function."""
    outs = linear_call_p.bind(*primals, num_res=num_res, **params)
    dots: list[Any] = [Zero.of(x) for x in outs]
    residuals, linear = primals[:num_res], primals[num_res:]
    if any(nonzeros(tangents[num_res:])):
        given = [instantiate(t) for t in tangents[num_res:]]
        dots = linear_call_p.bind(*residuals, *given, num_res=num_res, **params)
    if any(nonzeros(tangents[:num_res])):
        _, others = jvp_flat(lambda *rs: run(params["callee"], [*rs, *linear]), residuals, tangents[:num_res])
        dots = [add_tangents(a, b) for a, b in zip(dots, others, strict=True)]
    return outs, dots


@def_rule(linear_call_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int) -> list[Any]:
    residuals, linear = args[:num_res], args[num_res:]
    if any(map(is_undef, residuals)) or not all(map(is_undef, linear)):
        raise NotImplementedError("linear_call is linear in all of linear_args, and in nothing else")
    given = [*residuals, *map(instantiate, cts)]
    outs = linear_call_p.bind(*given, callee=transpose, transpose=callee, num_res=num_res)
    return [*[None] * num_res, *outs]


@def_rule(linear_call_p, "batch")
def _batch(
    axis: AxisData,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    callee: ClosedJaxpr,
    transpose: ClosedJaxpr,
    num_res: int,
) -> Any:
    """Linear arguments and results are mapped, all at dimension 0."""
    own = tuple(dims[:num_res])

    def mapped(program: ClosedJaxpr) -> ClosedJaxpr:
        num_in, num_out = len(program.in_avals) - num_res, len(program.out_avals)
        return batch_jaxpr(program, axis, (*own, *[0] * num_in), (True,) * num_out)[0]

    linear = at_front(axis, args[num_res:], dims[num_res:])
    programs = {"callee": mapped(callee), "transpose": mapped(transpose)}
    outs = linear_call_p.bind(*args[:num_res], *linear, **programs, num_res=num_res)
    return outs, [0] * len(outs)


linear_call_p.never("partial_eval", "the linear part is a call of its own")
linear_call_p.never("dce", "its transpose gives all cotangents at once")
