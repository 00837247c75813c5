"""A layered layout: boxes in rows from sources to sinks, edges downwards, as few crossings and bends as sweeps find.

Geometry alone. Edges that carry one value share their bends. Costs about the number of boxes and bends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

GAP_X, GAP_Y = 18.0, 24.0
LANE = 9.0
"""The width that a passing edge takes."""
LONGEST = 60
"""Edges over more rows than this are drawn straight, behind everything: bends for all of them would cost too much."""
ORDERINGS, SHIFTS = 8, 13
"""Sweeps that order rows, and that shift boxes."""
PASSING = 0.15
"""How much a box wants to stand where a long edge comes from, compared with a box in the next row."""

Point = tuple[float, float]


class Edge(NamedTuple):
    """From box ``source`` to box ``target``; ``value`` is what it carries. The offsets are from the boxes' centres."""

    source: int
    target: int
    value: int
    leaves: float = 0.0
    enters: float = 0.0


@dataclass
class Layout:
    """The centre of each box's upper edge, each edge's bends, and the size of it all."""

    places: list[Point]
    bends: list[list[Point]]
    width: float
    height: float


@dataclass
class _Item:
    """A box, or a place where an edge passes a row."""

    width: float
    height: float
    row: int
    x: float = 0.0
    above: list[tuple[int, float]] = field(default_factory=list)
    """Neighbours in the row above, and where this item would be for a straight line, seen from there."""
    below: list[tuple[int, float]] = field(default_factory=list)


def arrange(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[Edge],
    first: Iterable[int] = (),
    last: Iterable[int] = (),
) -> Layout:
    """Places boxes of ``sizes`` (width, height); those in ``first`` and ``last`` stand in the outermost rows.

    >>> layout = arrange([(10, 10), (10, 10)], [Edge(0, 1, value=0)])
    >>> layout.places
    [(5.0, 0.0), (5.0, 34.0)]
    """
    rows = _rows(len(sizes), edges, set(first), set(last))
    items = [_Item(w, h, row) for (w, h), row in zip(sizes, rows)]
    passed = _passes(items, edges)
    layers: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for n, item in enumerate(items):
        layers[item.row].append(n)
    _order(items, layers)
    _shift(items, layers)
    return _layout(items, layers, len(sizes), edges, passed)


def _rows(count: int, edges: Sequence[Edge], first: set[int], last: set[int]) -> list[int]:
    """Longest paths from the sources; sources then move down to their readers."""
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for e in edges:
        below[e.source].append(e.target)
        waiting[e.target] += 1
    rows, ready = [0] * count, [n for n in range(count) if not waiting[n]]
    sources = set(ready)
    for n in ready:
        for m in below[n]:
            rows[m] = max(rows[m], rows[n] + 1)
            waiting[m] -= 1
            if not waiting[m]:
                ready.append(m)
    for n in sources - first:
        rows[n] = min((rows[m] for m in below[n]), default=1) - 1
    bottom = max((row for n, row in enumerate(rows) if n not in last), default=-1) + 1
    return [bottom if n in last else row for n, row in enumerate(rows)]


def _passes(items: list[_Item], edges: Sequence[Edge]) -> dict[tuple[int, int], int]:
    """Adds the items where edges pass rows, and makes neighbours: (value, row) -> item."""
    passed: dict[tuple[int, int], int] = {}
    joined: set[tuple[int, int]] = set()

    def join(a: int, b: int, shift: float) -> None:
        if (a, b) not in joined:
            joined.add((a, b))
            items[a].below.append((b, -shift))
            items[b].above.append((a, shift))

    for e in edges:
        at, leaves = e.source, e.leaves
        end = items[e.target].row
        if end - items[at].row > LONGEST:
            continue
        for row in range(items[at].row + 1, end):
            place = passed.get((e.value, row))
            if place is None:
                place = passed[e.value, row] = len(items)
                items.append(_Item(LANE, 0.0, row))
            join(at, place, leaves)
            at, leaves = place, 0.0
        join(at, e.target, leaves - e.enters)
    return passed


