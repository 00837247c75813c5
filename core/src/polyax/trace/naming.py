"""Names for parts of programs: they are kept with the sources of equations, and change nothing that is computed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from polyax.ir.primitive import ambient
from polyax.ir.source import inside
from polyax.trace.flat import check_callable, name_of


class named_scope(contextlib.ContextDecorator):
    """A context manager, also a decorator: equations made inside carry ``name``, after the names around it. Those of a
    function that is transformed stand in the name of the transformation, as in ``jvp(name)``.

    Raises:
      TypeError: ``name`` is no string.

    >>> import polyax
    >>> def f(x):
    ...     with named_scope("outer"), named_scope("inner"):
    ...         return polyax.lax.sin(x)
    >>> polyax.make_jaxpr(f)(1.0).eqns[0].source.scope
    'outer/inner'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("named_scope name argument must be a string.")
        self._name = name
        self._before: list[str] = []  # a decorated function may call itself

    def __enter__(self) -> None:
        self._before.append(ambient.scope)
        ambient.scope = inside(ambient.scope, self._name)

    def __exit__(self, *_: object) -> None:
        ambient.scope = self._before.pop()


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """``fun``, whose equations carry ``name``, by default its own."""
    check_callable(fun)

    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(name_of(fun) if name is None else name):
            return fun(*args, **kwargs)

    return named
