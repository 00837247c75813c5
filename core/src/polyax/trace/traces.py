"""What was recorded of a function, by the kinds of its calls: found again, explained if not, and not without bound."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeVar

from polyax import monitoring
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.primitive import ambient
from polyax.trace import misses
from polyax.trace.calls import Key, Signature, TracedFunction, UserCall
from polyax.trace.recording import SourceOf
from polyax.trace.tracer import Tracer

R = TypeVar("R", bound=TracedFunction)
Record = Callable[[UserCall, Sequence[ShapedArray]], R]

KEPT = 4096
"""How many kinds of calls are remembered for each function."""

_all: weakref.WeakSet[Traces] = weakref.WeakSet()
_shared: weakref.WeakKeyDictionary[FunctionType, dict[Any, dict[Key, Any]]] = weakref.WeakKeyDictionary()
"""What is known of functions, by how their arguments are marked."""
_adding = threading.Lock()


class Traces:
    """The programs of one function.

    Args:
      signature: the function; all that are given equal signatures of it, for one ``role``, share its programs.
      also: what is forgotten with the programs; it has a method ``clear``.
      role: what the programs depend on besides; without a hash they aren't shared.
    """

    def __init__(self, signature: Signature | None = None, *also: Any, role: Any = None) -> None:
        self._known: dict[Key, Any] = {} if signature is None else _known_of(signature, role)
        self.entries: dict[Any, Any] = {}
        """What calls end in, by their kinds; forgotten with the programs."""
        self._also = also
        with _adding:
            _all.add(self)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: Key, call: UserCall, record: Record[R] = UserCall.record) -> R:
        """The program for a call of this kind; ``record`` makes it where there is none.

        Those that depend on values of an outer trace are kept no longer than that, and those of static values without
        a hash not at all.
        """
        try:
            found = self._known.get(key)
        except TypeError:
            return record(call, key.avals)
        if found is None and ambient.trace is not None:
            found = ambient.trace.inner.get((self, key))
        if found is None:
            if config.get("no_tracing"):
                where = SourceOf(call.signature.fun, list)
                raise RuntimeError(f"re-tracing function {where} for `jit`, but 'no_tracing' is set")
            misses.note(call.signature.fun, self._known, key, call.names)
            begin = time.perf_counter()
            found = record(call, key.avals)
            took = time.perf_counter() - begin
            monitoring.record_event_duration_secs(monitoring.TRACED, took, fun_name=call.signature.name)
            if not any(isinstance(c, Tracer) for c in found.closed.consts):
                return keep(self._known, key, found)
            if ambient.trace is not None:
                ambient.trace.inner[self, key] = found
        return found

    def of(self, call: UserCall) -> TracedFunction:
        """``find``, by the types of the call's arguments."""
        return self.find(call.key(), call)

    def drop(self, key: Key) -> None:
        """Forgets the program for calls of this kind."""
        self._known.pop(key, None)

    def clear(self) -> None:
        self._known.clear()
        self.entries.clear()
        for other in self._also:
            other.clear()


def keep(known: dict[Any, Any], key: Any, value: Any) -> Any:
    """Remembers ``value``, or what another thread was faster with; the older half goes where there are too many."""
    if len(known) >= KEPT:
        for old in list(known)[: KEPT // 2]:
            known.pop(old, None)
    return known.setdefault(key, value)


def _known_of(signature: Signature, role: Any) -> dict[Key, Any]:
    """What is known of the function; no more than its programs, so that it may go when nobody else has it."""
    fun, key = signature.fun, (signature.static.marks, signature.donate.marks, role)
    try:
        hash(key)
    except TypeError:
        return {}
    if type(fun) is not FunctionType:
        return {}
    with _adding:
        return _shared.setdefault(fun, {}).setdefault(key, {})


def clear_traces() -> None:
    """Forgets what was recorded of all functions."""
    with _adding:
        every = list(_all)
        _shared.clear()
    for traces in every:
        traces.clear()
