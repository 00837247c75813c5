"""Flame graphs, the root on top: of time, by what ran in what; of memory, by who called whom to make arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from polyax.backend import Source
from polyax.profiler.memory import UNKNOWN, Held
from polyax.runtime.contract.text import plural, size
from polyax_inspect.profile.chart import COLOURS, MARGIN, ROW, WHOLE, WIDTH, box, document, legend, text
from polyax_inspect.profile.peak import Peak
from polyax_inspect.profile.spans import TakenTrace, TimedSpan, Track
from polyax_inspect.profile.tables import seconds, short
from polyax_inspect.profile.timeline import kind_of

NARROWEST = 0.4
DEEPEST = 60


@dataclass
class Flame:
    """Something, how much of it there is in all, how often, and what it consists of."""

    kind: str
    name: str
    value: float = 0.0
    times: int = 0
    inner: dict[tuple[str, str], Flame] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Of a line only the file's own name."""
        return self.name.rpartition("/")[2] if self.kind in ("line", "memory") else self.name

    def within(self, kind: str, name: str) -> Flame:
        return self.inner.setdefault((kind, name), Flame(kind, name))

    def add(self, value: float, times: int = 1) -> Flame:
        self.value += value
        self.times += times
        return self


def of_time(trace: TakenTrace) -> Flame:
    """Threads and devices, what each did, and what that consisted of; a line stands above what it asked for."""
    root = Flame(WHOLE, "all threads and devices")
    for track in trace.tracks:
        whole = sum(s.seconds for s in track.spans)
        top = root.add(whole, len(track.spans)).within(WHOLE, track.name).add(whole, len(track.spans))
        waiting: list[tuple[Flame, tuple[str, ...], TimedSpan]] = [(top, (), s) for s in track.spans]
        while waiting:
            outer, lines, span = waiting.pop()
            frame = _placed(outer, track, span, lines)
            waiting += [(frame, span.lines or lines, s) for s in span.inner]
    return root


def _placed(outer: Flame, track: Track, span: TimedSpan, known: tuple[str, ...]) -> Flame:
    if span.lines and span.lines != known:
        first, *others = span.lines
        more = f" and {len(others)} more" if others else ""
        outer = outer.within("line", short(first) + more).add(span.seconds)
    return outer.within(kind_of(track, span), span.name).add(span.seconds)


def of_memory(held: Held) -> Flame:
    """Devices, and the calls that made what is on them, outermost first."""
    root = Flame(WHOLE, "all devices")
    for (calls, device), (count, nbytes) in held.items():
        frame = root.add(nbytes, count).within(WHOLE, device).add(nbytes, count)
        for name in [short(Source(code, at).by_line) for code, at in reversed(calls)] or [UNKNOWN]:
            frame = frame.within("memory", name).add(nbytes, count)
    return root


def time_flame(trace: TakenTrace) -> str:
    return draw(of_time(trace), "Time, by what ran in what", seconds, "event")


def memory_flame(peak: Peak) -> str:
    return draw(of_memory(peak.arrays), "Live arrays when most memory was in use", lambda n: size(round(n)), "array")


def draw(root: Flame, title: str, amount: Callable[[float], str], noun: str) -> str:
    """The picture: the width of a box is its share of the whole."""
    placed = list(_places(root))
    height = 3 * ROW + ROW * (1 + max(depth for _, _, depth, _ in placed))
    parts = [text(MARGIN, MARGIN + 10, f"{title}: {amount(root.value)}", "title")]
    for frame, x, depth, width in placed:
        share = f"{frame.value / root.value:.1%}" if root.value else "nothing"
        tip = f"{frame.name}\n{amount(frame.value)}, {share}, {plural(frame.times, noun)}"
        parts.append(box(x, 2 * ROW + depth * ROW, width, frame.kind, frame.label, tip))
    found = {frame.kind for frame, *_ in placed}
    parts += legend((kind for kind in COLOURS if kind in found), height)
    return document(height + ROW + MARGIN, parts)


def _places(root: Flame) -> Iterator[tuple[Flame, float, int, float]]:
    """Each frame, its left edge, how deep it is, and its width; the largest stands first among its neighbours."""
    scale = (WIDTH - 2 * MARGIN) / root.value if root.value else 0.0
    waiting: list[tuple[Flame, float, int]] = [(root, MARGIN, 0)]
    while waiting:
        frame, x, depth = waiting.pop()
        width = frame.value * scale if root.value else WIDTH - 2 * MARGIN
        yield frame, x, depth, width
        for inner in _sorted(frame.inner.values()):
            if inner.value * scale >= NARROWEST and depth < DEEPEST:
                waiting.append((inner, x, depth + 1))
            x += inner.value * scale


def _sorted(frames: Iterable[Flame]) -> list[Flame]:
    return sorted(frames, key=attrgetter("value"), reverse=True)
