"""Traces as XProf and TensorBoard read them: the message ``XSpace`` of ``xplane.proto``.

The numbers of its fields stand beside what is written. Threads are lines of the plane ``/host:CPU``; each device has a
plane of its own. Times are in picoseconds from when the trace began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polyax.profiler.messages import WORD, chunk, double, fields, number

HOST = "/host:CPU"
Told = tuple[str, float, float, list[tuple[str, Any]]]
"""An event: its name, its beginning and duration in nanoseconds, and what else is known of it."""


def encoded(trace: Mapping[str, Any]) -> bytes:
    """A trace in Chrome's format, as ``stop_trace`` writes it, in the other."""
    lines = {e["tid"]: e["args"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    planes: dict[str, list[int]] = defaultdict(list)
    for line, told in lines.items():
        planes[f"/device:{told['name'].upper()}" if told["kind"] == "device" else HOST].append(line)
    events: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            events[e["tid"]].append(e)
    began = int(trace["metadata"]["began"] * 1e9)
    space = b""
    for n, (name, own) in enumerate({HOST: [], **planes}.items(), 1):
        plane = _Plane(n, name)
        for line in own:
            plane.line(line, lines[line]["name"], began, events[line])
        space += chunk(1, plane.finish())  # planes
    return space


class _Plane:
    """One in the making. Names of events and of facts are written once and known by their numbers."""

    def __init__(self, n: int, name: str) -> None:
        self.events: dict[str, int] = {}
        self.facts: dict[str, int] = {}
        self.written: dict[tuple[str, Any], bytes] = {}
        self.body = number(1, n) + chunk(2, name.encode())

    def line(self, n: int, name: str, began: int, events: Sequence[Mapping[str, Any]]) -> None:
        own = number(1, n) + chunk(2, name.encode()) + number(3, began)
        self.body += chunk(3, own + b"".join([chunk(4, self._event(e)) for e in events]))

    def _event(self, e: Mapping[str, Any]) -> bytes:
        name = self.events.setdefault(e["name"], len(self.events) + 1)
        written = number(1, name) + number(2, round(e["ts"] * 1e6)) + number(3, round(e["dur"] * 1e6))
        return written + b"".join([self._fact(*fact) for fact in ({"kind": e["cat"]} | e["args"]).items()])

    def _fact(self, name: str, value: Any) -> bytes:
        """Written once: a step tells the same each time."""
        value = value if isinstance(value, (int, float)) else str(value)
        key = name, value if isinstance(value, str) else repr(value).encode()  # 1 isn't 1.0, and both aren't texts
        found = self.written.get(key)
        if found is None:
            named = number(1, self.facts.setdefault(name, len(self.facts) + 1))
            found = self.written[key] = chunk(4, named + _value(value))
        return found

    def finish(self) -> bytes:
        for field, names in ((4, self.events), (5, self.facts)):  # event_metadata, stat_metadata
            for name, n in names.items():
                told = number(1, n) + chunk(2, name.encode())
                self.body += chunk(field, number(1, n) + chunk(2, told))
        return self.body


def _value(value: Any) -> bytes:
    if isinstance(value, int):
        return number(4, value)
    return double(2, value) if isinstance(value, float) else chunk(5, value.encode())


# --- read again -------------------------------------------------------------------------------------------------------


def decoded(data: bytes) -> Iterator[tuple[str, list[tuple[str, list[Told]]]]]:
    """The planes of such a message: each with its name, and its lines with theirs and their events.

    Raises:
      ValueError: this is no such message.
    """
    for field, plane in fields(data):
        if field == 1:
            parts = _parts(plane)
            events, facts = (dict(map(_named, parts[n])) for n in (4, 5))
            yield _text(parts[2]), [_line(line, events, facts) for line in parts[3]]


def _parts(message: Any) -> defaultdict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    if not isinstance(message, bytes):
        raise ValueError("a number stands where a message is expected")
    for field, value in fields(message):
        found[field].append(value)
    return found


def _text(found: Sequence[Any]) -> str:
    return found[0].decode() if found else ""


def _named(entry: bytes) -> tuple[int, str]:
    """An entry of a table of names."""
    parts = _parts(entry)
    return parts[1][0], _text(_parts(parts[2][0])[2])


def _line(line: bytes, events: Mapping[int, str], facts: Mapping[int, str]) -> tuple[str, list[Told]]:
    parts = _parts(line)
    began = parts[3][0] if parts[3] else 0
    return _text(parts[2]), [_told(_parts(e), began, events, facts) for e in parts[4]]


def _told(event: Mapping[int, list[Any]], began: int, events: Mapping[int, str], facts: Mapping[int, str]) -> Told:
    start, duration = ((event[n] or [0])[0] / 1e3 for n in (2, 3))
    stats = [_fact(_parts(stat), facts) for stat in event[4]]
    return events[event[1][0]], began + start, duration, stats


def _fact(stat: Mapping[int, list[Any]], facts: Mapping[int, str]) -> tuple[str, Any]:
    ((field, (value,)),) = [(n, v) for n, v in stat.items() if n != 1]
    if field == 4 and value >= WORD // 2:
        value -= WORD
    if field == 7:  # a name
        value = facts[value]
    return facts[stat[1][0]], value.decode() if isinstance(value, bytes) and field == 5 else value
