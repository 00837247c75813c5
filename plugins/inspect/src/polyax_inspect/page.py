"""The page around a drawing: a legend, the table of ``explain``, and the source of each kernel. One file, no script."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from polyax.runtime.telling.explanation import Explanation
from polyax.runtime.telling.folded import WIDTH, sources

STYLE = """
body { font: 14px system-ui, sans-serif; color: #0f172a; margin: 1.5rem; }
pre, code { font: 12px ui-monospace, Menlo, Consolas, monospace; }
pre { background: #f8fafc; border: 1px solid #e2e8f0; padding: .75rem; overflow: auto; }
figure { margin: 1rem 0; overflow: auto; border: 1px solid #e2e8f0; }
figure svg { display: block; margin: auto; }
.legend span { border: 1px solid #64748b; border-radius: 4px; padding: .1rem .5rem; margin-right: .5rem; }
"""
LEGEND = {
    "argument": ("#dcfce7", "argument"),
    "kernel": ("#e0ecff", "kernel, with the equations fused into it"),
    "call": ("#ffedd5", "library call"),
    "exchange": ("#fee2e2", "exchange between devices"),
    "loop": ("#f8fafc", "loop or branch, with its programs"),
    "copy": ("#e5e7eb", "copy of memory"),
    "free": ("#fff", "dashed: no kernel of its own; faint: never computed"),
    "result": ("#f3e8ff", "result"),
}


def page(told: Explanation, drawing: str) -> str:
    """HTML that shows ``drawing`` and all that is known of the program."""
    title = escape(f"{told.name} on {told.device}")
    return "\n".join(
        [
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>",
            f'<p class="legend">{"".join(_legend())}</p>',
            "<p>Point at a box or a line to see its equation, its type, the line that asked for it and its kernel.</p>",
            f"<figure>{drawing}</figure>",
            f"<h2>Explanation</h2><pre>{escape(told.text(WIDTH))}</pre>",
            f"<h2>Program</h2><pre>{escape(str(told.jaxpr))}</pre>",
            "<h2>Sources</h2>",
            *sources(told.report.steps()),
            "</body></html>\n",
        ]
    )


def _legend() -> Iterator[str]:
    for colour, text in LEGEND.values():
        yield f'<span style="background:{colour}">{text}</span>'
