"""What ``polyax.draw`` returns: a program's drawing as SVG and as a page, made when it is asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from polyax.backend import ClosedJaxpr, CompileEvent, Eqn, Listing, Report, flatten
from polyax.runtime.telling.explanation import Explanation
from polyax_inspect import svg
from polyax_inspect.diagram import make_diagram
from polyax_inspect.page import page
from polyax_inspect.placing import place


class Drawing:
    """A compiled program to look at; ``report`` is what it shows."""

    def __init__(self, event: CompileEvent) -> None:
        self.name = event.name
        self.report = event.report()
        self._jaxpr = event.jaxpr
        self._explanation = Explanation(event.name, event.device, event.jaxpr, self.report, tuple(event.moves))

    @cached_property
    def svg(self) -> str:
        diagram = make_diagram(program_of(self.report, self._jaxpr), self.report)
        return svg.draw(diagram, place(diagram))

    @cached_property
    def html(self) -> str:
        """A page that needs nothing else: the drawing, the table of ``explain``, and the kernels' sources."""
        return page(self._explanation, self.svg)

    def save(self, path: str | Path) -> Path:
        """Writes the drawing; the suffix says what: ``.svg``, or ``.html`` for the whole page.

        Raises:
          ValueError: another suffix.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".html"):
            raise ValueError(f"a drawing can be saved as .svg or .html, not as {path.name!r}")
        path.write_text(self.svg if path.suffix == ".svg" else self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        count = len(self.report.kernels)
        return f"<drawing of {self.name}, {count} kernels; save(path) writes .svg or .html>"


def program_of(report: Report, jaxpr: ClosedJaxpr) -> Listing:
    """The equations that the report numbers; a backend that keeps none numbers those of the program itself."""
    return report.program or flatten(jaxpr.jaxpr, _unopened)


def _unopened(eqn: Eqn) -> None:
    return None
