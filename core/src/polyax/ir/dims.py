"""Dimensions that are symbols: what rules for shapes have to know of them, which is next to nothing.

They add, multiply and compare as integers do, as far as that has an answer. What they are is said in ``polyax.export``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from polyax.ir.errors import InconclusiveDimensionOperation


class SymbolicDim:
    """The base of dimensions that are expressions of variables, such as ``2*b + 1``."""

    __slots__ = ()

    def __jax_array__(self) -> Any:
        raise NotImplementedError

    def max(self, other: Any, flipped: bool = False) -> Any:
        raise NotImplementedError

    def min(self, other: Any, flipped: bool = False) -> Any:
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
    count.

    Raises:
      InconclusiveDimensionOperation: the signs of the step or of an end depend on the variables.
    """
    step = 1 if s.step is None else dim_index(s.step)
    up = is_upwards(step, "slice with non-constant elements", "slice step cannot be zero")
    lowest, highest = (0, size) if up else (-1, size - 1)

    def clamped(end: Any, name: str) -> Any:
        from_start = _resolved(lambda: end >= 0, f"In slice with non-constant elements the {name} ({end})", ">= 0")
        return min_dim(highest, end) if from_start else max_dim(lowest, size + end)

    start = (lowest if up else highest) if s.start is None else clamped(s.start, "start")
    stop = (highest if up else lowest) if s.stop is None else clamped(s.stop, "stop")
    return start, step, steps_between(stop - start, step)


def is_upwards(step: Any, where: str, zero: str) -> bool:
    """Whether a step is positive.

    Raises:
      ValueError: it is zero; the text is ``zero``.
      InconclusiveDimensionOperation: that depends on the variables.
    """
    if step == 0:
        raise ValueError(zero)
    return _resolved(lambda: step > 0, f"In {where} the step ({step})", "> 0 or < 0")


def _resolved(question: Callable[[], bool], what: str, choice: str) -> bool:
    try:
        return question()
    except InconclusiveDimensionOperation as e:
        told = f"{what} must be resolved statically if it is {choice}.\nDetails: {e}"
        raise InconclusiveDimensionOperation(told) from None


def steps_between(distance: Any, step: Any) -> Any:
    """How many positions 0, ``step``, ``2 * step``, ... come before ``distance``, for a step whose sign is known."""
    distance, gap = (distance, step) if step > 0 else (-distance, -step)
    return max_dim(0, distance + gap - 1) // gap


def surely_differ(a: Any, b: Any) -> bool:
    """Whether two sizes are different whatever symbolic dimensions are; where that can't be told, it is found out when
    their values are known."""
    return a != b and not isinstance(a, SymbolicDim) and not isinstance(b, SymbolicDim)


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two dimensions."""
    if isinstance(d1, SymbolicDim):
        return d1.max(d2)
    return d2.max(d1, flipped=True) if isinstance(d2, SymbolicDim) else max(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two dimensions."""
    if isinstance(d1, SymbolicDim):
        return d1.min(d2)
    return d2.min(d1, flipped=True) if isinstance(d2, SymbolicDim) else min(d1, d2)
