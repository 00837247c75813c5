"""Drawing how an array lies on devices: a table whose cells are its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from polyax.meshes.sharding import Sharding, bounds

Cell = tuple[tuple[int, int], ...]


def drawn_sharding(
    shape: Sequence[int], sharding: Sharding, *, scale: float = 1.0, min_width: int = 9, max_width: int = 80
) -> str:
    """A picture of an array of ``shape`` (one or two dimensions), each part with the devices that have it.

    Parts are as high and wide as the array's form asks for, as far as there is room.

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
    tall, ratio = int(10 * scale), (shape[1] if len(shape) == 2 else 1) / shape[0]
    height = max(int(tall / len(rows)) - 1, 1) if len(shape) == 2 else 1
    wide = int(int(tall * ratio) * _SQUARE / len(columns))
    return _table(texts, [_width(c, min(max(wide, min_width), max_width)) for c in zip(*texts, strict=True)], height)


_SQUARE = 2.5  # a character is so many times as high as it is wide


def _width(texts: Sequence[str], wanted: int) -> int:
    """Of a column: lines beside it are part of what is wanted."""
    return max(len(t) + max(wanted - 2 - len(t), 0) for t in texts)


def _text(devices: Sequence[Any]) -> str:
    """``CPU 0,1``."""
    return f"{devices[0].platform.upper()} {','.join(str(n) for n in sorted(d.id for d in devices))}"


def _table(texts: Sequence[Sequence[str]], widths: Sequence[int], height: int) -> str:
    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * w for w in widths) + right

    def line(cells: Iterable[str]) -> str:
        return "│" + "│".join(cells) + "│"

    def lines(row: Sequence[str]) -> list[str]:
        blank, above = line(" " * w for w in widths), (height - 1) // 2
        shown = line(f"{' ' * ((w - len(t)) // 2)}{t}".ljust(w) for t, w in zip(row, widths, strict=True))
        return [blank] * above + [shown] + [blank] * (height - 1 - above)

    between = f"\n{rule('├', '┼', '┤')}\n"
    return "\n".join([rule("┌", "┬", "┐"), between.join("\n".join(lines(r)) for r in texts), rule("└", "┴", "┘")])
