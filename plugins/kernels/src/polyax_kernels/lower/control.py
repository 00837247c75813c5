"""Control flow as lowerings: how programs within equations become steps of plans. Knows no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax_kernels.lower.lowering import WhyNot, always
from polyax_kernels.plan.loops import Scan, While
from polyax_kernels.plan.plan import CallStep
from polyax_kernels.plan.programs import InnerProgram, Machine, Run, Step


@dataclass(frozen=True)
class Control:
    """Control flow: ``make(machine, step)`` gives the function that runs the step on the memory of its executable's
    bases. ``reads_back``: on the way, values that decide how it goes on are read on the host."""

    make: Callable[[Machine, CallStep], Run]
    turns: Callable[..., int] = lambda **_: 1
    """How often the inner programs run, as far as is known."""
    carries: Callable[..., range] = lambda **_: range(0)
    """The arguments that may be in the memory of the first results."""
    reads_back: bool = False
    why_not: WhyNot = always
    priority: int = 0

    def work(self, params: dict[str, Any]) -> int:
        """About how many elements are computed: whether it is worth a thread of its own."""
        programs = [p for x in params.values() for p in (x if isinstance(x, tuple) else (x,))]
        bodies = [p for p in programs if isinstance(p, ClosedJaxpr)]
        eqns = (e for p in bodies for e in walk_eqns(p.jaxpr))
        return self.turns(**params) * sum(v.aval.size for e in eqns for v in e.outvars)


class Cond(Step):
    def prepare(self, params: Mapping[str, Any]) -> None:
        self.branches = [InnerProgram(self.machine, b) for b in params["branches"]]

    def run(self, args: list[Any], outs: list[Any]) -> None:
        branch = self.branches[int(self.machine.peek(args[0], np.dtype("int32")))]
        branch.run(branch.frame(args[1:], outs))


UNKNOWN_TURNS = 1000


def _carried_by_scan(*, num_consts: int, num_carry: int, **_: Any) -> range:
    return range(num_consts, num_consts + num_carry)


def _carried_by_while(*, cond_nconsts: int, body_nconsts: int, body_jaxpr: ClosedJaxpr, **_: Any) -> range:
    first = cond_nconsts + body_nconsts
    return range(first, first + len(body_jaxpr.out_avals))


CONTROL: dict[str, Control] = {
    "cond": Control(Cond, reads_back=True),
    "while": Control(While, lambda **_: UNKNOWN_TURNS, _carried_by_while, reads_back=True),
    "scan": Control(Scan, lambda *, length, **_: length, _carried_by_scan),
}
"""The rules that all kernel backends share."""
