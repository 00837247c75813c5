"""Programs written out: calls of nested programs in place, values numbered. What compilers note and drawings show.

Must not know which calls a compiler opens; it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ir.source import Source


class Line(NamedTuple):
    """An equation between numbered values. Of equal equations the later ones may have the results of the first."""

    eqn: Eqn
    inputs: tuple[int, ...]
    outs: tuple[int, ...]


@dataclass
class Listing:
    """``lines[n]`` is equation number n; value v has the type ``avals[v]``."""

    inputs: Sequence[int] = ()
    """Constants, then arguments."""
    outputs: Sequence[int] = ()
    lines: list[Line] = field(default_factory=list)
    avals: list[ShapedArray] = field(default_factory=list)
    literals: Mapping[int, Any] = field(default_factory=dict)
    """The values that are written in the program: scalars, and arrays that a decomposition brings along."""


def flatten(jaxpr: Jaxpr, opened: Callable[[Eqn], ClosedJaxpr | None]) -> Listing:
    """``jaxpr`` written out; ``opened`` gives the program that an equation only calls, None if it is to stay."""
    return _Flattening(opened).run(jaxpr)


class _Frame:
    """A program that is being walked, for the line ``source``; ``results``: what its outputs are called in the outer
    one."""

    def __init__(
        self, jaxpr: Jaxpr, env: dict[Var, int], results: Sequence[Var] = (), source: Source | None = None
    ) -> None:
        self.jaxpr = jaxpr
        self.env = env
        self.results = results
        self.source = source
        self.eqns: Iterator[Eqn] = iter(jaxpr.eqns)


class _Flattening:
    def __init__(self, opened: Callable[[Eqn], ClosedJaxpr | None]) -> None:
        self.opened = opened
        self.avals: list[ShapedArray] = []
        self.literals: dict[int, Any] = {}
        self.lines: list[Line] = []

    def value(self, aval: ShapedArray) -> int:
        self.avals.append(aval)
        return len(self.avals) - 1

    def scalar(self, value: Any, aval: ShapedArray) -> int:
        number = self.value(aval)
        self.literals[number] = value
        return number

    def read(self, env: Mapping[Var, int], atom: Atom) -> int:
        return self.scalar(atom.val, atom.aval) if isinstance(atom, Literal) else env[atom]

    def run(self, jaxpr: Jaxpr) -> Listing:
        outermost = _Frame(jaxpr, {v: self.value(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)})
        inputs = list(outermost.env.values())
        frames = [outermost]
        while frames:
            inner = self.enter(frames[-1])
            if inner is not None:
                frames.append(inner)
                continue
            done = frames.pop()
            if frames:
                outs = [self.read(done.env, a) for a in done.jaxpr.outvars]
                frames[-1].env.update(zip(done.results, outs, strict=True))
        outputs = [self.read(outermost.env, a) for a in jaxpr.outvars]
        return Listing(inputs, outputs, self.lines, self.avals, self.literals)

    def enter(self, frame: _Frame) -> _Frame | None:
        """Goes on with ``frame`` up to the next call, whose program is returned, or to its end."""
        for eqn in frame.eqns:
            args = tuple([self.read(frame.env, a) for a in eqn.invars])
            called = self.opened(eqn)
            source = eqn.source or frame.source
            if called is not None:
                return self.called(called, args, eqn.outvars, source)
            outs = tuple([self.value(v.aval) for v in eqn.outvars])
            frame.env.update(zip(eqn.outvars, outs, strict=True))
            self.lines.append(Line(eqn if eqn.source is source else eqn.replace(source=source), args, outs))
        return None

    def called(self, closed: ClosedJaxpr, args: Sequence[int], results: Sequence[Var], source: Source | None) -> _Frame:
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.invars, args, strict=True))
        env.update((v, self.scalar(c, v.aval)) for v, c in zip(jaxpr.constvars, closed.consts, strict=True))
        return _Frame(jaxpr, env, results, source)
