"""What pictures of profiles are made of: an SVG with boxes that have a colour by their kind, a label and a tooltip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

WIDTH = 1200.0
MARGIN = 12.0
ROW = 18.0
LETTER = 6.65
WHOLE = "whole"
COLOURS = {
    "annotation": "#c4b5fd",
    "trace": "#fde047",
    "compile": "#fb7185",
    "call": "#93c5fd",
    "operation": "#bfdbfe",
    "transfer": "#6ee7b7",
    "wait": "#e2e8f0",
    "collection": "#f0abfc",
    "program": "#cbd5e1",
    "kernel": "#60a5fa",
    "library call": "#fdba74",
    "loop": "#5eead4",
    "branch": "#99f6e4",
    "copy": "#d6d3d1",
    "line": "#fef3c7",
    "memory": "#86efac",
    WHOLE: "#e2e8f0",
}
STYLE = """
.polyax-profile { background: #fff; font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.polyax-profile rect.box { stroke: #fff; stroke-width: 0.6; }
.polyax-profile rect.box:hover { stroke: #0f172a; stroke-width: 1; }
.polyax-profile text { fill: #0f172a; }
.polyax-profile .title { font-weight: 600; font-size: 12px; }
.polyax-profile .faint { fill: #64748b; }
.polyax-profile line { stroke: #e2e8f0; stroke-width: 1; }
.polyax-profile g.box text { pointer-events: none; }
"""


def document(height: float, parts: Iterable[str]) -> str:
    """``parts`` as a picture that is ``WIDTH`` wide."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="polyax-profile" role="img" width="{WIDTH:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {WIDTH:.0f} {height:.0f}">',
            f"<style>{STYLE}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def box(x: float, y: float, width: float, kind: str, label: str, tip: str) -> str:
    """A row's part; the label is cut where the box ends, and left out where no room is for it."""
    place = f'x="{x:.2f}" y="{y:.1f}" width="{max(width, 0.3):.2f}" height="{ROW - 1:.0f}"'
    drawn = f'<rect class="box" {place} fill="{COLOURS[kind]}"><title>{escape(tip)}</title></rect>'
    shown = cut(label, width - 5)
    return f'<g class="box">{drawn}{text(x + 3, y + ROW - 5.5, shown)}</g>' if len(shown) > 2 else drawn


def cut(words: str, room: float) -> str:
    """As much of a text as there is room for.

    >>> cut("dot_general", 200), cut("dot_general", 42)
    ('dot_general', 'dot_g…')
    """
    letters = max(0, int(room / LETTER))
    return words if len(words) <= letters else words[: max(0, letters - 1)] + "…"


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def legend(kinds: Iterable[str], y: float) -> Iterator[str]:
    """The colours in use."""
    x = MARGIN
    for kind in (kind for kind in kinds if kind != WHOLE):
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="11" height="11" fill="{COLOURS[kind]}"/>'
        yield text(x + 16, y + 9.5, kind, "faint")
        x += 30 + LETTER * len(kind)
