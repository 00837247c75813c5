"""``ds``: slices of a size that is known, from a start that may be computed."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index as as_int
from typing import Any


@dataclass(frozen=True)
class Slice:
    """What ``ds`` gives."""

    start: Any
    size: int
    stride: int = 1


def ds(start: Any, size: int | None = None, stride: int | None = None) -> Any:
    """The slice of ``size`` elements from ``start`` on, which may be computed: an index of arrays and references.

    With one argument it is the slice of the first so many elements; ``ds(None)`` is all of them. Of an array, what is
    out of bounds is read from the nearest place where the slice fits, and not written.

    Raises:
      TypeError: the size is no integer, or negative.
      ValueError: a single argument is no integer.

    >>> import polyax
    >>> polyax.numpy.arange(5.0)[ds(1, 3)].tolist()
    [1.0, 2.0, 3.0]
    """
    if start is None:
        return slice(None)
    if size is None:
        try:
            start, size = 0, as_int(start)
        except TypeError:
            raise ValueError(f"ds: a single argument is the size, an integer; got {start!r}") from None
    if as_int(size) < 0:
        raise TypeError(f"ds: size must be greater than or equal to zero, got {size}")
    return Slice(start, as_int(size), 1 if stride is None else as_int(stride))
