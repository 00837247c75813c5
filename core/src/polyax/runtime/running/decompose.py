"""Primitives without a lowering, replaced by what they are made of before a program is compiled.

Must not know which primitives these are: they carry a ``decompose`` rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.jaxpr import ClosedJaxpr, eval_jaxpr, walk_eqns
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.backend import Buffer, Executable
from polyax.runtime.contract.report import Report
from polyax.trace.context import set_trace
from polyax.trace.recording import DynamicJaxprTrace


def decomposed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """``closed``, which has no constants, without primitives that have a ``decompose`` rule; itself if it has none.

    Arrays that a rule brings along are constants of the result.
    """
    if not any(e.primitive.decompose is not None for e in walk_eqns(closed.jaxpr)):
        return closed
    trace = _Decomposing(closed.jaxpr.debug_name)
    args = [trace.new_arg(a) for a in closed.in_avals]
    try:
        with set_trace(trace):
            return trace.to_jaxpr(eval_jaxpr(closed.jaxpr, closed.consts, args))
    finally:
        trace.invalidate()


class _Decomposing(DynamicJaxprTrace):
    """Records what rules do in the place of their primitives, in nested programs as well."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        if primitive.decompose is not None:
            return primitive.decompose(*args, **params)
        return super().process(primitive, args, {name: _inside(value) for name, value in params.items()})


def _inside(value: Any) -> Any:
    """A parameter with the programs in it decomposed."""
    if isinstance(value, ClosedJaxpr):
        inner = decomposed(value)
        if len(inner.consts) > len(value.consts):
            raise NotImplementedError(
                f"the decomposition of a primitive in {value.jaxpr.debug_name or 'a nested program'} brings an array "
                f"of type {inner.jaxpr.constvars[-1].aval} along; make it of operations such as iota and full there"
            )
        return inner
    return tuple(map(_inside, value)) if type(value) is tuple else value


class WithConstants(Executable):
    """An executable whose first inputs are always the same."""

    def __init__(self, executable: Executable, constants: Sequence[Buffer]) -> None:
        self.executable = executable
        self.constants = list(constants)

    def launch(self, buffers: Sequence[Buffer], queue: Any, tokens: Any = None) -> Any:
        return self.executable.launch([*self.constants, *buffers], queue, *(() if tokens is None else (tokens,)))

    def report(self) -> Report:
        return self.executable.report()
