"""A trace in the making: what threads do (tracing, compiling, calls, transfers, what users annotate), what each device
does for them, and how much memory lives on it.

Nothing is in their way while no trace is taken: the methods that tell of events are put in place when one begins, and
taken out when it ends. Meanwhile no call goes past Python: what would run natively as a whole tells nothing.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from polyax.api.jit import PjitFunction
from polyax.ir.source import Source, user_source
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract import edge
from polyax.runtime.contract.probes import Probe, Stamp, ToldPart, filling, probes
from polyax.runtime.running import compiling
from polyax.runtime.running.dispatch import EvalTrace
from polyax.runtime.running.programs import Program
from polyax.runtime.running.repeated import EagerCalls
from polyax.runtime.running.whole import QuickCalls, not_this
from polyax.trace import calls

OUTSIDE = "a program"
"""What a device works on that nobody called in this trace."""


UNDER_WAY = 64
"""Programs of which a device may still be asked when it came to their parts; for older ones it is at once."""


class _Here(threading.local):
    """What a thread is at: the call that it is in, the user's line that made it, and the device that it works for."""

    title: str = OUTSIDE
    line: Source | None = None
    device: str | None = None
    stamped: _Stamped | None = None
    collecting: int = 0


class _Stamped(NamedTuple):
    """A program, and its parts, of which the device tells afterwards when it came to them."""

    device: str
    whole: ToldPart
    told: list[tuple[Sequence[ToldPart], Sequence[Stamp]]]


def _timed(parts: Sequence[ToldPart], times: Sequence[int | None]) -> list[tuple[ToldPart, int, int]]:
    """Parts with their beginnings and ends, as far as both are known."""
    found = zip(parts, times, times[1:])
    return [(part, begin, end) for part, begin, end in found if begin is not None and end is not None]


class Recording:
    """The events of one trace, in Chrome's format: complete events with microseconds. Lines are threads and devices."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.start = time.perf_counter_ns()
        self.began = time.time()
        self.threads: dict[int, str] = {}
        self.devices: dict[str, int] = {}
        self.here = _Here()
        self.stamped: deque[_Stamped] = deque()

    def add(self, kind: str, name: str, start: int, args: dict[str, Any]) -> None:
        now, device = time.perf_counter_ns(), self.here.device
        self._add(self._thread() if device is None else self.line_of(device), ToldPart(kind, name, args), start, now)

    def _add(self, line: int, part: ToldPart, start: int, end: int) -> None:
        times = {"ts": (start - self.start) / 1e3, "dur": (end - start) / 1e3}
        about = {"cat": part.kind, "name": part.title, "args": part.facts}
        self.events.append({"ph": "X", "pid": 1, "tid": line, **about, **times})

    def count(self, name: str, value: int) -> None:
        """A number that changes over time."""
        at = (time.perf_counter_ns() - self.start) / 1e3
        self.events.append({"ph": "C", "name": name, "pid": 1, "tid": 0, "ts": at, "args": {"bytes": value}})

    def work(self, device: str, work: Callable[[], None]) -> Callable[[], None]:
        whole = ToldPart("run", self.here.title, _lines(self.here.line))

        def told() -> None:
            here, start = self.here, time.perf_counter_ns()
            before, here.device, here.stamped = here.device, device, None
            try:
                work()
            finally:
                if here.stamped is None:
                    self.add("run", whole.title, start, whole.facts)
                else:
                    self.stamped.append(here.stamped._replace(whole=whole))
                    self._unstamp(UNDER_WAY)
                here.device, here.stamped = before, None

        return told

    def between(self, parts: Sequence[ToldPart], stamps: Sequence[Stamp]) -> None:
        device = self.here.device or OUTSIDE
        found = self.here.stamped or _Stamped(device, ToldPart("run", OUTSIDE, {}), [])
        self.here.stamped = found._replace(told=[*found.told, (parts, stamps)])

    def _unstamp(self, left: int) -> None:
        """Asks devices when they came to what, for all but so many programs."""
        while len(self.stamped) > left:
            device, whole, told = self.stamped.popleft()
            found = [step for parts, stamps in told for step in _timed(parts, [stamp() for stamp in stamps])]
            if found:
                line = self.line_of(device)
                self._add(line, whole, found[0][1], found[-1][2])
                for step in found:
                    self._add(line, *step)

    def told(self) -> list[dict[str, Any]]:
        """The events, with lines as texts, which are made now that nothing waits for them."""
        self._unstamp(0)
        for event in self.events:
            if isinstance(line := event["args"].get("lines"), Source):
                event["args"] = {**event["args"], "lines": str(line)}
        return self.events

    def line_of(self, device: str) -> int:
        """Small numbers, which aren't those of threads."""
        return self.devices.setdefault(device, len(self.devices) + 1)

    def _thread(self) -> int:
        thread = threading.get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread


