"""In which order an array's dimensions lie in memory. Here there is one: row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.meshes.sharding import NamedSharding, Sharding, SingleDeviceSharding


class Auto:
    def __repr__(self) -> str:
        return "AUTO"


class Layout:
    """The order of dimensions in memory, the outermost first.

    Args:
      major_to_minor: all dimensions.
      tiling: sizes of tiles, which no device of polyax has.

    >>> Layout((0, 1))
    Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """

    AUTO = Auto()
    """Any order."""

    def __init__(
        self, major_to_minor: Sequence[int], tiling: Any = None, sub_byte_element_size_in_bits: int = 0
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def check(self, shape: Sequence[int]) -> None:
        """Raises a ValueError if these aren't the dimensions of an array of that shape."""
        if len(self.major_to_minor) != len(shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={self.major_to_minor} and shape={tuple(shape)}"
            )

    def check_usual(self) -> None:
        """Raises a NotImplementedError if dimensions lie in another order than row by row."""
        usual = tuple(range(len(self.major_to_minor)))
        if self.tiling or self.major_to_minor != usual:
            raise NotImplementedError(
                f"{self}: arrays lie row by row, so major_to_minor is {usual}, without tiles. Transpose the array."
            )

    def _key(self) -> Any:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __repr__(self) -> str:
        order, tiling, bits = self._key()
        return f"Layout(major_to_minor={order}, tiling={tiling}, sub_byte_element_size_in_bits={bits})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Format:
    """How an array lies: the order of its dimensions on each device, and its sharding.

    Args:
      layout: None or ``Layout.AUTO`` for the usual order, row by row.
      sharding: None for where it is.

    Raises:
      ValueError: there is a layout, and no sharding.
      TypeError: something is no layout or no sharding.

    >>> Format().layout is None
    True
    """

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        if layout is not None and not isinstance(layout, (Layout, Auto)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, `Layout.AUTO` or an "
                f"instance of `Layout`. Got {layout} of type {type(layout)}"
            )
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError(
                f"Invalid value received for the sharding argument. Expected a `Sharding`, got {sharding!r}"
            )
        if isinstance(layout, Layout) and not isinstance(sharding, (NamedSharding, SingleDeviceSharding)):
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {type(layout)}. Please pass a "
                "`polyax.sharding.NamedSharding` or `polyax.sharding.SingleDeviceSharding` to the sharding argument. "
                f"Got sharding {sharding}"
            )
        self.layout = layout
        self.sharding = sharding

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"

    def where(self) -> Any:
        """The sharding.

        Raises:
          NotImplementedError: dimensions lie in another order than row by row.
        """
        if isinstance(self.layout, Layout):
            self.layout.check_usual()
        return self.sharding

    def place_of(self, shape: Sequence[int]) -> Any:
        """The sharding, for an array of that shape that is put there.

        Raises:
          ValueError: any order would do, or the order is that of other dimensions.
          NotImplementedError: as of ``where``.
        """
        if isinstance(self.layout, Auto):
            raise ValueError(
                f"sharding and layout in a `Format` should be concrete. Got layout: {self} for an array of shape "
                f"{tuple(shape)}"
            )
        if self.layout is not None:
            self.layout.check(shape)
        return self.where()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))


def row_by_row(ndim: int) -> Layout:
    """How all arrays lie."""
    return Layout(range(ndim), ())
