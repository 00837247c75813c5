"""An explanation for notebooks and pages: its table, below which the program and the kernels' sources unfold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from polyax.ir.pretty import coloured
from polyax.runtime.contract.report import KernelReport

WIDTH = 120
"""Characters of a line of the table; narrow pages scroll."""


def folded(table: str, program: str, kernels: Iterable[KernelReport]) -> str:
    shown = f'<pre style="white-space:pre;overflow-x:auto">{escape(table)}</pre>'
    return "\n".join([shown, f"<details><summary>program</summary>{coloured(program)}</details>", *sources(kernels)])


def sources(kernels: Iterable[KernelReport]) -> Iterator[str]:
    """The text of each kernel that has one, below its name."""
    for n, k in enumerate(kernels):
        if k.source:
            head = escape(f"#{n} {k.name}: {k.fused}")
            yield f"<details><summary><code>{head}</code></summary><pre>{escape(k.source)}</pre></details>"
