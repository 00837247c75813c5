"""A trace in the making: what threads do (tracing, compiling, calls, transfers, what users annotate), what each device
does for them, and how much memory lives on it.

Nothing is in their way while no trace is taken: the methods that tell of events are put in place when one begins, and
taken out when it ends. Calls stay native meanwhile: native code notes what it ran, and is asked for it at the end.
"""

from __future__ import annotations

import bisect
import functools
import gc
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any, Generic, NamedTuple, TypeVar

from polyax.api.jit import PjitFunction
from polyax.ir.source import Place, Source, user_place
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract import edge
from polyax.runtime.contract.probes import Probe, Stamp, ToldPart, filling, probes
from polyax.runtime.running import compiling
from polyax.runtime.running.dispatch import EvalTrace
from polyax.trace import calls

OUTSIDE = "a program"
"""What a device works on that nobody called in this trace."""


UNDER_WAY = 512
"""Programs of which a device may still be asked when it came to their parts; for older ones it is at once."""


class _Here(threading.local):
    """What a thread is at: the device that it works for."""

    device: str | None = None
    stamped: _Stamped | None = None
    collecting: int = 0


class AskedWork(NamedTuple):
    """Work that a thread asked for, when it was in a call that will be known."""

    thread: int
    when: int


class Event(NamedTuple):
    """Something that took time on a line, which is a thread or a device."""

    line: int
    part: ToldPart | AskedWork
    start: int
    end: int


class _Stamped(NamedTuple):
    """A program, and its parts, of which the device tells afterwards when it came to them."""

    device: str
    whole: ToldPart | AskedWork
    told: list[tuple[Sequence[ToldPart], Sequence[Stamp]]]


def _timed(parts: Sequence[ToldPart], times: Sequence[int | None]) -> list[tuple[ToldPart, int, int]]:
    """Parts with their beginnings and ends, as far as both are known."""
    found = zip(parts, times, times[1:])
    return [(part, begin, end) for part, begin, end in found if begin is not None and end is not None]


class Called(NamedTuple):
    """A call of the user's, as little as can be noted of it while it is made."""

    thread: int
    start: int
    end: int
    kind: str
    title: str
    place: Place | None

    def told(self, kind: str) -> ToldPart:
        return ToldPart(kind, self.title, _lines(self.place))


Span = TypeVar("Span", "Called", Event)


class _Spans(Generic[Span]):
    """What threads were at, and when: the outermost of what was noted."""

    def __init__(self, found: Iterable[tuple[int, Span]]) -> None:
        self._by_thread: defaultdict[int, list[Span]] = defaultdict(list)
        for thread, span in sorted(found, key=lambda pair: (pair[1].start, -pair[1].end)):
            spans = self._by_thread[thread]
            if not spans or span.start >= spans[-1].end:
                spans.append(span)

    def at(self, thread: int, when: int) -> Span | None:
        spans = self._by_thread.get(thread, [])
        n = bisect.bisect_right(spans, when, key=lambda span: span.start) - 1
        return spans[n] if n >= 0 and when <= spans[n].end else None


