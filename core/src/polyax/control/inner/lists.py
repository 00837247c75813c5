"""Lists told apart by masks: what rules of programs within programs do to their arguments. Knows no primitive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ops.basis import convert
from polyax.trace.symbolic import Zero

T = TypeVar("T")
Mask = tuple[bool, ...]


def partition(mask: Sequence[bool], xs: Sequence[T]) -> tuple[list[T], list[T]]:
    """The items where ``mask`` holds, and the others.

    >>> partition((True, False, True), "abc")
    (['a', 'c'], ['b'])
    """
    pairs = list(zip(mask, xs, strict=True))
    return [x for m, x in pairs if m], [x for m, x in pairs if not m]


def kept(mask: Sequence[bool], xs: Sequence[T]) -> list[T]:
    """The items where ``mask`` holds."""
    return [x for m, x in zip(mask, xs, strict=True) if m]


def check_dtypes(what: str, avals: Sequence[ShapedArray], others: Sequence[ShapedArray]) -> None:
    """Raises TypeError unless both have the same dtypes: users' rules may give cotangents others than are expected."""
    for a, b in zip(avals, others, strict=False):
        if a.dtype != b.dtype:
            raise TypeError(f"{what} must have equal types, but they differ: {a.str_short()} and {b.str_short()}")


def merged(mask: Sequence[bool], yes: Iterable[Any], no: Iterable[Any]) -> list[Any]:
    """What ``partition`` took apart.

    >>> merged((True, False, True), "ac", "b")
    ['a', 'b', 'c']
    """
    yes, no = iter(yes), iter(no)
    return [next(yes) if m else next(no) for m in mask]


def cut(xs: Sequence[T], *sizes: int) -> list[list[T]]:
    """``xs`` in pieces of the given sizes, and the rest.

    >>> cut("abcde", 1, 2)
    [['a'], ['b', 'c'], ['d', 'e']]
    """
    pieces: list[list[T]] = []
    start = 0
    for n in sizes:
        pieces.append(list(xs[start : start + n]))
        start += n
    return [*pieces, list(xs[start:])]


def either(*masks: Sequence[bool]) -> Mask:
    """Where any of them holds."""
    return tuple(any(ms) for ms in zip(*masks, strict=True))


def nonzeros(xs: Iterable[Any]) -> Mask:
    """Which tangents or cotangents aren't symbolic zeros."""
    return tuple(type(x) is not Zero for x in xs)


def opposite(mask: Sequence[bool]) -> Mask:
    """Where it doesn't hold."""
    return tuple(not m for m in mask)


def with_zeros(nonzero: Sequence[bool], values: Iterable[Any], avals: Iterable[ShapedArray]) -> list[Any]:
    """The values where ``nonzero`` holds, and symbolic zeros of these types elsewhere."""
    values = iter(values)
    return [next(values) if nz else Zero(a) for nz, a in zip(nonzero, avals, strict=True)]


def as_arrays(xs: Iterable[Any]) -> list[Any]:
    """What a construct gives on as it got it: never a number of Python's, nor the caller's own NumPy array."""
    return [convert(x, a.dtype, a.weak_type) for x, a in ((x, aval_of(x)) for x in xs)]


def fixpoint(step: Callable[[Mask], Sequence[bool]], start: Sequence[bool]) -> Mask:
    """The smallest mask from ``start`` on that ``step`` doesn't enlarge: what loops do to their carries."""
    mask = tuple(start)
    while (larger := either(mask, step(mask))) != mask:
        mask = larger
    return mask
