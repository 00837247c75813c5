"""Where everything stands: each group is laid out on its own, with ports where values enter and leave; then the groups.

Turns a diagram into places; colours are the business of ``svg``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from polyax_inspect.diagram import Border, Box, Diagram, Wire
from polyax_inspect.layers import Edge, Layout, Point, arrange

LETTER = 6.7
NODE_HEIGHT = 34.0
PAD = 12.0
TITLE = 20.0
WIDEST = 260.0
PORT = (8.0, 2.0)


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class Route:
    """A line through ``points`` that carries a value."""

    points: list[Point]
    tip: str
    unused: bool = False
    """Nobody needs what is made of the value there."""


@dataclass
class Picture:
    """Rectangles of nodes and groups, in the order of the diagram's; the routes in each group and between them."""

    nodes: dict[int, Rectangle]
    groups: list[Rectangle]
    inside: list[list[Route]]
    between: list[Route]
    width: float
    height: float
    inner: dict[int, list[Inset]]
    """Node -> the pictures in it."""


@dataclass(frozen=True)
class Inset:
    """A picture within a node: what it shows, and where its corner is in the node."""

    role: str
    diagram: Diagram
    picture: Picture
    x: float


def insets(node: Box) -> list[Inset]:
    """The pictures in a node, side by side."""
    found: list[Inset] = []
    x = PAD
    for role, diagram in node.inner:
        picture = place(diagram)
        found.append(Inset(role, diagram, picture, x))
        x += max(picture.width, LETTER * len(role)) + PAD
    return found


def size_of(node: Box, within: list[Inset]) -> tuple[float, float]:
    own = min(WIDEST, max(44.0, LETTER * max(len(node.name), len(node.detail)) + 16))
    if not within:
        return own, NODE_HEIGHT
    last = within[-1]
    width = last.x + max(last.picture.width, LETTER * len(last.role)) + PAD
    return max(own, width), NODE_HEIGHT + TITLE + max(i.picture.height for i in within) + PAD


class _Inner:
    """A group on its own; ``ins`` and ``outs``: value -> its port."""

    def __init__(self, diagram: Diagram, group: Border, wires: list[Wire], number: int) -> None:
        self.tips = {w.value: w.tip for w in wires}
        self.plain = len(group.nodes) == 1
        self.insets = {n: insets(diagram.nodes[n]) for n in group.nodes}
        self.sizes = [size_of(diagram.nodes[n], self.insets[n]) for n in group.nodes]
        coming = dict.fromkeys(w.value for w in wires if diagram.home[w.source] != number)
        self.going = {w.value: w.source for w in wires if diagram.home[w.target] != number}
        ports = count(len(group.nodes))
        self.ins = dict(zip(coming, ports))
        self.outs = dict(zip(self.going, ports))
        self.edges = self._edges(group, wires)
        self.layout = self._single() if self.plain else self._arranged()
        self._frame(group.title)

    def _edges(self, group: Border, wires: list[Wire]) -> list[Edge]:
        """From ports and nodes to nodes, and from nodes to the ports of what leaves."""
        place = {n: i for i, n in enumerate(group.nodes)}
        edges = [
            Edge(place[w.source] if w.source in place else self.ins[w.value], place[w.target], w.value)
            for w in wires
            if w.target in place
        ]
        return edges + [Edge(place[n], self.outs[v], v) for v, n in self.going.items()]

    def _frame(self, title: str) -> None:
        """The size of the box, with room for its title; a single node needs none around it."""
        border, self.top, below = (0.0, 0.0, 0.0) if self.plain else (PAD, TITLE, 4.0)
        wanted = 0.0 if self.plain else min(WIDEST, LETTER * len(title))
        self.left = border + max(0.0, (wanted - self.layout.width) / 2)
        self.width = self.layout.width + 2 * self.left
        self.height = self.layout.height + self.top + below

    def _arranged(self) -> Layout:
        ports = [PORT] * (len(self.ins) + len(self.outs))
        return arrange([*self.sizes, *ports], self.edges, self.ins.values(), self.outs.values())

    def _single(self) -> Layout:
        """One node, whose ports are spread over its edges."""
        (width, height), ports = self.sizes[0], [(0.0, 0.0)] * (len(self.ins) + len(self.outs))
        places = [(width / 2, 0.0), *ports]
        for group, y in ((self.ins, 0.0), (self.outs, height)):
            for i, port in enumerate(group.values()):
                places[port] = (width * (i + 1) / (len(group) + 1), y)
        return Layout(places, [], width, height)

    def port(self, number: int) -> float:
        """Where a port is, from the centre of the box."""
        return self.layout.places[number][0] + self.left - self.width / 2