class Recording:
    """The events of one trace. Lines are threads and devices."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: list[tuple[str, int, int]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.worked: list[tuple[int, Event]] = []
        self.runs: list[tuple[Any, ...]] = []
        self.asked: list[Callable[[], None]] = []
        self.start = time.perf_counter_ns()
        self.began = time.time()
        self.threads: dict[int, str | None] = {}
        self.devices: dict[str, int] = {}
        self.here = _Here()
        self.stamped: deque[_Stamped] = deque()

    def add(self, kind: str, name: str, start: int, args: Mapping[str, Any]) -> None:
        now, device = time.perf_counter_ns(), self.here.device
        self._add(
            self.meet_thread() if device is None else self.line_of(device), ToldPart(kind, name, args), start, now
        )

    def called(self, thread: int, start: int, end: int, kind: str, title: str, place: Place | None) -> None:
        self.threads.setdefault(thread, None)
        self.calls.append((thread, start, end, kind, title, place))

    def _add(self, line: int, part: ToldPart | AskedWork, start: int, end: int) -> None:
        self.events.append(Event(line, part, start, end))

    def count(self, name: str, value: int) -> None:
        """A number that changes over time."""
        self.counts.append((name, time.perf_counter_ns(), value))

    def at_end(self, ask: Callable[[], None]) -> None:
        self.asked.append(ask)

    @functools.cached_property
    def _spans(self) -> tuple[_Spans[Called], _Spans[Event]]:
        """Calls of users by their threads, and work of devices by the threads that did it."""
        return _Spans((call.thread, call) for call in starmap(Called, self.calls)), _Spans(self.worked)

    def ran(self, thread: int, device: str | None, parts: Sequence[ToldPart], times: Sequence[int]) -> None:
        self.runs.append((thread, device, parts, times))

    def _ran(self, thread: int, device: str | None, parts: Sequence[ToldPart], times: Sequence[int]) -> None:
        work = self._spans[1].at(thread, times[0])
        if work is not None:
            line = work.line
        elif device is None or not parts:
            return
        else:
            line = self.line_of(device)
            self._add(line, AskedWork(thread, times[0]), times[0], times[-1])
        for part, start, end in zip(parts, times, times[1:]):
            self._add(line, part, start, end)

    def work(self, device: str, work: Callable[[], None]) -> Callable[[], None]:
        whole = AskedWork(threading.get_ident(), time.perf_counter_ns())

        def told() -> None:
            here, start = self.here, time.perf_counter_ns()
            before, here.device, here.stamped = here.device, device, None
            try:
                work()
            finally:
                if here.stamped is None:
                    event = Event(self.line_of(device), whole, start, time.perf_counter_ns())
                    self.events.append(event)
                    self.worked.append((threading.get_ident(), event))
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
        """The events in Chrome's format, with microseconds, and with lines as texts: made now that nothing waits."""
        self._unstamp(0)
        for run in self.runs:
            self._ran(*run)
        calls = [Event(call.thread, call.told(call.kind), call.start, call.end) for call in starmap(Called, self.calls)]
        numbers = [
            {"ph": "C", "name": name, "pid": 1, "tid": 0, "ts": self._since(at), "args": {"bytes": value}}
            for name, at, value in self.counts
        ]
        return [*map(self._chrome, calls), *map(self._chrome, self.events), *numbers]

    def _chrome(self, event: Event) -> dict[str, Any]:
        kind, title, facts = self._for(event.part) if isinstance(event.part, AskedWork) else event.part
        if isinstance(line := facts.get("lines"), Source):
            facts = {**facts, "lines": line.by_line}
        times = {"ts": self._since(event.start), "dur": (event.end - event.start) / 1e3}
        return {"ph": "X", "pid": 1, "tid": event.line, "cat": kind, "name": title, "args": facts, **times}

    def _for(self, asked: AskedWork) -> ToldPart:
        """What was done for a call."""
        call = self._spans[0].at(asked.thread, asked.when)
        return ToldPart("run", OUTSIDE, {}) if call is None else call.told("run")

    def _since(self, at: int) -> float:
        return (at - self.start) / 1e3

    def line_of(self, device: str) -> int:
        """Small numbers, which aren't those of threads."""
        return self.devices.setdefault(device, len(self.devices) + 1)

    def meet_thread(self) -> int:
        """The number of this thread, whose name is known from now on. One that has yet to start has no name, and none
        may be given to it: garbage may be collected there before Python knows which of its threads it is."""
        thread = threading.get_ident()
        if self.threads.get(thread) is None:
            self.threads[thread] = next((t.name for t in threading.enumerate() if t.ident == thread), None)
        return thread


LONG = 10**6
"""Nanoseconds of a garbage collection that is told; most are much shorter."""
SHORT = 3000
"""Nanoseconds of waiting that aren't told: nothing was waited for."""


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
    for ask in found.asked:
        ask()
    return found


# --- what the core tells ----------------------------------------------------------------------------------------------

Title = Callable[..., str]


def _told(kind: str, title: Title, args_of: Callable[..., dict[str, Any]] | None = None, least: int = 0) -> Any:
    """Makes replacements that tell how long a function takes, if that is ``least`` nanoseconds or more."""

    def replacement(before: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        @functools.wraps(before)
        def told(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return before(*args, **kwargs)
            finally:
                if time.perf_counter_ns() - start >= least:
                    recording.add(kind, title(*args, **kwargs), start, args_of(*args, **kwargs) if args_of else {})

        return told

    return replacement


def _call(kind: str, title: Title) -> Any:
    """The same, of functions that are why devices work."""

    def replacement(before: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        @functools.wraps(before)
        def told(*args: Any, **kwargs: Any) -> Any:
            start, name, place = time.perf_counter_ns(), title(*args, **kwargs), user_place()
            try:
                return before(*args, **kwargs)
            finally:
                recording.called(recording.meet_thread(), start, time.perf_counter_ns(), kind, name, place)

        return told

    return replacement


def _lines(place: Place | None) -> dict[str, Any]:
    return {} if place is None else {"lines": Source(*place)}


def _size(x: Any) -> dict[str, Any]:
    return {"bytes": x.nbytes}


PROBES = (
    Probe(calls, "trace_to_jaxpr", _told("trace", lambda fun, avals, *, name="", **_: name)),
    Probe(compiling, "build", _told("compile", lambda closed, device, name, *_, **__: name)),
    Probe(edge, "to_device", _told("transfer", lambda _, device: f"to {device}", lambda host, _: _size(host))),
    Probe(edge, "to_host", _told("transfer", lambda _, __, device: f"from {device}", lambda _, aval, __: _size(aval))),
    Probe(edge, "copy", _told("transfer", lambda _, __, a, b: f"{a} to {b}", lambda _, aval, *__: _size(aval))),
    Probe(Array, "block_until_ready", _told("wait", lambda _: "block_until_ready", least=SHORT)),
    Probe(PjitFunction, "usual", _call("call", lambda f, *_: f.__name__)),
    Probe(EvalTrace, "process", _call("operation", lambda _, primitive, *__: primitive.name)),
)
