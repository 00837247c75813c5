"""``ensure_compile_time_eval``: what doesn't depend on tracers is computed while a function is traced."""

from __future__ import annotations

from typing import Any

from polyax.ir.primitive import Primitive, ambient, eval_trace
from polyax.trace.context import set_trace
from polyax.trace.tracer import Trace, Tracer


class FoldingTrace(Trace):
    """Runs operations on arrays; those on tracers belong to the trace around it."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent = parent

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        staged = any(isinstance(x, Tracer) for x in args)
        trace = self.parent if staged else eval_trace[0]
        with set_trace(trace):
            return trace.process(primitive, args, params)


def ensure_compile_time_eval() -> set_trace:
    """Inside the ``with`` block, operations on values that are known run at once, even if a function is being traced.

    >>> import polyax
    >>> import polyax.numpy as jnp
    >>> @polyax.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(jnp.square(3))
    ...     return x * n
    >>> f(2.0).item()
    18.0
    """
    outer = ambient.trace
    return set_trace(None if outer is None else FoldingTrace(outer))
