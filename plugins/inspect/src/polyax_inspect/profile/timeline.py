"""A timeline: what each thread and device did when, memory below it, and a closer look at one run of the program that
devices worked for most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low

from polyax.runtime.contract.text import plural, size
from polyax_inspect.profile.chart import COLOURS, MARGIN, ROW, WIDTH, box, cut, document, legend, text
from polyax_inspect.profile.spans import TakenTrace, TimedSpan, Track
from polyax_inspect.profile.tables import KINDS, seconds, short

GUTTER = 130.0
"""The width of names."""
DEEPEST = 6
LISTED = 8
"""Steps of a run that are spelt out."""
THIN = 1.0
"""Spans narrower than this are drawn together with their neighbours."""
HILL = 44.0
"""The height of memory."""


@dataclass(frozen=True)
class Excerpt:
    """A stretch of time, and where it is in the picture."""

    begin: float
    end: float

    def x(self, time: float) -> float:
        share = (min(max(time, self.begin), self.end) - self.begin) / max(self.end - self.begin, 1e-9)
        return GUTTER + share * (WIDTH - GUTTER - MARGIN)

    def holds(self, span: TimedSpan) -> bool:
        return span.end > self.begin and span.start < self.end


def timeline(trace: TakenTrace) -> str:
    """The picture."""
    parts: list[str] = []
    window = Excerpt(trace.begin, trace.end)
    y = _panel(trace, window, f"{seconds(trace.end - trace.begin)} from first to last", MARGIN, parts)
    y = _memory(trace, window, y, parts)
    if (run := usual_run(trace)) is not None:
        around = run.seconds / 8
        window = Excerpt(max(0.0, run.start - around), run.end + around)
        title = f"A closer look: one run of {run.name}, {seconds(run.seconds)}"
        y = _panel(trace, window, title, y + 1.5 * ROW, parts)
        y = _steps(run, y, parts)
    parts += legend(_kinds(trace), y + ROW)
    return document(y + 2 * ROW + MARGIN, parts)


def usual_run(trace: TakenTrace) -> TimedSpan | None:
    """Of the program of several steps that took most time of devices in all, the run of the median length."""
    runs: dict[str, list[TimedSpan]] = {}
    for s in (s for t in trace.devices for s in t.spans if len(s.inner) > 1):
        runs.setdefault(s.name, []).append(s)
    most = max(runs.values(), key=lambda found: sum(s.seconds for s in found), default=[])
    middle = median_low([s.seconds for s in most]) if most else 0.0
    return next((s for s in most if s.seconds == middle), None)


def kind_of(track: Track, span: TimedSpan) -> str:
    """A word of ``COLOURS``."""
    return KINDS.get(span.kind, span.kind) if track.device else span.kind


def tip(kind: str, span: TimedSpan) -> str:
    """All that is known of a span."""
    facts = {k: v for k, v in span.facts.items() if k != "lines"}
    told = [f"{name}: {size(value) if name == 'bytes' else value}" for name, value in facts.items()]
    head = f"{span.name}\n{kind}, {seconds(span.seconds)} at {seconds(span.start)}"
    return "\n".join([head, *told, *map(short, span.lines)])


def _kinds(trace: TakenTrace) -> list[str]:
    found = {kind_of(t, s) for t in trace.tracks for s, _ in t.walk()}
    return [kind for kind in COLOURS if kind in found]


# --- rows -------------------------------------------------------------------------------------------------------------


def _panel(trace: TakenTrace, window: Excerpt, title: str, y: float, parts: list[str]) -> float:
    """Draws all tracks for a window, from ``y`` down; returns where they end."""
    parts.append(text(MARGIN, y + 10, title, "title"))
    y += 1.8 * ROW
    marks, top = [], y
    for track in trace.tracks:
        rows = list(_rows([s for s in track.spans if window.holds(s)], window))
        if rows:
            marks.append(text(MARGIN, y + ROW - 5.5, track.name[:18]))
        for row in rows:
            marks += (_together(track, members, window, y) for members in _grouped(row, window))
            y += ROW
        y += 6 if rows else 0
    parts += _axis(window, top, y)
    parts += marks
    return y


def _rows(spans: Sequence[TimedSpan], window: Excerpt) -> Iterator[Sequence[TimedSpan]]:
    """Spans by how deep they are in others."""
    for _ in range(DEEPEST):
        if not spans:
            return
        yield spans
        spans = [inner for s in spans for inner in s.inner if window.holds(inner)]


def _grouped(row: Sequence[TimedSpan], window: Excerpt) -> Iterator[list[TimedSpan]]:
    """Spans that are wide enough stand alone; others with those that are next to them."""
    group: list[TimedSpan] = []
    begin = 0.0
    for span in row:
        start, end = window.x(span.start), window.x(span.end)
        wide = end - start >= THIN
        if group and (wide or end - begin > 3 * THIN):
            yield group
            group = []
        if wide:
            yield [span]
            continue
        begin = begin if group else start
        group.append(span)
    if group:
        yield group


def _together(track: Track, members: list[TimedSpan], window: Excerpt, y: float) -> str:
    """A box for spans that are next to each other, in the colour of the kind that took longest."""
    times: Counter[str] = Counter()
    for s in members:
        times[kind_of(track, s)] += s.seconds  # pyright: ignore[reportArgumentType]
    kind = max(times, key=times.__getitem__)
    x = window.x(members[0].start)
    width = window.x(members[-1].end) - x
    if len(members) == 1:
        return box(x, y, width, kind, members[0].name, tip(kind, members[0]))
    names = ", ".join(name for name, _ in Counter(s.name for s in members).most_common(5))
    took = seconds(sum(s.seconds for s in members))
    return box(x, y, width, kind, "", f"{plural(len(members), 'event')}, {took}\n{names}")


def _steps(run: TimedSpan, y: float, parts: list[str]) -> float:
    """A list of what took most of a run: the primitives of each step, and the lines that it is for."""
    found: dict[tuple[str, str], list[TimedSpan]] = {}
    for s in run.inner:
        found.setdefault((KINDS.get(s.kind, s.kind), s.name), []).append(s)
    took = {key: sum(s.seconds for s in spans) for key, spans in found.items()}
    for kind, name in sorted(took, key=took.__getitem__, reverse=True)[:LISTED]:
        spans = found[kind, name]
        lines = dict.fromkeys(short(line).rpartition("/")[2] for s in spans for line in s.lines)
        parts.append(box(GUTTER, y, 11, kind, "", kind))
        parts.append(text(GUTTER - 8, y + ROW - 5.5, f"{len(spans)}×, {seconds(took[kind, name])}", "", "end"))
        words = f"{name}  ·  {', '.join(lines)}" if lines else name
        parts.append(text(GUTTER + 18, y + ROW - 5.5, cut(words, WIDTH - GUTTER - 18 - MARGIN)))
        y += ROW
    return y


def _axis(window: Excerpt, top: float, bottom: float) -> Iterator[str]:
    for time in ticks(window.begin, window.end):
        x = window.x(time)
        yield f'<line x1="{x:.1f}" y1="{top - 2:.1f}" x2="{x:.1f}" y2="{bottom:.1f}"/>'
        yield text(x, top - 6, seconds(time - window.begin) if time > window.begin else "0", "faint", "middle")


def ticks(begin: float, end: float) -> list[float]:
    """Round times, from four to nine of them.

    >>> [round(t, 3) for t in ticks(0.0, 0.02)]
    [0.0, 0.005, 0.01, 0.015, 0.02]
    """
    wanted = max(end - begin, 1e-9) / 9
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= wanted * 0.999)
    return [begin + n * step for n in range(int((end - begin) / step + 1e-6) + 1)]


# --- memory -----------------------------------------------------------------------------------------------------------


def _memory(trace: TakenTrace, window: Excerpt, y: float, parts: list[str]) -> float:
    for name, points in trace.memory.items():
        most = max((value for _, value in points), default=0)
        if not most:
            continue
        base = y + HILL
        heights = [(window.x(t), base - (HILL - 8) * value / most) for t, value in _fewer(points, window)]
        parts.append(text(MARGIN, y + HILL / 2 - 2, f"memory, {name}"[:18]))
        parts.append(text(MARGIN, y + HILL / 2 + 12, f"up to {size(most)}", "faint"))
        parts.append(_hill(heights, base, f"bytes in use on {name}, up to {size(most)}"))
        y += HILL + 6
    return y


def _fewer(points: Iterable[tuple[float, int]], window: Excerpt) -> Iterable[tuple[float, int]]:
    """The largest number of each pixel."""
    found: dict[int, tuple[float, int]] = {}
    for time, value in points:
        at = int(window.x(time))
        if at not in found or value > found[at][1]:
            found[at] = time, value
    return found.values()


def _hill(heights: Sequence[tuple[float, float]], base: float, words: str) -> str:
    """A step for each number, which holds until the next."""
    path = f"M{heights[0][0]:.1f} {base:.1f}" + "".join(f"V{y:.1f}H{x:.1f}V{y:.1f}" for x, y in _stairs(heights))
    return f'<path d="{path}V{base:.1f}Z" fill="{COLOURS["memory"]}"><title>{words}</title></path>'


def _stairs(heights: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Where each step ends, and how high it is."""
    for (_, y), (x, _) in zip(heights, [*heights[1:], (WIDTH - MARGIN, 0.0)]):
        yield x, y
