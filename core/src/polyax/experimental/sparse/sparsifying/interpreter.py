"""The interpreter: equations with sparse operands go by the table of rules, all others as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.experimental.sparse.sparsifying.table import is_sparse, marked, rule_for
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr, Literal, Var
from polyax.trace.flat import name_of
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.tree import tree_flatten, tree_unflatten


def run(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of ``program`` for ``args``, of which some are sparse, and each has indices of its own."""
    return run_marked(program, [marked(x) for x in args])


def run_marked(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The same, of which some are known to have the same indices."""
    jaxpr = program.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, program.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    read = lambda a: a.value if isinstance(a, Literal) else env[a]
    for eqn in jaxpr.eqns:
        values = [read(a) for a in eqn.invars]
        rule = rule_for(eqn.primitive, values)
        outs = eqn.apply(values) if rule is None else rule(*values, **eqn.params)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in jaxpr.outvars]


def dense_type(x: Any) -> ShapedArray:
    """The type of the dense array that ``x`` stands for."""
    return aval_of(x.data).with_shape(x.shape) if is_sparse(x) else aval_of(x)


def interpreted(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun`` of arguments of which some are sparse; it is traced with dense ones."""

    def wrapped(*args: Any, **params: Any) -> Any:
        leaves, tree = tree_flatten(args, is_leaf=is_sparse)
        out_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            outs, out_tree = tree_flatten(fun(*tree_unflatten(tree, xs), **params), is_leaf=is_sparse)
            return [x.todense() if is_sparse(x) else x for x in outs]

        program = trace_to_jaxpr(flat, [dense_type(x) for x in leaves], name=name_of(fun))
        return tree_unflatten(out_tree, run(program, leaves))

    return wrapped
