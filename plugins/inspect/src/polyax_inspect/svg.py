"""A picture as SVG: rectangles, texts and curves, with a tooltip on everything. Needs no script and no other file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from polyax_inspect.diagram import Border, Box, Diagram
from polyax_inspect.placing import LETTER, NODE_HEIGHT, TITLE, Inset, Picture, Rectangle, Route

MARGIN = 16.0
STYLE = """
.polyax { background: #fff; font: 11px ui-monospace, Menlo, Consolas, monospace; }
.polyax rect { stroke: #64748b; stroke-width: 1; fill: #fff; }
.polyax .kernel > rect, .polyax .kernel > .node:only-child > rect { fill: #e0ecff; stroke: #3b6fd4; }
.polyax .call rect { fill: #ffedd5; stroke: #d97706; stroke-width: 1.5; }
.polyax .exchange rect { fill: #fee2e2; stroke: #dc2626; stroke-width: 1.5; }
.polyax .loop > .node > rect, .polyax .branch > .node > rect { fill: #f8fafc; stroke: #0f766e; stroke-width: 1.5; }
.polyax .copy rect { fill: #e5e7eb; stroke: #6b7280; }
.polyax .free rect { stroke-dasharray: 3 3; }
.polyax .dead { opacity: 0.4; }
.polyax .argument rect { fill: #dcfce7; stroke: #16a34a; }
.polyax .result rect { fill: #f3e8ff; stroke: #9333ea; }
.polyax .kernel > rect ~ .node > rect { stroke: #8fb0ea; }
.polyax .name { font-weight: 600; fill: #0f172a; }
.polyax .detail, .polyax .title { fill: #475569; }
.polyax .title { stroke: #e0ecff; stroke-width: 4; paint-order: stroke; }
.polyax .call .title { stroke: #ffedd5; }
.polyax .exchange .title { stroke: #fee2e2; }
.polyax .copy .title { stroke: #e5e7eb; }
.polyax path { fill: none; stroke: #475569; stroke-width: 1.3; }
.polyax path.inside { stroke: #9dbbee; }
.polyax path:hover { stroke: #dc2626; stroke-width: 3; }
"""


def draw(diagram: Diagram, picture: Picture) -> str:
    """The SVG of a diagram whose parts stand where ``picture`` says."""
    width, height = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="polyax" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *_parts(diagram, picture, ""), "</svg>"])


def _parts(diagram: Diagram, picture: Picture, prefix: str) -> Iterator[str]:
    """``prefix``: what stands before the numbers of equations and kernels in a loop or a branch."""
    yield from (_route(r, "dead" if r.unused else "between") for r in picture.between)
    for n, group in enumerate(diagram.groups):
        yield from _group(diagram, group, picture.groups[n], picture.inside[n], picture, prefix)


def _group(
    diagram: Diagram, group: Border, box: Rectangle, routes: list[Route], picture: Picture, prefix: str
) -> Iterator[str]:
    kernels = f' data-kernels="{" ".join(f"{prefix}{k}" for k in group.kernels)}"' if group.kernels else ""
    yield f'<g class="{group.kind}"{kernels}>'
    if len(group.nodes) > 1:
        yield _rectangle(box, 8, group.tip)
    yield from (_route(r, "inside") for r in routes)
    if len(group.nodes) > 1:
        yield _text("title", group.title, box.centre, box.y + 13, box.width)
    for n in group.nodes:
        tip = diagram.nodes[n].tip + (f"\n\n{group.tip}" if len(group.nodes) == 1 and group.tip else "")
        yield from _node(diagram.nodes[n], picture.nodes[n], tip, prefix)
        for inset in picture.inner.get(n, ()):
            yield from _inset(inset, picture.nodes[n], f"{prefix}{diagram.nodes[n].equation}.{inset.role} ")
    yield "</g>"


def _inset(inset: Inset, box: Rectangle, prefix: str) -> Iterator[str]:
    """A program that a loop or a branch runs, drawn in its node."""
    x, y = box.x + inset.x, box.y + NODE_HEIGHT
    yield _text("detail", inset.role, x + inset.picture.width / 2, y + TITLE - 8, inset.picture.width + LETTER * 8)
    yield f'<g class="inner" transform="translate({x:.1f} {y + TITLE:.1f})">'
    yield from _parts(inset.diagram, inset.picture, prefix)
    yield "</g>"


def _node(node: Box, box: Rectangle, tip: str, prefix: str) -> Iterator[str]:
    number = "" if node.equation is None else f' data-equation="{prefix}{node.equation}"'
    yield f'<g class="node"{number}>' + _rectangle(box, 5, tip)
    yield _text("name", node.name, box.centre, box.y + 14, box.width)
    yield _text("detail", node.detail, box.centre, box.y + 27, box.width) + "</g>"


def _rectangle(box: Rectangle, radius: int, tip: str) -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"'
    return f"<rect {place}><title>{escape(tip)}</title></rect>"


def _text(kind: str, text: str, x: float, y: float, room: float) -> str:
    """Centred text that is cut where the box ends."""
    letters = max(3, int((room - 8) / LETTER))
    shown = text if len(text) <= letters else text[: letters - 1] + "…"
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(shown)}</text>'


def _route(route: Route, kind: str) -> str:
    """Curves that leave and enter vertically."""
    x, y = route.points[0]
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in route.points[1:]:
        middle = (y + to_y) / 2
        if abs(x - to_x) > 0.5:
            path += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        else:
            path += f"L{to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return f'<path class="{kind}" d="{path}"><title>{escape(route.tip)}</title></path>'
