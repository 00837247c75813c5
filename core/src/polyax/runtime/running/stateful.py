"""Compiled calls of programs with references: what these hold goes in as arguments, and comes back as results.

What a program writes to is donated, so that it is written over in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.inner.lists import cut
from polyax.control.refs.discharge import discharged
from polyax.control.refs.ref import Ref
from polyax.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from polyax.ir.lazy import lazy
from polyax.ir.refs import is_ref
from polyax.meshes.sharding import NamedSharding, Sharding
from polyax.runtime.running.meshed import Meshed
from polyax.runtime.running.programs import Entry, Moved, Program
from polyax.runtime.running.staged import Staged
from polyax.trace.calls import TracedFunction, UserCall
from polyax.trace.tree import PyTreeDef, tree_structure, tree_unflatten

Refuse = Callable[[Sequence[Any], Sequence[Any]], None]


class Stateful:
    """A traced function with references among its arguments, or among what it closes over, or inside."""

    def __init__(self, traced: TracedFunction) -> None:
        self.traced = traced
        closed = traced.closed
        self.closed_over = [c for c in closed.consts if is_ref(c)]
        made = discharged(_with_refs_first(closed))
        self.written = made.written
        self.num_outs = len(closed.out_avals)
        self.shared = _shared(made.program.jaxpr, self.num_outs, made.num_written)
        donated = traced.donated or (False,) * len(closed.in_avals)
        donated = [d and not is_ref(a) for d, a in zip(donated, closed.in_avals, strict=True)]
        donated = [*[False] * len(self.closed_over), *donated]
        given = tuple([d or w for d, w in zip(donated, self.written, strict=True)])
        out_tree = tree_structure([closed] * len(made.program.out_avals))
        self.pure = TracedFunction(made.program, out_tree, given if any(given) else ())
        """The same without references."""

    def all(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments of a call behind the references that are closed over."""
        return [*self.closed_over, *leaves]

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """What a call is made with."""
        return [x._refs if isinstance(x, Ref) else x for x in self.all(leaves)]

    def asked(self, asked: tuple[Sequence[Any], Sequence[Any]], leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The shardings asked for: what references hold stays as it lies."""
        ins, outs = asked
        refs = [r for r, w in zip(self.all(leaves), self.written, strict=True) if w]
        return [*[None] * len(self.closed_over), *ins], [*outs, *map(_lies, refs)]

    def names(self, call: UserCall) -> Callable[[], list[str]]:
        """What error texts call the values."""
        return lambda: [*["a reference that is closed over"] * len(self.closed_over), *call.names()]

    def entry(self, run: Entry, refuse: Refuse) -> Entry:
        """The entry of the function, from that of ``pure``; ``refuse`` tells why a reference can't come twice."""
        tree = self.traced.out_tree

        def entry(leaves: Sequence[Any]) -> Any:
            given = self.all(leaves)
            refs = [x for x in given if is_ref(x)]
            if len({id(r) for r in refs}) != len(refs):
                refuse(leaves, self.closed_over)
            pairs = zip(given, self.written, strict=True)
            outs = run([x if not is_ref(x) else x.own() if w else x._refs for x, w in pairs])
            outs, news = cut(outs, self.num_outs)
            self._put(given, news)
            return tree_unflatten(tree, outs)

        return entry

    def _put(self, given: Sequence[Any], news: Sequence[Any]) -> None:
        refs = [r for r, w in zip(given, self.written, strict=True) if w]
        for ref, new, shared in zip(refs, news, self.shared, strict=True):
            ref.take(new, shared)


@dataclass(frozen=True)
class StatefulStaged(Staged):
    """``inner`` is the same without references."""

    inner: Staged
    stateful: Stateful
    refuse: Refuse

    @lazy
    def program(self) -> Program:
        return self.inner.program

    @lazy
    def meshed(self) -> Meshed:
        return self.inner.meshed

    def entry(self, out_tree: PyTreeDef, moved: Moved | None) -> Entry:
        return self.stateful.entry(self.inner.entry(self.stateful.pure.out_tree, moved), self.refuse)

    def native_call(self, call: UserCall, out_tree: PyTreeDef) -> None:
        """None: references get new contents after each call."""

    @property
    def in_shardings(self) -> list[Sharding]:
        return self.inner.in_shardings[len(self.stateful.closed_over) :]

    @property
    def out_shardings(self) -> list[Sharding]:
        return self.inner.out_shardings[: self.stateful.num_outs]


def _lies(ref: Any) -> Any:
    """How what it holds lies on a mesh; None on one device."""
    sharding = getattr(ref, "sharding", None)
    return sharding if isinstance(sharding, NamedSharding) else None


def _with_refs_first(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with references that it closes over as first inputs."""
    pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    others = [(v, c) for v, c in pairs if not is_ref(c)]
    refs = [v for v, c in pairs if is_ref(c)]
    jaxpr = closed.jaxpr.replace(constvars=[v for v, _ in others], invars=[*refs, *closed.jaxpr.invars])
    return ClosedJaxpr(jaxpr, [c for _, c in others])


def _shared(jaxpr: Jaxpr, num_outs: int, num_written: int) -> list[bool]:
    """Which of the last values are also results, or arguments that come out as they were: others have them, too."""
    outs, news = cut(jaxpr.outvars, num_outs)
    known = {*jaxpr.invars, *jaxpr.constvars, *(v for v in outs if not isinstance(v, Literal))}
    return [v in known or news.count(v) > 1 for v in news]
