"""Traces of what a process does: tracing, compiling, calls, and what users annotate, on a line for each thread.

Nothing is in their way while no trace is taken: the methods that tell of events are put in place when one begins, and
taken out when it ends.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from polyax.api.jit import PjitFunction
from polyax.runtime.running import compiling
from polyax.runtime.running.dispatch import EvalTrace
from polyax.trace import calls


class Recording:
    """The events of one trace, in Chrome's format: complete events with microseconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.start = time.perf_counter_ns()
        self.began = time.time()
        self.threads: dict[int, str] = {}

    def add(self, kind: str, name: str, start: int, args: dict[str, Any]) -> None:
        now, thread = time.perf_counter_ns(), threading.get_ident()
        self.threads.setdefault(thread, threading.current_thread().name)
        times = {"ts": (start - self.start) / 1e3, "dur": (now - start) / 1e3}
        self.events.append({"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": thread, **times, "args": args})

    @contextmanager
    def span(self, kind: str, name: str, args: dict[str, Any] | None = None) -> Generator[None]:
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(kind, name, start, args or {})


_replaced: list[tuple[Any, str, Any]] = []
_starting = threading.Lock()


class Current:
    """The recording in progress, if there is one."""

    recording: Recording | None = None


def begin() -> None:
    """Starts a recording.

    Raises:
      RuntimeError: there is one already.
    """
    with _starting:
        if Current.recording is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        Current.recording = recording = Recording()
        _tell(recording, calls, "trace_to_jaxpr", "trace", lambda fun, avals, *, name="", **_: name)
        _tell(recording, compiling, "build", "compile", lambda closed, device, name, *_, **__: name)
        _tell(recording, PjitFunction, "__call__", "call", lambda f, *_, **__: f.__name__)
        _tell(recording, EvalTrace, "process", "operation", lambda _, primitive, *__: primitive.name)


def end() -> Recording:
    """Ends it.

    Raises:
      RuntimeError: there is none.
    """
    with _starting:
        if Current.recording is None:
            raise RuntimeError("No profile started")
        found, Current.recording = Current.recording, None
        while _replaced:
            owner, name, before = _replaced.pop()
            setattr(owner, name, before)
        return found


def _tell(recording: Recording, owner: Any, name: str, kind: str, title: Callable[..., str]) -> None:
    before = vars(owner)[name]

    @functools.wraps(before)
    def told(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        try:
            return before(*args, **kwargs)
        finally:
            recording.add(kind, title(*args, **kwargs), start, {})

    _replaced.append((owner, name, before))
    setattr(owner, name, told)
