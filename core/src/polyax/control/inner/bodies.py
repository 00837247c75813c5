"""Programs of the functions that users give to control flow, traced once for each function and types of arguments.

A function is remembered as long as it lives. Knows no primitive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from polyax.control.inner.differences import Sides, alike, check_same
from polyax.control.inner.structure import weaknesses, with_weak_types
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.refs import met
from polyax.ops.basis import convert
from polyax.trace.calls import Signature
from polyax.trace.traces import Traces
from polyax.trace.tree import PyTreeDef, tree_unflatten

Traced = tuple[ClosedJaxpr, PyTreeDef]
TraceBody = Callable[[Any], Traced]
CarryOf = Callable[[PyTreeDef, Sequence[ShapedArray]], PyTreeDef]

_known: weakref.WeakKeyDictionary[Callable[..., Any], dict[Hashable, Traces]] = weakref.WeakKeyDictionary()


def traced(
    fun: Callable[..., Any],
    args: Sequence[Any],
    owner: Callable[..., Any] | None = None,
    role: Hashable = None,
    what: str = "",
) -> Traced:
    """What ``trace_tree`` gives, without tracing again what was traced before.

    A loop that is called again and again is then also compiled once.

    Args:
      owner: the user's function, if ``fun`` is one that was made from it; ``role`` says which.
      what: what it is traced for, in error texts.
    """
    call = Signature(fun, "a loop or branch", traced_for=what).split(tuple(args), {})
    if met.any:
        call.refuse_aliases()
    key = call.key([x if isinstance(x, ShapedArray) else call.aval(x) for x in call.leaves])
    made = _traces_of(fun if owner is None else owner, role).find(key, call)
    if met.any:
        call.refuse_aliases(made.closed.consts)
    return made.closed, made.out_tree


def _traces_of(owner: Callable[..., Any], role: Hashable) -> Traces:
    try:
        roles = _known.setdefault(owner, {})
        return roles[role] if role in roles else roles.setdefault(role, Traces())
    except TypeError:  # it has no hash, or can't be referred to weakly
        return Traces()


def settled(
    trace: TraceBody, init: Sequence[Any], tree: PyTreeDef, carry_of: CarryOf, sides: Callable[[], Sides]
) -> tuple[ClosedJaxpr, PyTreeDef, list[Any]]:
    """The program of a body whose carry keeps its type, the structure of its results, and the initial carry.

    Weakly typed initial values get the dtype of what the body makes of them, and stay weak where they have it.

    Raises:
      TypeError: the carry that the body returns has another structure or other types, which ``sides`` names.
    """
    init = list(init)
    while True:
        avals = [aval_of(x) for x in init]
        body, out_tree = trace(tree_unflatten(tree, avals))
        carry_tree = carry_of(out_tree, body.out_avals)
        outs = body.out_avals[: carry_tree.num_leaves]
        wanted = [_promoted(a, o) for a, o in zip(avals, outs)] if carry_tree == tree else avals
        if wanted == avals:
            break
        init = [convert(x, w.dtype, w.weak_type) for x, w in zip(init, wanted, strict=True)]
    if carry_tree != tree or not all(map(alike, avals, outs)):
        check_same(sides(), (tree, carry_tree), (avals, outs))
    both = [a.weak_type and o.weak_type for a, o in zip(avals, outs, strict=True)]
    weak = (*both, *weaknesses(body.out_avals[len(avals) :]))
    return with_weak_types(body, weak), out_tree, init


def _promoted(given: ShapedArray, made: ShapedArray) -> ShapedArray:
    """The type that a weakly typed initial value gets from the body's result; of another dtype it isn't weak."""
    if not given.weak_type or given.shape != made.shape:
        return given
    dtype, _ = dtypes.promote_weak((given.dtype, True), (made.dtype, made.weak_type))
    return given if dtype == given.dtype else given.update(dtype=dtype, weak_type=False)
