"""Functions of several primitives that run as one program although nobody asked for that with ``jit``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from polyax.control.calls.jit import call
from polyax.ir.aval import aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.arrays.array import is_concrete
from polyax.trace.recording import trace_to_jaxpr

Keep = Callable[[Any, Callable[[], ClosedJaxpr]], ClosedJaxpr]
"""What is kept by a key, made if there is nothing."""


def joint(fun: Callable[..., Any], args: Sequence[Any], key: tuple[Any, ...], keep: Keep) -> Any:
    """``fun(*args)``, which gives one array, as one program. Those of the arguments that are arrays are its own; with
    the others, ``key`` tells functions apart."""
    arrays = [n for n, x in enumerate(args) if is_concrete(x)]
    avals = [aval_of(args[n]) for n in arrays]

    def program(*tracers: Any) -> list[Any]:
        given = dict(zip(arrays, tracers, strict=True))
        return [fun(*[given.get(n, x) for n, x in enumerate(args)])]

    def made() -> ClosedJaxpr:
        return trace_to_jaxpr(program, avals, name=getattr(key[0], "__name__", "joint"))

    rest = [x for n, x in enumerate(args) if n not in arrays]
    whole: tuple[Hashable, ...] = (*key, tuple(arrays), tuple(avals), tuple(rest), config.trace_key())
    try:
        closed = keep(whole, made)
    except TypeError:  # an argument that can't be told from others
        closed = made()
    options = {"name": closed.jaxpr.debug_name, "inline": False, "keep_unused": False, "device": None}
    return call(closed, [args[n] for n in arrays], **options)[0]
