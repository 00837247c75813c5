"""Traces as spans, what is summed up of them, and the pictures, on traces made by hand."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from polyax_inspect.profile import flame, tables, timeline
from polyax_inspect.profile.peak import Peak
from polyax_inspect.profile.spans import TakenTrace, TimedSpan, Track, nested


def span(kind: str, name: str, start: float, end: float, lines: str = "") -> TimedSpan:
    return TimedSpan(kind, name, start, end, {"lines": lines} if lines else {})


RUN = [
    span("run", "f", 2, 10, "a.py:1 (main)"),
    span("kernel", "tanh mul×2", 2, 5, "a.py:7 (f)\na.py:8 (f)"),
    span("call", "dot_general", 5, 9),
]
CALLS = [span("call", "f", 0, 4), span("compile", "f", 1, 2), span("wait", "block_until_ready", 4, 10)]
TRACE = TakenTrace(
    [Track("MainThread", False, nested(CALLS)), Track("cpu:0", True, nested(RUN))], {"cpu": [(0.0, 0), (5.0, 1 << 20)]}
)
EMPTY = TakenTrace([], {})


def test_time_is_summed_by_kernel_primitive_and_line() -> None:
    kernels = {key: s.seconds for key, s in tables.by_kernel(TRACE).items()}
    assert kernels == {
        ("cpu:0", "program", "f"): 1.0,
        ("cpu:0", "kernel", "tanh mul×2"): 3.0,
        ("cpu:0", "library call", "dot_general"): 4.0,
    }
    primitives = {name: s.seconds for (name,), s in tables.by_primitive(TRACE).items()}
    assert primitives == {"tanh": 3.0, "mul": 3.0, "dot_general": 4.0}
    lines = {line: s.seconds for (line,), s in tables.by_line(TRACE).items()}
    assert lines == {"a.py:7 (f)": 3.0, "a.py:8 (f)": 3.0, "a.py:1 (main)": 4.0}, "the call has its program's line"
    threads = {key: s.seconds for key, s in tables.by_activity(TRACE).items()}
    assert threads == {("call", "f"): 3.0, ("compile", "f"): 1.0, ("wait", "block_until_ready"): 6.0}


def test_neighbours_are_not_in_each_other() -> None:
    """Though the end of one is rounded up."""
    first, second = span("kernel", "sin", 1, 2.0000000001), span("kernel", "cos", 2, 3)
    assert nested([first, second]) == [first, second]


def texts(picture: str) -> list[str]:
    """Of a picture that is well-formed, within its own bounds."""
    root = ElementTree.fromstring(picture)
    width, height = (float(root.get(k, "0")) for k in ("width", "height"))
    for e in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(e.get(k, "0")) for k in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
    return [e.text or "" for e in root.iter() if e.tag.endswith(("text", "title"))]


def test_a_timeline_has_tracks_steps_and_memory() -> None:
    told = texts(timeline.timeline(TRACE))
    assert {"MainThread", "cpu:0", "memory, cpu", "up to 1.0 MiB", "tanh mul×2"} <= set(told)
    assert "A closer look: one run of f, 8.00 s" in told
    assert "tanh mul×2  ·  a.py:7 (f), a.py:8 (f)" in told


def test_many_short_events_are_drawn_together() -> None:
    many = [span("run", "mul", n / 1e5, (n + 0.5) / 1e5) for n in range(50_000)]
    picture = timeline.timeline(TakenTrace([Track("cpu:0", True, many)], {}))
    assert picture.count("<rect") < 2 * 1200
    counts = [int(n) for n in re.findall(r"(\d+) events, ", picture)]
    assert sum(counts) + picture.count("program,") == len(many), "none is lost"


def test_flames_add_up() -> None:
    root = flame.of_time(TRACE)
    assert root.value == 10 + 8
    program = root.inner["whole", "cpu:0"].inner["line", "a.py:1 (main)"].inner["program", "f"]
    assert program.value == 8
    assert program.inner["line", "a.py:7 (f) and 1 more"].inner["kernel", "tanh mul×2"].value == 3
    assert program.inner["library call", "dot_general"].value == 4
    assert "dot_general" in texts(flame.time_flame(TRACE))


def test_memory_is_told_by_who_called_whom() -> None:
    here, there = (f.__code__ for f in (test_flames_add_up, texts))
    deep, flat = ((there, 0), (here, 0)), ((here, 0),)
    held = {(deep, "cpu:0"): (2, 3 << 20), (flat, "cpu:0"): (1, 1 << 20), ((), "cpu:0"): (5, 10)}
    text = tables.memory(held, 8 << 20, 10)
    assert "4.0 MiB of 8.0 MiB" in text
    rows = [row.split() for row in text.splitlines() if "cpu:0" in row]
    assert [(row[0], row[2]) for row in rows[:2]] == [("3.0", "3.0"), ("1.0", "4.0")]
    assert rows[2][:2] == ["10", "B"] and "unknown:" in rows[2]
    root = flame.of_memory(held)
    assert root.value == (4 << 20) + 10 and root.times == 8
    (outer,) = [f for f in root.inner["whole", "cpu:0"].inner.values() if "test_flames" in f.name]
    assert outer.value == 4 << 20 and [f.value for f in outer.inner.values()] == [3 << 20]


@pytest.mark.parametrize(
    "trace", [EMPTY, TakenTrace([Track("MainThread", False, [span("wait", "w", 1, 1)])], {"cpu": []})]
)
def test_nothing_is_no_error(trace: TakenTrace) -> None:
    peak = Peak.__new__(Peak)
    peak.arrays, peak.in_use = {}, 0
    assert "nothing" in "\n".join(tables.tables(trace, peak, 5))
    for picture in (timeline.timeline(trace), flame.time_flame(trace), flame.memory_flame(peak)):
        texts(picture)
