"""Functions of several primitives that are one program when they are called eagerly."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.api import jit
from polyax.ir.primitive import ambient


def fused(fun: Callable[..., Any] | None = None, *, static_argnames: Sequence[str] = ()) -> Any:
    """Decorator: compiles ``fun`` for eager calls; inside a trace its primitives are recorded as they are."""
    if fun is None:
        return functools.partial(fused, static_argnames=static_argnames)
    program = jit(fun, static_argnames=static_argnames)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if ambient.trace is not None:
            return fun(*args, **kwargs)
        return program(*args, **kwargs) if ambient.applied is None else program.slowly(args, kwargs)

    return call
