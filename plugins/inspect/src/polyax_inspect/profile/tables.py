"""What took most, as tables: of time by kernel, primitive and line, of memory by the line that made arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from polyax.backend import Source
from polyax.profiler.memory import UNKNOWN, Held
from polyax.runtime.contract.text import columns, size, width
from polyax_inspect.profile.peak import Peak
from polyax_inspect.profile.spans import TakenTrace, TimedSpan, Track

KINDS = {"call": "library call", "run": "program"}
"""What devices do, where the word of traces says too little."""


@dataclass
class Sum:
    seconds: float = 0.0
    times: int = 0


def tables(trace: TakenTrace, peak: Peak, rows: int) -> Iterator[str]:
    """Texts of at most ``rows`` rows each."""
    yield summary(trace)
    whole = sum(s.seconds for t in trace.devices for s in t.spans)
    for title, head, sums in (
        ("Devices, by what they ran", ("device", "kind", "primitives"), by_kernel(trace)),
        ("Devices, by primitive: the time of all steps that it is part of", ("primitive",), by_primitive(trace)),
        ("Devices, by line: the time of all steps that are for it", ("line",), by_line(trace)),
    ):
        yield _times(title, head, sums, whole, rows)
    threads = by_activity(trace)
    whole = sum(s.seconds for s in threads.values())
    yield _times("Threads, by what polyax did", ("kind", "name"), threads, whole, rows)
    yield memory(peak.arrays, peak.in_use, rows)


def summary(trace: TakenTrace) -> str:
    """What there was in all."""
    kinds: dict[str, float] = {}
    for (kind, _), found in by_activity(trace).items():
        kinds[kind] = kinds.get(kind, 0.0) + found.seconds
    named = {"trace": "tracing", "compile": "compiling", "transfer": "transfers"}
    parts = [f"{text} {seconds(kinds[kind])}" for kind, text in named.items() if kind in kinds]
    parts += [f"{t.name} worked {seconds(sum(s.seconds for s in t.spans))}" for t in trace.devices]
    return "; ".join([f"{seconds(trace.end - trace.begin)} from first to last", *parts])


# --- time -------------------------------------------------------------------------------------------------------------


def by_kernel(trace: TakenTrace) -> dict[tuple[str, ...], Sum]:
    """Device, kind and title of what ran, each without what ran within it."""
    told = ((t, s) for t in trace.devices for s, _ in t.walk())
    return _added(((t.name, KINDS.get(s.kind, s.kind), s.name), s.own) for t, s in told)


def by_primitive(trace: TakenTrace) -> dict[tuple[str, ...], Sum]:
    """Each with all of the time of what it is part of."""
    return _added(
        ((name,), s.own)
        for track in trace.devices
        for s, _ in _leaves(track)
        for name in {word.partition("×")[0] for word in s.name.split()}
    )


def by_line(trace: TakenTrace) -> dict[tuple[str, ...], Sum]:
    """The same for the user's lines."""
    return _added(
        ((short(line),), s.own) for t in trace.devices for s, lines in _leaves(t) for line in lines or ("unknown",)
    )


def _leaves(track: Track) -> Iterator[tuple[TimedSpan, tuple[str, ...]]]:
    return ((s, lines) for s, lines in track.walk() if not s.inner)


def by_activity(trace: TakenTrace) -> dict[tuple[str, ...], Sum]:
    """What threads did themselves: kind and name."""
    return _added(((s.kind, s.name), s.own) for t in trace.tracks if not t.device for s, _ in t.walk())


def _added(told: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], Sum]:
    sums: dict[tuple[str, ...], Sum] = {}
    for key, took in told:
        found = sums.setdefault(key, Sum())
        found.seconds += took
        found.times += 1
    return sums


def _times(title: str, head: tuple[str, ...], sums: Mapping[Any, Sum], whole: float, rows: int) -> str:
    largest = sorted(sums.items(), key=lambda item: -item[1].seconds)[:rows]
    lines = [(seconds(s.seconds), _share(s.seconds, whole), str(s.times), *key) for key, s in largest]
    return _table(title, ("time", "share", "times", *head), lines, len(sums))


# --- memory -----------------------------------------------------------------------------------------------------------


def memory(held: Held, in_use: int, rows: int) -> str:
    """``own``: made by a line; ``all``: by it or by what it calls."""
    own: dict[tuple[str, str], list[int]] = {}
    for (calls, device), (count, nbytes) in held.items():
        frames = list(dict.fromkeys(short(Source(code, at).by_line) for code, at in calls)) or [UNKNOWN]
        for n, frame in enumerate(frames):
            found = own.setdefault((frame, device), [0, 0, 0])
            found[2] += nbytes
            if n == 0:
                found[0] += count
                found[1] += nbytes
    whole = sum(nbytes for _, nbytes in held.values())
    largest = sorted(own.items(), key=lambda item: (-item[1][1], -item[1][2]))[:rows]
    lines = [
        (size(mine), size(total), _share(total, whole), str(count), device, frame)
        for (frame, device), (count, mine, total) in largest
    ]
    head = ("own", "all", "share", "arrays", "device", "line")
    return _table(f"Live arrays when most memory was in use: {size(whole)} of {size(in_use)}", head, lines, len(own))


def _table(title: str, head: tuple[str, ...], lines: list[tuple[str, ...]], count: int) -> str:
    if not lines:
        return f"{title}\n  nothing"
    numbers = tuple(n for n, name in enumerate(head) if name in ("time", "share", "times", "own", "all", "arrays"))
    more = [f"{count - len(lines)} more"] if count > len(lines) else []
    text = [*columns([head, *lines], max(40, width() - 2), right=numbers), *more]
    return "\n".join([title, *("  " + line for line in text)])


# --- words ------------------------------------------------------------------------------------------------------------


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else ""


def seconds(amount: float) -> str:
    """
    >>> seconds(1.5), seconds(0.0123), seconds(4.56e-6)
    ('1.50 s', '12.3 ms', '4.6 µs')
    """
    if amount >= 1:
        return f"{amount:.2f} s"
    return f"{1e3 * amount:.1f} ms" if amount >= 1e-3 else f"{1e6 * amount:.1f} µs"


def short(line: str) -> str:
    """A line of the program, with the file as it is seen from here."""
    return line.removeprefix(os.getcwd() + os.sep)
