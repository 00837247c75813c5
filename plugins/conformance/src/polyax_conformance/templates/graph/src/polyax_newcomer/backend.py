"""The backend: a program is written out, cut into parts for the engine and parts for the host, and run part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from polyax.backend import (
    HELP_COST,
    ClosedJaxpr,
    CompileOptions,
    HostArrayBackend,
    HostArrayExecutable,
    KernelReport,
    Literal,
    Primitive,
    ProgramPart,
    Report,
    ShapedArray,
    inline_calls,
    on_host,
    partition,
)

from polyax_newcomer import engine


class NewcomerBackend(HostArrayBackend):
    """Devices of the host, whose arrays are NumPy's."""

    name = "newcomer"

    def __init__(self) -> None:
        super().__init__("the engine of newcomer")

    def compile(self, jaxpr: ClosedJaxpr, options: CompileOptions) -> NewcomerExecutable:
        return NewcomerExecutable(jaxpr, self)

    def why_not(
        self,
        primitive: Primitive,
        avals: Sequence[ShapedArray],
        outs: Sequence[ShapedArray],
        params: Mapping[str, Any],
    ) -> str | None:
        """The reason why the engine doesn't take an equation, if so: it stays on the host then."""
        return engine.why_not(primitive.name, [str(a.dtype) for a in (*avals, *outs)])


class NewcomerExecutable(HostArrayExecutable):
    """A program as parts, which run one after the other."""

    def __init__(self, closed: ClosedJaxpr, backend: NewcomerBackend) -> None:
        self.whole = inline_calls(closed)
        self.parts = partition(self.whole, backend.declines)
        self.steps = [(part, made(part)) for part in self.parts]
        cost = HELP_COST + 1  # it may take long: the caller goes on meanwhile
        super().__init__(self.run, len(closed.jaxpr.outvars), cost, closed.effects)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        jaxpr = self.whole.jaxpr
        values = dict(zip((*jaxpr.constvars, *jaxpr.invars), arrays, strict=True))
        for part, step in self.steps:
            results = step([values[v] for v in part.program.jaxpr.invars])
            for v in part.dropped:
                del values[v]
            values.update(zip(part.program.jaxpr.outvars, results, strict=True))
        return [np.asarray(a.val, a.aval.dtype) if isinstance(a, Literal) else values[a] for a in jaxpr.outvars]

    def report(self) -> Report:
        """What ``polyax.explain`` shows."""
        return Report("newcomer", [told(part) for part in self.parts])


def made(part: ProgramPart) -> engine.Run:
    if part.taken:
        return engine.session(part.program.jaxpr)
    everything = part.reasons  # may run in NumPy, for the beginning; `polyax.backend.LIBRARY` is what should in the end
    return on_host(part.program, "newcomer", part.reasons, everything)


def told(part: ProgramPart) -> KernelReport:
    jaxpr = part.program.jaxpr
    names = tuple(eqn.primitive.name for eqn in jaxpr.eqns)
    moved = sum(v.aval.nbytes for v in (*jaxpr.invars, *jaxpr.outvars))
    flops = sum(v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars)
    outs = tuple(v.aval for v in jaxpr.outvars)
    kind, source = ("kernel", engine.source(jaxpr)[0]) if part.taken else ("call", "")
    return KernelReport("engine" if part.taken else "host", names, moved, flops, source, kind=kind, outputs=outs)
