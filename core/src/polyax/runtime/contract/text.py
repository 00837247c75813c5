"""Plain text for people: aligned columns that fit the terminal, and numbers with units. Knows nothing of programs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

NARROWEST = 20
"""The last column is never made narrower than this, whatever the width."""


def width() -> int:
    """Columns of the terminal; ``COLUMNS`` overrides."""
    import shutil  # when it is needed: `import polyax` stays quick

    return shutil.get_terminal_size((100, 24)).columns


def columns(rows: Sequence[Sequence[str]], room: int, right: Sequence[int] = ()) -> list[str]:
    """Rows as lines of at most ``room`` characters; the last column is wrapped. ``right``: columns of numbers.

    A row of one cell is a remark about the row above it.

    >>> lines = columns([("sin", "1", "a text that is wrapped"), ("multiply", "12", "text")], 32, right=(1,))
    >>> print(*[line.replace(" ", ".") for line in lines], sep="|")
    sin........1..a.text.that.is|..............wrapped|multiply..12..text
    """
    sizes = [max(map(len, column)) for column in zip(*(row[:-1] for row in rows if len(row) > 1))]
    indent = sum(sizes) + 2 * len(sizes)
    lines: list[str] = []
    for *cells, last in rows:
        if not cells:
            lines.append(" " * (sizes[0] + 2 if sizes else 0) + last)
            continue
        aligned = [c.rjust(n) if i in right else c.ljust(n) for i, (c, n) in enumerate(zip(cells, sizes))]
        head = "".join(f"{cell}  " for cell in aligned)
        wrapped = textwrap.wrap(last, max(NARROWEST, room - indent), break_on_hyphens=False) or [""]
        lines += [(head + wrapped[0]).rstrip(), *(" " * indent + rest for rest in wrapped[1:])]
    return lines


def size(nbytes: int) -> str:
    """
    >>> size(512), size(2048), size(3 << 20)
    ('512 B', '2.0 KiB', '3.0 MiB')
    """
    amount, units = float(nbytes), ["B", "KiB", "MiB", "GiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def count(number: int) -> str:
    """
    >>> count(512), count(2048), count(3_000_000)
    ('512', '2.0 k', '3.0 M')
    """
    amount, units = float(number), ["", "k", "M", "G", "T"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.1f} {units[0]}" if units[0] else str(number)


def plural(number: int, noun: str) -> str:
    """
    >>> plural(1, "kernel"), plural(2, "copy")
    ('1 kernel', '2 copies')
    """
    several = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {noun if number == 1 else several}"
