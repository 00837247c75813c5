"""``sparsify`` by tracing: tracers that stand for sparse arrays, without a program in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.control.calls.custom_jvp import custom_jvp_call_p
from polyax.experimental.sparse.sparsifying.interpreter import dense_type
from polyax.experimental.sparse.sparsifying.table import is_sparse, marked, rule_for
from polyax.ir.primitive import Primitive
from polyax.trace.context import current_trace, set_trace
from polyax.trace.tracer import Trace, Tracer
from polyax.trace.tree import tree_flatten, tree_map, tree_unflatten


class SparseTracer(Tracer):
    """A sparse or a dense array, in place of a dense one."""

    __slots__ = ("spvalue",)

    def __init__(self, trace: Trace, *, spvalue: Any) -> None:
        super().__init__(trace, dense_type(spvalue))
        self.spvalue = spvalue


class SparseTrace(Trace):
    """Applies the rules for sparse operands; what has none goes to the trace below."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent = parent

    def value(self, x: Any) -> Any:
        return x.spvalue if isinstance(x, SparseTracer) and x._trace is self else x

    def join(self, x: Any) -> Any:
        return SparseTracer(self, spvalue=x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        if primitive is custom_jvp_call_p and params["call_jaxpr"] is None:
            return params["fun"](*args)  # what isn't recorded yet runs here
        values = [self.value(x) for x in args]
        with set_trace(self.parent):
            rule = rule_for(primitive, values)
            outs = self.parent.process(primitive, tuple(values), params) if rule is None else rule(*values, **params)
            return [self.join(x) for x in outs]


def traced(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun`` of arguments of which some are sparse; it is run with tracers."""

    def wrapped(*args: Any) -> Any:
        leaves, tree = tree_flatten(args, is_leaf=is_sparse)
        trace = SparseTrace(current_trace())
        try:
            with set_trace(trace):
                out = fun(*tree_unflatten(tree, [trace.join(marked(x)) for x in leaves]))
            return tree_map(trace.value, out, is_leaf=is_sparse)
        finally:
            trace.invalidate()

    return wrapped
