"""Memoisation by program: what is made from a program lies in that program, and so lives exactly as long.

No table outside could tell what to keep: results may hold the program that they were made from.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Concatenate, ParamSpec, TypeVar

from polyax.ir.config import config
from polyax.ir.forks import uncut
from polyax.ir.jaxpr import ClosedJaxpr

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)

_owners: weakref.WeakSet[ClosedJaxpr] = weakref.WeakSet()  # the programs that executables are kept in
_making: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_guard = threading.Lock()
"""Held for a look at these two, never while anything is made."""


def memoize_by_jaxpr(fun: Callable[Concatenate[ClosedJaxpr, P], R]) -> Callable[Concatenate[ClosedJaxpr, P], R]:
    """Caches ``fun(closed_jaxpr, *hashables)`` by the identity of its first argument.

    Threads that meet here may both call ``fun``, whose rules are users' as well, but get one result.
    """

    @functools.wraps(fun)
    def cached(program: ClosedJaxpr, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = fun, args, frozenset(kwargs.items()), config.trace_key()
        try:
            return program.memo[key]
        except KeyError:
            pass
        return program.memo.setdefault(key, fun(program, *args, **kwargs))

    return cached


def kept(program: ClosedJaxpr, key: Hashable, make: Callable[[], R], wait: bool = True) -> R:
    """What ``make`` gives, made once for this program and key; it lives as long as the program, or until ``forget``."""
    found = program.memo.get(key)
    if found is None:
        found = once(program.memo, key, make, wait)
        with _guard:
            _owners.add(program)
    return found


def once(table: dict[K, R], key: K, make: Callable[[], R], wait: bool = True) -> R:
    """``table[key]``, made by the first thread that asks for it; others wait for that thread, unless they can't."""
    with uncut:
        with _guard:
            lock = _making.setdefault((id(table), key), threading.RLock())  # it lives while somebody has it
        held = lock.acquire(wait)
        try:
            found = table.get(key)
            return table.setdefault(key, make()) if found is None else found
        finally:
            if held:
                lock.release()


def forget() -> None:
    """Drops what is kept in programs."""
    with _guard:
        owners = list(_owners)
        _owners.clear()
    for program in owners:
        program.memo.clear()
