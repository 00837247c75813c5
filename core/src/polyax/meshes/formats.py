"""In which order an array's dimensions lie in memory, and on which devices. Here there is one order: row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.meshes.sharding import Sharding


class Layout:
    """The order of dimensions in memory, the outermost first.

    Args:
      major_to_minor: all dimensions.
      tiling: sizes of tiles, which no device of polyax has.

    >>> Layout((0, 1))
    Layout(major_to_minor=(0, 1), tiling=())
    """

    AUTO = None
    """Any order."""

    def __init__(self, major_to_minor: Sequence[int], tiling: Any = ()) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tuple(tiling or ())

    def __repr__(self) -> str:
        return f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.major_to_minor, self.tiling) == (other.major_to_minor, other.tiling)

    def __hash__(self) -> int:
        return hash((self.major_to_minor, self.tiling))


class Format:
    """How an array lies: the order of its dimensions on each device, and its sharding.

    Args:
      layout: None for the usual order, row by row.
      sharding: None for where it is.

    >>> Format().layout is None
    True
    """

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError(
                f"Invalid value received for the layout argument. Expected a `Layout` or None, got {layout!r}"
            )
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError(
                f"Invalid value received for the sharding argument. Expected a `Sharding`, got {sharding!r}"
            )
        self.layout = layout
        self.sharding = sharding

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"

    def where(self) -> Sharding | None:
        """The sharding.

        Raises:
          NotImplementedError: dimensions lie in another order than row by row.
        """
        order = () if self.layout is None else self.layout.major_to_minor
        if order != tuple(range(len(order))) or (self.layout is not None and self.layout.tiling):
            raise NotImplementedError(f"arrays of polyax lie row by row; there is no other layout, such as {self}")
        return self.sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))
