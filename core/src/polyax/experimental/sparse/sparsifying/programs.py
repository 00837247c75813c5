"""Rules of primitives that hold programs: these are run with sparse operands where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.api.ahead import eval_shape
from polyax.api.jit import jit
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.experimental.sparse.sparsifying.interpreter import dense_type, run, run_marked
from polyax.experimental.sparse.sparsifying.table import (
    is_sparse,
    marked,
    sparse_among,
    sparse_rule,
    with_data,
    without_promises,
)
from polyax.extend.core import primitives as p
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.lax import lenient as lax
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_flatten, tree_structure, tree_unflatten


@sparse_rule(p.jit_p)
def _jit(*args: Any, jaxpr: ClosedJaxpr, name: str = "", donated_invars: Sequence[bool] = (), **_: Any) -> list[Any]:
    if any(donated_invars):
        raise NotImplementedError("sparse xla_call with donated_invars")

    def call(*xs: Any) -> list[Any]:
        return run(jaxpr, xs)

    call.__name__ = name or call.__name__
    return jit(call)(*args)


def _settled(step: Callable[[list[Any]], list[Any]], carry: Sequence[Any]) -> tuple[Any, list[Any]]:
    """``step`` and its first argument, such that it gives what it takes: with promises of indices, if it keeps them."""
    carry = list(carry)
    if tree_structure(eval_shape(step, carry)) == tree_structure(carry):
        return step, carry
    return lambda xs: [without_promises(x) for x in step(xs)], [without_promises(x) for x in carry]


@sparse_rule(p.while_p)
def _while(
    *args: Any, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int
) -> list[Any]:
    of_cond, rest = args[:cond_nconsts], args[cond_nconsts:]
    of_body, carry = rest[:body_nconsts], rest[body_nconsts:]
    step, first = _settled(lambda xs: run(body_jaxpr, [*of_body, *xs]), carry)
    return lax.while_loop(lambda xs: run(cond_jaxpr, [*of_cond, *xs])[0], step, first)


@sparse_rule(p.scan_p)
def _scan(
    *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int, reverse: bool, unroll: Any, **_: Any
) -> list[Any]:
    consts, carry, xs = args[:num_consts], args[num_consts : num_consts + num_carry], args[num_consts + num_carry :]
    if any(sparse_among(xs)):
        raise NotImplementedError("sparse rule for scan with x values.")

    def whole(carried: list[Any], x: Any) -> tuple[list[Any], list[Any]]:
        outs = run(jaxpr, [*consts, *carried, *x])
        return outs[:num_carry], outs[num_carry:]

    one = [ShapedArray(aval.shape, aval.dtype) for aval in jaxpr.in_avals[num_consts + num_carry :]]
    kept = tree_structure(eval_shape(lambda c, x: whole(c, x)[0], list(carry), one)) == tree_structure(list(carry))
    plain = lambda c, x: tuple([*map(without_promises, part)] for part in whole(c, x))
    first = list(carry) if kept else [without_promises(x) for x in carry]
    last, ys = lax.scan(whole if kept else plain, first, list(xs), length, reverse, unroll)
    if any(sparse_among(ys)):
        raise NotImplementedError("sparse rule for scan with sparse y values.")
    return [*last, *ys]


@sparse_rule(p.cond_p)
def _cond(index: Any, *operands: Any, branches: Sequence[ClosedJaxpr], **_: Any) -> list[Any]:
    def taken(program: ClosedJaxpr, plain: bool) -> Callable[..., list[Any]]:
        return lambda *xs: [without_promises(x) if plain else x for x in run(program, xs)]

    trees = [tree_structure(eval_shape(taken(b, False), *operands)) for b in branches]
    plain = any(tree != trees[0] for tree in trees)
    outs = [eval_shape(taken(b, plain), *operands) for b in branches]
    for other in outs[1:]:
        _check_alike(outs[0], other)
    return lax.switch(index, [taken(b, plain) for b in branches], *operands)


def _check_alike(one: Any, other: Any) -> None:
    """Raises ``TypeError`` unless the results of two branches are stored alike."""
    (leaves, tree), (other_leaves, other_tree) = tree_flatten(one), tree_flatten(other)
    types = [[(x.shape, x.dtype) for x in found] for found in (leaves, other_leaves)]
    if tree != other_tree or types[0] != types[1]:
        raise TypeError(
            "sparsified true_fun output must have same type structure as sparsified false_fun output, but there are "
            f"differences: {other} and {one}"
        )


@sparse_rule(p.custom_jvp_call_p, bcsr=True)
def _custom_jvp(*args: Any, call_jaxpr: ClosedJaxpr, jvp: Any, num_consts: int, **_: Any) -> list[Any]:
    """The user's rule, too, is traced with dense arrays; the tangent of a sparse one has its indices."""
    leaves, tree = tree_flatten(args)
    out_tree: Any = None

    def fun(*xs: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree_flatten(run(call_jaxpr, tree_unflatten(tree, xs)))
        return outs

    def rule(primals: Any, tangents: Any) -> Any:
        nonlocal out_tree
        values = [marked(x) for x in tree_unflatten(tree, primals)[num_consts:]]
        dots = [_tangent(x, t) for x, t in zip(values, tree_unflatten(tree, tangents)[num_consts:], strict=True)]
        both = lambda *xs: [y for part in jvp(xs[: len(values)], xs[len(values) :]) for y in part]
        program = trace_to_jaxpr(both, [dense_type(x) for x in (*values, *dots)])
        found = run_marked(program, [*values, *dots])
        outs, out_dots = found[: len(found) // 2], found[len(found) // 2 :]
        leaves, out_tree = tree_flatten(outs)
        return leaves, [t for x, d in zip(outs, out_dots, strict=True) for t in _leaf_tangents(x, d)]

    mapped = custom_jvp(fun)
    mapped.defjvp(rule)
    found = mapped(*leaves)
    return tree_unflatten(out_tree, found)


def _tangent(x: Any, dot: Any) -> Any:
    return with_data(x, dot.data) if is_sparse(x) else dot


def _leaf_tangents(x: Any, dot: Any) -> list[Any]:
    if not is_sparse(x):
        return [dot]
    if not is_sparse(dot) or dot.data.shape != x.data.shape:
        raise NotImplementedError("sparse rule for custom_jvp_call whose tangent isn't stored as its result is.")
    return [dot.data, *map(Zero.of, x._bufs[1:])]
