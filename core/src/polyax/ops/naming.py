"""Names of values, by which ``checkpoint`` may be told what to save, and of parts of programs, which are kept with the
sources of equations. They change nothing that is computed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ir.source import inside
from polyax.meshes.factors import elementwise
from polyax.trace.flat import check_callable, name_of

name_p = Primitive("name")
"""``name[name=...] x``: ``x``, under a name that policies know."""
name_p.linear_in = (0,)
name_p.factors = elementwise


@def_rule(name_p, "abstract_eval")
def _abstract_eval(x: ShapedArray, *, name: str) -> list[ShapedArray]:
    return [x]


@def_rule(name_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
    return [name_p.bind1(*primals, name=name)], list(tangents)


@def_rule(name_p, "batch")
def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, name: str) -> Any:
    return name_p.bind_all(*args, name=name), list(dims)


@def_rule(name_p, "transpose")
def _transpose(cts: Sequence[Any], x: Any, *, name: str) -> list[Any]:
    return list(cts)


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
