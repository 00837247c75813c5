"""Expressions where some indices are numbers: what these decide is decided, and what isn't chosen is not looked at.

Of a fold over stacked arrays each turn chooses one by its number. To put numbers into all that it chooses from, and to
find out then that it isn't wanted, takes as many times as long as there are arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from polyax_kernels.ir import scalars
from polyax_kernels.ir.expr import Axis, Expr, Load, const, make, postorder, rebuild

_PLAIN = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
"""What Python's numbers do as all others, in a tenth of the time."""


class Placing:
    """Puts numbers for the indices of some axes into expressions, as often as wanted."""

    def __init__(self, axes: Sequence[Axis], *roots: Expr) -> None:
        self.moving = set[Expr]()
        """What depends on one of the axes."""
        for x in postorder(*roots):
            if (x.kind == "index" and x.attr in axes) or not self.moving.isdisjoint(x.args):
                self.moving.add(x)

    def at(self, places: Mapping[Axis, int]) -> Callable[[Expr], Expr]:
        """The function that puts these numbers into one of the roots: linear in the number of nodes that are chosen."""
        done: dict[Expr, Expr] = {}

        def placed(root: Expr) -> Expr:
            stack = [root]
            while stack:
                x = stack[-1]
                if x in done or x not in self.moving:
                    done.setdefault(x, x)
                    stack.pop()
                elif x.kind == "index":
                    done[x] = const(places[x.attr])
                elif missing := [a for a in _wanted(x, done) if a not in done]:
                    stack += missing
                else:
                    done[x] = _made(x, done)
            return done[root]

        return placed


def _decision(x: Expr) -> Expr | None:
    """What ``x`` depends on that may decide it."""
    if x.kind == "op" and x.attr == "select":
        return x.args[0]
    return x.args[-2] if x.kind == "load" and x.attr.masked else None


def _chosen(x: Expr, holds: bool) -> tuple[Expr, ...]:
    """The operands that are left once it is decided."""
    if x.kind == "load":
        return x.args[:-2] if holds else x.args[-1:]
    return x.args[1:2] if holds else x.args[2:]


def _wanted(x: Expr, done: Mapping[Expr, Expr]) -> Sequence[Expr]:
    """The operands that are to be done next."""
    asked = _decision(x)
    if asked is None:
        return x.args
    if asked not in done:
        return (asked,)
    return _chosen(x, bool(done[asked].attr)) if done[asked].kind == "const" else x.args


def _made(x: Expr, done: Mapping[Expr, Expr]) -> Expr:
    asked = _decision(x)
    if asked is not None and done[asked].kind == "const":
        holds = bool(done[asked].attr)
        args = tuple([done[a] for a in _chosen(x, holds)])
        return make("load", x.dtype, args, Load(x.attr.slot)) if x.kind == "load" and holds else args[0]
    return _evaluated(rebuild(x, tuple([done[a] for a in x.args])))


def _evaluated(x: Expr) -> Expr:
    """A constant, if it is an operation on whole numbers that are known."""
    whole = all(y.dtype.kind in "biu" for y in (x, *x.args))
    if x.kind != "op" or not whole or any(a.kind != "const" for a in x.args):
        return x
    if x.attr in _PLAIN:
        return const(_PLAIN[x.attr](*(a.attr for a in x.args)), x.dtype)
    return const(scalars.evaluate(x.attr, *(a.dtype.type(a.attr) for a in x.args)).item(), x.dtype)
