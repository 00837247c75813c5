"""``platform_dependent``: functions of which one is chosen where a program is compiled, by the platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.calls.closed import closed_call_p
from polyax.control.calls.jit import call
from polyax.control.flow.branching import choose_branch
from polyax.control.flow.cond import cond_p
from polyax.control.inner.bodies import traced
from polyax.control.inner.programs import with_programs
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, make_literal, walk_eqns
from polyax.ir.primitive import Primitive, def_rule
from polyax.trace.flat import check_callable
from polyax.trace.tree import tree_leaves, tree_unflatten
from polyax.transforms.memo import memoize_by_jaxpr

platform_index_p = Primitive("platform_index")
"""``platform_index[platforms]``: which entry of ``platforms`` the program runs on; None stands for all others."""
for _rule in ("jvp", "transpose", "batch", "factors"):
    platform_index_p.never(_rule, "it has no operands")

Platforms = tuple[tuple[str, ...] | None, ...]


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The function for the platform that the program runs on, of ``args``: ``platform_dependent(x, cpu=f, cuda=g)``.

    Args:
      per_platform: functions whose results have one structure and equal types, by the names of platforms; ``gpu`` is
        any GPU, and processors without an entry of their own go by ``cpu``.
      default: the function for all others.

    Raises:
      NotImplementedError: there is none for the platform; when a program is compiled.

    >>> platform_dependent(2.0, tpu=lambda x: x * 10, default=lambda x: x + 1).item()
    3.0
    """
    platforms: Platforms = tuple((name,) for name in per_platform)
    funs = [*per_platform.values()]
    if default is not None:
        platforms, funs = (*platforms, None), [*funs, default]
    for fun in funs:
        check_callable(fun)
    index = platform_index_p.bind1(platforms=platforms)
    if isinstance(index, np.integer):  # nothing is traced
        program, tree = traced(funs[int(index)], args)
        params = {"inline": False, "keep_unused": False, "device": None}
        return tree_unflatten(tree, call(program, tree_leaves(args), name="platform_dependent", **params))
    names = [f"the function for {p[0] if p else 'other platforms'}" for p in platforms]
    return choose_branch("platform_dependent", index, funs, names, args)


@def_rule(platform_index_p, "abstract_eval")
def _abstract_eval(*, platforms: Platforms) -> list[ShapedArray]:
    return [ShapedArray((), np.dtype(np.int32))]


def position(platforms: Platforms, names: Sequence[str]) -> int:
    """The entry for a platform, which has several names: the first of these that there is one for.

    Raises:
      NotImplementedError: there is none.
    """
    for name in names:
        for n, some in enumerate(platforms):
            if some is not None and name in some:
                return n
    if None in platforms:
        return platforms.index(None)
    there = ", ".join(name for some in platforms for name in some or ())
    raise NotImplementedError(
        f"platform_dependent: no function for the platform {names[0]!r}; there are some for {there}. Give it one "
        "by that name, or a default."
    )


@memoize_by_jaxpr
def settled(program: ClosedJaxpr, names: tuple[str, ...]) -> ClosedJaxpr:
    """``program`` for the platform of these names: of functions between which it chooses, one is left."""
    if not any(e.primitive is platform_index_p for e in walk_eqns(program.jaxpr)):
        return program
    jaxpr, known, eqns = program.jaxpr, dict[Atom, Any](), list[Eqn]()

    def read(atom: Atom) -> Atom:
        return make_literal(np.int32(known[atom])) if isinstance(atom, Var) and atom in known else atom

    for eqn in jaxpr.eqns:
        if eqn.primitive is platform_index_p:
            known[eqn.outvars[0]] = position(eqn.params["platforms"], names)
        elif eqn.primitive is cond_p and eqn.invars[0] in known:
            chosen = settled(eqn.params["branches"][known[eqn.invars[0]]], names)
            eqns.append(
                Eqn(
                    closed_call_p,
                    list(map(read, eqn.invars[1:])),
                    eqn.outvars,
                    {"call_jaxpr": chosen},
                    chosen.effects,
                    eqn.source,
                )
            )
        else:
            inner = with_programs(eqn, lambda p: settled(p, names))
            eqns.append(inner.replace(invars=list(map(read, inner.invars))))
    outs = list(map(read, jaxpr.outvars))
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, outs, eqns, None, jaxpr.debug_name), program.consts)
