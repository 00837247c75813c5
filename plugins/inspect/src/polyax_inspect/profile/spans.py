"""A trace as spans in spans: what each thread and each device did, and what that consisted of."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class TimedSpan:
    """Something that took time, from ``start`` to ``end`` in seconds, and what happened within it."""

    kind: str
    name: str
    start: float
    end: float
    facts: dict[str, Any]
    inner: list[TimedSpan] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def own(self) -> float:
        """Seconds of it in which nothing else is told."""
        return max(0.0, self.seconds - sum(s.seconds for s in self.inner))

    @property
    def lines(self) -> tuple[str, ...]:
        """The user's lines that it is for."""
        return tuple(self.facts.get("lines", "").splitlines())


@dataclass(frozen=True)
class Track:
    """What a thread or a device did, in order."""

    name: str
    device: bool
    spans: Sequence[TimedSpan]

    def walk(self) -> Iterator[tuple[TimedSpan, tuple[str, ...]]]:
        """All spans, with the lines that they are for: their own, or those of what they are in."""
        waiting = [(s, s.lines) for s in reversed(self.spans)]
        while waiting:
            span, lines = waiting.pop()
            yield span, lines
            waiting += [(s, s.lines or lines) for s in reversed(span.inner)]


@dataclass(frozen=True)
class TakenTrace:
    """Threads first, then devices; ``memory``: for each name, bytes in use at times in seconds."""

    tracks: Sequence[Track]
    memory: dict[str, list[tuple[float, int]]]

    @property
    def devices(self) -> list[Track]:
        return [t for t in self.tracks if t.device]

    @property
    def begin(self) -> float:
        return min((s.start for t in self.tracks for s in t.spans), default=0.0)

    @property
    def end(self) -> float:
        return max((s.end for t in self.tracks for s in t.spans), default=0.0)


def read(path: Path) -> TakenTrace:
    """The trace in a file that ``polyax.profiler.stop_trace`` wrote."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    spans: dict[int, list[TimedSpan]] = {}
    memory: dict[str, list[tuple[float, int]]] = {}
    for e in events:
        if e["ph"] == "X":
            start = e["ts"] / 1e6
            span = TimedSpan(e["cat"], e["name"], start, start + e["dur"] / 1e6, e["args"])
            spans.setdefault(e["tid"], []).append(span)
        elif e["ph"] == "C":
            memory.setdefault(e["name"].rpartition(" on ")[2], []).append((e["ts"] / 1e6, e["args"]["bytes"]))
    told = [(e["tid"], e["args"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"]
    tracks = [Track(args["name"], args["kind"] == "device", nested(spans.get(tid, ()))) for tid, args in told]
    return TakenTrace(sorted(tracks, key=lambda t: t.device), memory)


SAME = 1e-9
"""Seconds: ends are sums of rounded numbers, so that of a span may lie behind the beginning of the next one."""


def nested(spans: Iterable[TimedSpan]) -> list[TimedSpan]:
    """Spans put into the smallest ones that they are in.

    >>> outer, inner = TimedSpan("call", "f", 0, 4, {}), TimedSpan("compile", "f", 1, 3, {})
    >>> [s.inner == [inner] for s in nested([inner, outer])], outer.own
    ([True], 2)
    """
    outermost: list[TimedSpan] = []
    around: list[TimedSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        while around and around[-1].end <= span.start + SAME:
            around.pop()
        (around[-1].inner if around else outermost).append(span)
        around.append(span)
    return outermost
