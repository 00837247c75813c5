"""Functions with rules of their own that are right: random programs call them by these names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def own_jvp(jax: Any) -> Callable[[Function], Function]:
    """Of the module ``jax``, what gives a function its own derivative as a ``custom_jvp`` rule."""

    def wrap(g: Function) -> Function:
        h = jax.custom_jvp(g)
        h.defjvp(lambda primals, tangents: jax.jvp(g, primals, tangents))
        return h

    return wrap


def own_vjp(jax: Any) -> Callable[[Function], Function]:
    """The same with ``custom_vjp``, the residuals being the arguments."""

    def wrap(g: Function) -> Function:
        h = jax.custom_vjp(g)
        h.defvjp(lambda *args: (g(*args), args), lambda args, ct: jax.vjp(g, *args)[1](ct))
        return h

    return wrap
