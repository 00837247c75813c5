"""``polyax.core``: types, traces and the evaluation of programs, as in ``jax.core``."""

from __future__ import annotations

from typing import Any

from polyax.api.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from polyax.ir import jaxpr as _ir
from polyax.ir.aval import ShapedArray as ShapedArray
from polyax.ir.dims import max_dim as max_dim
from polyax.ir.dims import min_dim as min_dim
from polyax.ir.jaxpr import Atom as Atom
from polyax.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from polyax.ir.jaxpr import Jaxpr as Jaxpr
from polyax.ir.jaxpr import Literal as Literal
from polyax.ir.jaxpr import Var as Var
from polyax.trace.context import set_trace
from polyax.trace.tracer import Trace as Trace
from polyax.trace.tracer import Tracer as Tracer

AbstractValue = ShapedArray
Value = Any
ParamDict = dict[str, Any]


def eval_jaxpr(jaxpr: Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """The results of a program for its constants and arguments.

    >>> import polyax
    >>> closed = polyax.make_jaxpr(lambda x: x * 3.0)(1.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 2.0)[0].item()
    6.0
    """
    return _ir.eval_jaxpr(jaxpr, consts, args)


def eval_context() -> set_trace:
    """Inside the ``with`` block operations run at once, whatever is being traced; tracers can't be used."""
    return set_trace(None)