def place(diagram: Diagram) -> Picture:
    """The places of everything."""
    wires: list[list[Wire]] = [[] for _ in diagram.groups]
    for w in diagram.wires:
        for g in {diagram.home[w.source], diagram.home[w.target]}:
            wires[g].append(w)
    inner = [_Inner(diagram, g, wires[n], n) for n, g in enumerate(diagram.groups)]
    edges = _between(diagram, inner)
    outer = arrange([(i.width, i.height) for i in inner], list(edges))
    corners = [(x - i.width / 2, y) for (x, y), i in zip(outer.places, inner)]
    boxes = [Rectangle(x, y, i.width, i.height) for (x, y), i in zip(corners, inner)]
    nodes = {n: r for g, b, i in zip(diagram.groups, boxes, inner) for n, r in _nodes(g, b, i)}
    inside = [_inside(b, i) for b, i in zip(boxes, inner)]
    between = [
        _outside(e, tip, boxes, bends, diagram.groups[e.target].kind == "dead")
        for (e, tip), bends in zip(edges.items(), outer.bends)
    ]
    within = {n: found for i in inner for n, found in i.insets.items() if found}
    return Picture(nodes, boxes, inside, between, outer.width, outer.height, within)


def _between(diagram: Diagram, inner: list[_Inner]) -> Mapping[Edge, str]:
    """Each value goes to each group once."""
    found: dict[Edge, str] = {}
    for w in diagram.wires:
        a, b = diagram.home[w.source], diagram.home[w.target]
        if a != b:
            leaves, enters = inner[a].port(inner[a].outs[w.value]), inner[b].port(inner[b].ins[w.value])
            found[Edge(a, b, w.value, leaves, enters)] = w.tip
    return found


def _nodes(group: Border, box: Rectangle, inner: _Inner) -> list[tuple[int, Rectangle]]:
    found: list[tuple[int, Rectangle]] = []
    for n, (x, y), (width, height) in zip(group.nodes, inner.layout.places, inner.sizes):
        found.append((n, Rectangle(box.x + inner.left + x - width / 2, box.y + inner.top + y, width, height)))
    return found


def _inside(box: Rectangle, inner: _Inner) -> list[Route]:
    """The lines within a box; values that leave it go to its lower edge."""
    if inner.plain:
        return []
    dx, dy = box.x + inner.left, box.y + inner.top
    nodes, routes = len(inner.sizes), list[Route]()
    for e, bends in zip(inner.edges, inner.layout.bends):
        (x, y), (to_x, to_y) = inner.layout.places[e.source], inner.layout.places[e.target]
        start = (x + dx, box.y if e.source >= nodes else y + dy + NODE_HEIGHT)
        end = (to_x + dx, box.y + box.height if e.target >= nodes else to_y + dy)
        points = [start, *((a + dx, b + dy) for a, b in bends), end]
        routes.append(Route(points, inner.tips[e.value]))
    return routes


def _outside(edge: Edge, tip: str, boxes: list[Rectangle], bends: list[Point], unused: bool) -> Route:
    a, b = boxes[edge.source], boxes[edge.target]
    return Route([(a.centre + edge.leaves, a.y + a.height), *bends, (b.centre + edge.enters, b.y)], tip, unused)
