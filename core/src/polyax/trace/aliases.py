"""References as arguments and results of users' functions: each may be known to a function by one name, and none can be
returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.refs import AbstractRef, is_ref
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.recording import SourceOf
from polyax.trace.tree import PyTreeDef, tree_unflatten


def referent(x: Any) -> Any:
    """What is the same for all that stand for one reference."""
    for part in ("atom", "primal", "value"):
        inner = getattr(x, part, None)
        if inner is not None:
            return referent(inner)
    return x


def refuse_twice(args: Sequence[Any], source: SourceOf) -> None:
    """Raises ValueError if a reference is among the arguments more than once."""
    seen: dict[int, int] = {}
    for n, x in enumerate(args):
        known = is_ref(x) and not isinstance(x, AbstractRef)
        first = seen.setdefault(id(referent(x)), n) if known else n
        if first != n:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, but when tracing "
                f"{source} for {source.traced_for} the mutable array reference of type {aval_of(x)} appeared at both "
                f"{source.name(first)} and {source.name(n)}."
            )


def refuse_both(consts: Sequence[Any], args: Sequence[Any], source: SourceOf) -> None:
    """Raises ValueError if a reference that the function closes over is among the arguments."""
    closed_over = {id(referent(c)) for c in consts if is_ref(c)}
    for n, x in enumerate(args):
        if closed_over and is_ref(x) and id(referent(x)) in closed_over:
            raise ValueError(
                f"when tracing {source} for {source.traced_for}, a mutable array reference of type {aval_of(x)} was "
                f"both closed over and passed as the argument {source.name(n)}"
            )


def refuse_returned(program: ClosedJaxpr, out_tree: PyTreeDef, source: SourceOf) -> None:
    """Raises ValueError if a result is a reference."""
    for n, aval in enumerate(program.out_avals):
        if is_ref(aval):
            path = keystr(tree_leaves_with_path(tree_unflatten(out_tree, program.out_avals))[n][0])
            where = f" at output tree path result{path}" if path else ""
            raise ValueError(
                f"function {source} traced for {source.traced_for} returned a mutable array reference of type "
                f"{aval}{where}, but mutable array references cannot be returned.{_origin(program, n, source)}"
            )


def _origin(program: ClosedJaxpr, n: int, source: SourceOf) -> str:
    var = program.jaxpr.outvars[n]
    made = next((e for e in program.eqns if var in e.outvars), None)
    if made is not None:
        return f"\n\nThe returned mutable array was created on line {made.source}."
    if var in program.jaxpr.invars:
        name = source.name(program.jaxpr.invars.index(var))  # type: ignore[arg-type]
        return f"\n\nThe returned mutable array was passed in as the argument {name}."
    return ""
