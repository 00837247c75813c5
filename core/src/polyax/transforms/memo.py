"""Memoisation of program-to-program maps: results live as long as the program that they were made from."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr

P = ParamSpec("P")
R = TypeVar("R")


def memoize_by_jaxpr(fun: Callable[P, R]) -> Callable[P, R]:
    """Caches ``fun(closed_jaxpr, *hashables)`` by the identity of its first argument."""
    results: weakref.WeakKeyDictionary[ClosedJaxpr, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(fun)
    def cached(*args: P.args, **kwargs: P.kwargs) -> R:
        jaxpr: Any = args[0]
        entries = results.setdefault(jaxpr, {})
        key = (args[1:], tuple(kwargs.items()), config.trace_key())
        if key not in entries:
            entries[key] = fun(*args, **kwargs)
        return entries[key]

    return cached