def _order(items: list[_Item], layers: list[list[int]]) -> None:
    """Sorts rows by where neighbours stand, from above and from below in turn."""
    position = [0.0] * len(items)
    for layer in layers:
        _number(layer, position)
    for sweep in range(ORDERINGS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            for n in layer:
                near = items[n].above if downwards else items[n].below
                if near:
                    position[n] = sum(position[m] for m, _ in near) / len(near)
            layer.sort(key=position.__getitem__)
            _number(layer, position)


def _number(layer: list[int], position: list[float]) -> None:
    for i, n in enumerate(layer):
        position[n] = (i + 0.5) / len(layer)


def _shift(items: list[_Item], layers: list[list[int]]) -> None:
    """Moves items towards straight edges, rows by turns, without changing their order."""
    for layer in layers:
        x = 0.0
        for n in layer:
            items[n].x = x + items[n].width / 2
            x += items[n].width + GAP_X
    for sweep in range(SHIFTS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            _place(items, layer, [_wish(items, items[n], downwards, sweep >= SHIFTS - 2) for n in layer])


def _wish(items: list[_Item], item: _Item, downwards: bool, both: bool) -> tuple[float, float]:
    """Where an item would like to be, and how much; passing edges insist on straight lines."""
    near = item.above if downwards else item.below
    if both and item.height:
        near = [*item.above, *item.below]
    if not near:
        return item.x, 0.1
    weights = [1.0 if items[m].height or not item.height else PASSING for m, _ in near]
    wish = sum((items[m].x + shift) * w for (m, shift), w in zip(near, weights)) / sum(weights)
    return wish, 1.0 if item.height else 3.0


def _place(items: list[_Item], layer: list[int], wishes: list[tuple[float, float]]) -> None:
    """The places nearest to the wishes (least squares) that keep order and distance: pools of neighbours that touch
    move together, at the mean of what they wish."""
    offsets = [0.0]
    for a, b in pairwise(layer):
        gap = GAP_X if items[a].height and items[b].height else GAP_X / 2
        offsets.append(offsets[-1] + (items[a].width + items[b].width) / 2 + gap)
    pools: list[tuple[float, float, int]] = []  # sum of weighted wishes, weight, members
    for (wish, weight), offset in zip(wishes, offsets):
        total, members = (wish - offset) * weight, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / weight:
            more, heavier, others = pools.pop()
            total, weight, members = total + more, weight + heavier, members + others
        pools.append((total, weight, members))
    found = [total / weight for total, weight, members in pools for _ in range(members)]
    for n, x, offset in zip(layer, found, offsets):
        items[n].x = x + offset


def _layout(
    items: list[_Item],
    layers: list[list[int]],
    count: int,
    edges: Sequence[Edge],
    passed: dict[tuple[int, int], int],
) -> Layout:
    left = min((i.x - i.width / 2 for i in items), default=0.0)
    right = max((i.x + i.width / 2 for i in items), default=0.0)
    heights = [max(items[n].height for n in layer) if layer else 0.0 for layer in layers]
    tops = [0.0]
    for height in heights:
        tops.append(tops[-1] + height + GAP_Y)
    slack = [heights[i.row] - i.height for i in items[:count]]
    places = [
        (i.x - left, tops[i.row] + (free / 2 if i.above else free)) for i, free in zip(items, slack)
    ]  # sources stand near their readers

    def bends(e: Edge) -> Iterator[Point]:
        """Edges pass rows vertically, their own boxes' rows as well."""
        source, target = items[e.source], items[e.target]
        yield source.x + e.leaves - left, tops[source.row] + heights[source.row]
        for row in range(source.row + 1, target.row):
            if (e.value, row) in passed:
                x = items[passed[e.value, row]].x - left
                yield x, tops[row]
                yield x, tops[row] + heights[row]
        yield target.x + e.enters - left, tops[target.row]

    return Layout(places, [list(bends(e)) for e in edges], right - left, max(0.0, tops[-1] - GAP_Y))
