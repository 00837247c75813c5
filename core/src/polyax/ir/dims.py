"""Dimensions that are symbols: what rules for shapes have to know of them, which is next to nothing.

They add, multiply and compare as integers do, as far as that has an answer. What they are is said in ``polyax.export``.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any


class SymbolicDim:
    """The base of dimensions that are expressions of variables, such as ``2*b + 1``."""

    __slots__ = ()

    def __jax_array__(self) -> Any:
        raise NotImplementedError

    def max(self, other: Any) -> Any:
        raise NotImplementedError

    def min(self, other: Any) -> Any:
        raise NotImplementedError


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is an expression of variables."""
    return isinstance(p, SymbolicDim)


def dim_index(d: Any) -> Any:
    """A dimension: an integer, or as it is if it is symbolic.

    Raises:
      TypeError: it is neither.
    """
    return d if isinstance(d, SymbolicDim) else index(d)


def symbolic_broadcast(shapes: Sequence[Sequence[Any]]) -> tuple[Any, ...] | None:
    """The shape that NumPy's broadcasting gives, for shapes with symbolic dimensions; None if two dimensions differ, or
    may differ, and neither is 1."""
    rank = max(map(len, shapes))
    found: list[Any] = [1] * rank
    for shape in shapes:
        for n, size in enumerate(shape, rank - len(shape)):
            if found[n] == 1:
                found[n] = size
            elif size not in (1, found[n]):
                return None
    return tuple(found)


def slice_indices(s: slice, size: Any) -> tuple[Any, Any, Any]:
    """``s.indices(size)`` and the number of elements between, for a size or ends that may be symbolic: start, step,
    count."""
    step = 1 if s.step is None else index(s.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    start, stop = (_clamped(end, size, lowest, highest) for end in (s.start, s.stop))
    start = (lowest if step > 0 else highest) if start is None else start
    stop = (highest if step > 0 else lowest) if stop is None else stop
    count = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
    return start, step, max_dim(count, 0)


def _clamped(end: Any, size: Any, lowest: Any, highest: Any) -> Any:
    if end is None:
        return None
    return min_dim(max_dim(end + size if end < 0 else end, lowest), highest)


def surely_differ(a: Any, b: Any) -> bool:
    """Whether two sizes are different whatever symbolic dimensions are; where that can't be told, it is found out when
    their values are known."""
    return a != b and not isinstance(a, SymbolicDim) and not isinstance(b, SymbolicDim)


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two dimensions."""
    return d1.max(d2) if isinstance(d1, SymbolicDim) else d2.max(d1) if isinstance(d2, SymbolicDim) else max(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two dimensions."""
    return d1.min(d2) if isinstance(d1, SymbolicDim) else d2.min(d1) if isinstance(d2, SymbolicDim) else min(d1, d2)
