"""Names for parts of programs: they are kept with the sources of equations, and change nothing that is computed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator
from typing import Any

from polyax.ir.primitive import ambient
from polyax.trace.flat import check_callable, name_of


@contextlib.contextmanager
def named_scope(name: str) -> Generator[None]:
    """A context manager, also a decorator: equations made inside carry ``name``, after the names around it.

    Raises:
      TypeError: ``name`` is no string.

    >>> import polyax
    >>> def f(x):
    ...     with named_scope("outer"), named_scope("inner"):
    ...         return polyax.lax.sin(x)
    >>> polyax.make_jaxpr(f)(1.0).eqns[0].source.scope
    'outer/inner'
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("named_scope name argument must be a string.")
    before = ambient.scope
    ambient.scope = f"{before}/{name}" if before else name
    try:
        yield
    finally:
        ambient.scope = before


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """``fun``, whose equations carry ``name``, by default its own."""
    check_callable(fun)

    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(name_of(fun) if name is None else name):
            return fun(*args, **kwargs)

    return named
