"""``polyax.monitoring``: events that libraries and programs record, and listeners that hear them.

Listeners are called in the order in which they were added, in the thread that records. polyax itself tells how long it
took to record a function's program (``TRACED``) and to build an executable (``COMPILED``), each with its ``fun_name``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span", "record_scalar",
    "register_event_duration_secs_listener", "register_event_listener", "register_event_time_span_listener",
    "register_scalar_listener", "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip

TRACED = "/jax/core/compile/jaxpr_trace_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
"""Durations under JAX's names: tools that count recompilations listen for them."""

Listener = Callable[..., None]
_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells listeners of an event.

    >>> heard = []
    >>> listener = lambda event, **kwargs: heard.append((event, kwargs))
    >>> register_event_listener(listener)
    >>> record_event("/saved", step=3)
    >>> unregister_event_listener(listener)
    >>> heard
    [('/saved', {'step': 3})]
    """
    _tell(_events, event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells listeners how many seconds something took."""
    _tell(_durations, event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tells listeners from when to when something lasted."""
    _tell(_spans, event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells listeners of a number."""
    _tell(_scalars, event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Calls ``callback(event, **kwargs)`` at each event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Calls ``callback(event, duration, **kwargs)`` at each duration.

    >>> heard = []
    >>> listener = lambda event, seconds, **kwargs: heard.append((event, kwargs["fun_name"]))
    >>> register_event_duration_secs_listener(listener)
    >>> record_event_duration_secs(COMPILED, 0.5, fun_name="f")  # as jit does
    >>> unregister_event_duration_listener(listener)
    >>> heard
    [('/jax/core/compile/backend_compile_duration', 'f')]
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Calls ``callback(event, start_time, end_time, **kwargs)`` at each span."""
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Calls ``callback(event, value, **kwargs)`` at each number."""
    _scalars.append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Calls it no more. Raises an AssertionError if it isn't registered; so do the others."""
    _remove(_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Calls it no more."""
    _remove(_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Calls it no more."""
    _remove(_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Calls it no more."""
    _remove(_scalars, callback)


def clear_event_listeners() -> None:
    """Forgets all listeners."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


def _tell(listeners: list[Listener], *args: Any, **kwargs: Any) -> None:
    for listener in tuple(listeners):
        listener(*args, **kwargs)


def _remove(listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(f"{callback!r} isn't registered")
    listeners.remove(callback)