LONG = 10**6
"""Nanoseconds of a garbage collection that is told; most are much shorter."""


def _collections(recording: Recording) -> Callable[[str, dict[str, int]], None]:
    """For ``gc.callbacks``: collections hold up whoever happens to allocate when they are due."""

    def told(phase: str, info: dict[str, int]) -> None:
        now = time.perf_counter_ns()
        if phase == "start":
            recording.here.collecting = now
        elif now - recording.here.collecting >= LONG:
            facts = {"collected": info["collected"]}
            recording.add("collection", f"generation {info['generation']}", recording.here.collecting, facts)

    return told


_replaced: list[tuple[Any, str, Any]] = []
_starting = threading.Lock()


class Current:
    """The recording in progress, if there is one."""

    recording: Recording | None = None
    collections: Callable[[str, dict[str, int]], None] | None = None


def begin() -> Recording:
    """Starts a recording.

    Raises:
      RuntimeError: there is one already.
    """
    with _starting:
        if Current.recording is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        Current.recording = recording = Recording()
        filling.append(lambda probe: _fill(probe, recording))
        Current.collections = _collections(recording)
        gc.callbacks.append(Current.collections)
        for probe in (*PROBES, *probes):
            _fill(probe, recording)
        return recording


def _fill(probe: Probe, recording: Recording) -> None:
    before = vars(probe.owner)[probe.name]
    _replaced.append((probe.owner, probe.name, before))
    setattr(probe.owner, probe.name, probe.replacement(before, recording))


def end() -> Recording:
    """Ends it.

    Raises:
      RuntimeError: there is none.
    """
    with _starting:
        if Current.recording is None:
            raise RuntimeError("No profile started")
        found, Current.recording = Current.recording, None
        filling.clear()
        gc.callbacks.remove(Current.collections)  # pyright: ignore[reportArgumentType]
        while _replaced:
            owner, name, before = _replaced.pop()
            setattr(owner, name, before)
        return found


# --- what the core tells ----------------------------------------------------------------------------------------------

Title = Callable[..., str]


def _told(kind: str, title: Title, args_of: Callable[..., dict[str, Any]] | None = None) -> Any:
    """Makes replacements that tell how long a function takes."""

    def replacement(before: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        @functools.wraps(before)
        def told(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return before(*args, **kwargs)
            finally:
                recording.add(kind, title(*args, **kwargs), start, args_of(*args, **kwargs) if args_of else {})

        return told

    return replacement


def _call(kind: str, title: Title) -> Any:
    """The same, of functions that are why devices work."""

    def replacement(before: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        @functools.wraps(before)
        def told(*args: Any, **kwargs: Any) -> Any:
            start, here = time.perf_counter_ns(), recording.here
            outer, name, line = here.title, title(*args, **kwargs), user_source()
            if outer is OUTSIDE:
                here.title, here.line = name, line
            try:
                return before(*args, **kwargs)
            finally:
                here.title = outer
                recording.add(kind, name, start, _lines(line))

        return told

    return replacement


def _lines(line: Source | None) -> dict[str, Any]:
    return {} if line is None else {"lines": line}


def _instead(value: Any) -> Any:
    """Makes replacements of slots, which have this value; they keep what is set meanwhile."""
    return lambda slot, _: property(lambda _: value(), slot.__set__)


def _size(x: Any) -> dict[str, Any]:
    return {"bytes": x.nbytes}


PROBES = (
    Probe(calls, "trace_to_jaxpr", _told("trace", lambda fun, avals, *, name="", **_: name)),
    Probe(compiling, "build", _told("compile", lambda closed, device, name, *_, **__: name)),
    Probe(edge, "to_device", _told("transfer", lambda _, device: f"to {device}", lambda host, _: _size(host))),
    Probe(edge, "to_host", _told("transfer", lambda _, __, device: f"from {device}", lambda _, aval, __: _size(aval))),
    Probe(edge, "copy", _told("transfer", lambda _, __, a, b: f"{a} to {b}", lambda _, aval, *__: _size(aval))),
    Probe(Array, "block_until_ready", _told("wait", lambda _: "block_until_ready")),
    Probe(PjitFunction, "__call__", _call("call", lambda f, *_, **__: f.__name__)),
    Probe(EvalTrace, "process", _call("operation", lambda _, primitive, *__: primitive.name)),
    Probe(Program, "quick", _instead(lambda: not_this)),
    Probe(QuickCalls, "first", _instead(dict)),
    Probe(EagerCalls, "usual", lambda *_: lambda eager, args, kwargs: eager.fun(*args, **kwargs)),
)
