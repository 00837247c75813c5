"""``linear_call``: a linear function whose transpose the user gives.

``linear_call[callee num_callee_consts num_res transpose_thunk] *consts *residuals *linear``. What the thunk gives is
the program of the transpose, which takes constants, the residuals and cotangents of results, and these constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom import at_front
from polyax.control.calls.family import CallLike
from polyax.control.inner.lists import cut, nonzeros
from polyax.control.inner.programs import hoisted, run, with_ends
from polyax.ir.aval import ShapedArray, aval_of, same_type
from polyax.ir.jaxpr import ClosedJaxpr, Var
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.zeros import add_tangents, instantiate
from polyax.trace.flat import check_callable, name_of, trace_tree
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import AxisData, batch_jaxpr

linear_call_p = Primitive("linear_call", higher_order=True)

Thunk = Callable[[], tuple[ClosedJaxpr, list[Any]]]


def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """``fun(residual_args, linear_args)``, which is linear in ``linear_args``; reverse mode runs ``fun_transpose``.

    Args:
      fun_transpose: ``fun_transpose(residual_args, cotangents)`` gives cotangents like ``linear_args``. It is traced
        when the call is transposed, so that it may call itself.

    Raises:
      TypeError: when it is transposed, and ``fun_transpose`` gives another structure.
      ValueError: likewise, for other types.

    >>> import polyax
    >>> halve = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: 100 * ct, 2.0, x)
    >>> halve(4.0).item(), polyax.grad(halve)(4.0).item()
    (2.0, 100.0)
    """
    check_callable(fun)
    check_callable(fun_transpose)
    callee, out_tree = trace_tree(fun, (residual_args, linear_args), "linear_call fun")
    callee, consts = hoisted(callee)
    residuals, res_tree = tree_flatten(residual_args)
    linear, tree = tree_flatten(linear_args)
    residual_avals = tree_unflatten(res_tree, map(aval_of, residuals))
    given = residual_avals, tree_unflatten(out_tree, callee.out_avals)
    counts = {"num_callee_consts": len(consts), "num_res": len(residuals)}
    thunk = _Transpose(fun_transpose, given, tree, [aval_of(x) for x in linear])
    outs = linear_call_p.bind(*consts, *residuals, *linear, callee=callee, transpose_thunk=thunk, **counts)
    return tree_unflatten(out_tree, outs)


class _Transpose:
    """The transpose's program and its constants, traced when it is needed: it may call itself, or never be there."""

    def __init__(
        self, fun: Callable[[Any, Any], Any], given: tuple[Any, Any], tree: PyTreeDef, avals: Sequence[ShapedArray]
    ) -> None:
        self.fun = fun
        self.given = given
        self.tree = tree
        self.avals = avals
        self.found: tuple[ClosedJaxpr, list[Any]] | None = None

    def __call__(self) -> tuple[ClosedJaxpr, list[Any]]:
        if self.found is not None:
            return self.found
        closed, tree = trace_tree(self.fun, self.given, "linear_call fun_transpose")
        self._check(tree, closed.out_avals)
        program, consts = hoisted(closed)
        if not any(isinstance(x, Tracer) for x in consts):  # those are of this trace alone
            self.found = program, consts
        return program, consts

    def _check(self, tree: PyTreeDef, avals: Sequence[ShapedArray]) -> None:
        if tree != self.tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, got output structure "
                f"{tree} and input structure {self.tree}."
            )
        for got, aval in zip(avals, self.avals, strict=True):
            wanted = aval.to_tangent_aval()
            if not same_type(got, wanted):
                raise ValueError(
                    f"Expected cotangent type {wanted.str_short()} but got {got.str_short()} from the fun_transpose "
                    f"{name_of(self.fun)} of a linear_call"
                )


CallLike(linear_call_p, "callee").install("impl", "abstract_eval", "sub_jaxprs")


@def_rule(linear_call_p, "jvp")
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, num_callee_consts: int, num_res: int, **params: Any
) -> Any:
    """Of linear arguments the same call; of residuals the derivative of the function."""
    params |= {"num_callee_consts": num_callee_consts, "num_res": num_res}
    outs = linear_call_p.bind(*primals, **params)
    dots: list[Any] = [Zero.of(x) for x in outs]
    residuals, linear = cut(primals, num_callee_consts + num_res)
    residual_dots, linear_dots = cut(tangents, len(residuals))
    if any(nonzeros(linear_dots)):
        dots = linear_call_p.bind(*residuals, *map(instantiate, linear_dots), **params)
    if any(nonzeros(residual_dots)):
        _, others = jvp_flat(lambda *rs: run(params["callee"], [*rs, *linear]), residuals, residual_dots)
        dots = [add_tangents(a, b) for a, b in zip(dots, others, strict=True)]
    return outs, dots


@def_rule(linear_call_p, "transpose")
def _transpose(
    cts: Sequence[Any], *args: Any, callee: ClosedJaxpr, transpose_thunk: Thunk, num_callee_consts: int, num_res: int
) -> list[Any]:
    """The call of the transpose, whose own is the callee: so the callee's constants are residuals of that call."""
    residuals, linear = cut(args, num_callee_consts + num_res)
    if any(map(is_undef, residuals)) or not all(map(is_undef, linear)):
        raise NotImplementedError("linear_call is linear in all of linear_args, and in nothing else")
    program, consts = transpose_thunk()
    own, rest = cut(program.jaxpr.invars, len(consts))
    unread = [Var(aval) for aval in callee.in_avals[:num_callee_consts]]
    outs = linear_call_p.bind(
        *consts,
        *residuals,
        *map(instantiate, cts),
        callee=with_ends(program, [*own, *unread, *rest]) if unread else program,
        transpose_thunk=lambda: (callee, []),
        num_callee_consts=len(consts),
        num_res=len(residuals),
    )
    return [*[None] * len(residuals), *outs]


@def_rule(linear_call_p, "batch")
def _batch(
    axis: AxisData,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    callee: ClosedJaxpr,
    transpose_thunk: Thunk,
    num_callee_consts: int,
    num_res: int,
) -> Any:
    """Linear arguments and results are mapped, all at dimension 0."""
    consts, residuals, linear = cut(args, num_callee_consts, num_res)
    const_dims, res_dims, linear_dims = cut(dims, num_callee_consts, num_res)

    def mapped(program: ClosedJaxpr, const_dims: Sequence[int | None]) -> ClosedJaxpr:
        num_in, num_out = len(program.in_avals) - len(const_dims) - num_res, len(program.out_avals)
        return batch_jaxpr(program, axis, (*const_dims, *res_dims, *[0] * num_in), (True,) * num_out)[0]

    def thunk() -> tuple[ClosedJaxpr, list[Any]]:
        program, values = transpose_thunk()
        return mapped(program, [None] * len(values)), values

    outs = linear_call_p.bind(
        *consts,
        *residuals,
        *at_front(axis, linear, linear_dims),
        callee=mapped(callee, const_dims),
        transpose_thunk=thunk,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
    )
    return outs, [0] * len(outs)


linear_call_p.never("partial_eval", "the linear part is a call of its own")
linear_call_p.never("dce", "its transpose gives all cotangents at once")
