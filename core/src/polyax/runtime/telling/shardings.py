"""Drawing how an array lies on devices: a table whose cells are its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.meshes.sharding import Sharding, bounds

Cell = tuple[tuple[int, int], ...]


def drawn_sharding(shape: Sequence[int], sharding: Sharding, *, scale: float = 1.0, width: int = 9) -> str:
    """A picture of an array of ``shape`` (one or two dimensions), each part with the devices that have it.

    Raises:
      ValueError: the array has another number of dimensions.
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    holders: dict[Cell, list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        place = bounds(index, shape)
        holders.setdefault(place if len(place) == 2 else ((0, 1), *place), []).append(device)
    rows = sorted({place[0] for place in holders})
    columns = sorted({place[1] for place in holders})
    texts = [[_text(holders[r, c]) for c in columns] for r in rows]
    wide = max(width, *(len(t) + 2 for row in texts for t in row))
    high = max(1, round(scale * (9 if len(shape) == 2 else 1) / len(rows)) | 1)
    return _table(texts, wide, high if len(rows) == 1 and len(shape) == 2 else 1)


def _text(devices: Sequence[Any]) -> str:
    """``CPU 0,1``."""
    return f"{devices[0].platform.upper()} {','.join(str(d.id) for d in devices)}"


def _table(texts: Sequence[Sequence[str]], width: int, height: int) -> str:
    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * len(texts[0])) + right

    def lines(row: Sequence[str]) -> list[str]:
        blank = "│" + "│".join([" " * width] * len(row)) + "│"
        above = (height - 1) // 2
        return [blank] * above + ["│" + "│".join(t.center(width) for t in row) + "│"] + [blank] * (height - 1 - above)

    between = f"\n{rule('├', '┼', '┤')}\n"
    return "\n".join([rule("┌", "┬", "┐"), between.join("\n".join(lines(r)) for r in texts), rule("└", "┴", "┘")])
