"""``explain`` and ``draw``: what a function is compiled to, as a table and as a picture. Nothing is run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import Any

from polyax.api.arguments import wraps
from polyax.api.jit import PjitFunction, jit
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.hooks import CompileEvent
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.plugins import compilations
from polyax.runtime.running.compiling import build
from polyax.runtime.telling.explanation import Explanation
from polyax.trace.flat import check_callable


def explain(fun: Callable[..., Any], **options: Any) -> Callable[..., Explanation]:
    """A function that prints and returns what ``fun`` is compiled to for its arguments.

    The table shows kernels, library calls and copies with the primitives fused into each, bytes moved and scalar
    operations; the memory of a launch; and why pairs were not fused. In interactive sessions the returned object is
    what is shown; elsewhere it is printed.

    Args:
      fun: a function as for ``jit``, jitted or not.
      options: arguments of ``jit`` (``static_argnums``, ``donate_argnums``, ``device``, ...) for one that is not.

    Returns:
      A function of the arguments of ``fun`` (arrays, or ``ShapeDtypeStruct``) that gives an ``Explanation``; its
      ``report`` has all data, the kernels' sources included.

    >>> import polyax
    >>> told = polyax.explain(lambda x: x * 2 + 1)(polyax.numpy.ones(4))
    <lambda> on ...
    >>> told.report.kernels[0].outputs
    (ShapedArray(float32[4]),)
    """
    check_callable(fun)

    @wraps(fun, "Explains what {fun} is compiled to.")
    @api_boundary
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        event = compiled(fun, args, kwargs, options)
        where = event.mesh or event.device
        told = Explanation(event.name, where, event.jaxpr, event.report(), tuple(event.moves))
        if not hasattr(sys, "ps1"):
            print(told)
        return told

    return explained


def draw(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A function that draws what ``fun`` is compiled to for its arguments; ``polyax-inspect`` does the drawing.

    Equations are nodes, values are edges, and the equations of one kernel stand in a box. The result has ``svg`` and
    ``html`` (texts), and ``save(path)``; notebooks show it. Arguments as for ``explain``.

    Raises:
      ImportError: no plugin that draws is installed.
    """
    check_callable(fun)

    @wraps(fun, "Draws what {fun} is compiled to.")
    @api_boundary
    def drawn(*args: Any, **kwargs: Any) -> Any:
        return compilations.draw(compiled(fun, args, kwargs, options))

    return drawn


def compiled(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> CompileEvent:
    """A new executable of ``fun``, made to be looked at, with what it was made from."""
    if isinstance(fun, MethodType) and isinstance(fun.__func__, PjitFunction):
        fun, args = fun.__func__, (fun.__self__, *args)
    jitted = fun if isinstance(fun, PjitFunction) and not options else jit(fun, **options)
    program = jitted.staged(args, kwargs)
    if isinstance(program.where, Device):
        return build(program.closed, program.where, program.name, program.given, stages=True)
    parts, mesh = program.meshed.parts, program.where.mesh
    event = build(parts.program, program.devices[0], program.name, (), stages=True, mesh=mesh)
    return replace(event, moves=parts.moves)
