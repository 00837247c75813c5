"""``Factors``: how the dimensions of a primitive's operands and results belong together, so what can be cut alike.

A rule ``primitive.factors(*in_avals, **params) -> Factors | None`` says it in the notation of einsum, with numbers for
letters: a product of matrices is ``[[0, 1], [1, 2]] -> [[0, 2]]`` with factor 1 summed. What the numbers mean is
nobody's business but the rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

Dim = tuple[int, ...]
"""The factors that a dimension consists of, outermost first: one, but for reshapes; none if nobody may cut it."""
Dims = tuple[Dim, ...]


class Place(Protocol):
    """Where the block of a result is that is computed, for rules whose blocks differ by more than their operands."""

    def shape(self, result: int) -> tuple[int, ...]:
        """The shape of the block of result number ``result``."""
        ...

    def start(self, result: int, dim: int) -> Any:
        """Where the block begins in the whole array, along a dimension: an int32, known when it runs."""
        ...

    def begin(self, factor: int) -> Any:
        """Likewise along a factor, which results may lack."""
        ...


Written = Sequence[int | Sequence[int] | None]
Run = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Factors:
    """``ins`` and ``outs``: for each operand and result, for each dimension, its factors."""

    ins: tuple[Dims, ...]
    outs: tuple[Dims, ...]
    reduced: Mapping[int, str] = field(default_factory=dict)
    """Factors that the results lack since all their parts are put together: by ``sum``, ``max`` or ``min``."""
    whole: frozenset[int] = frozenset()
    """Factors of which each device must have all: what a sort goes along, the window of a convolution."""
    carried: frozenset[int] = frozenset()
    """Those of them along which results are cut as operands are, although each device makes all."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Of factors that share a dimension with others; others have the size of their dimension."""
    local: Run | None = None
    """``(place, *blocks, **params) -> list``: the primitive on blocks, where that is more than binding it with the
    same parameters."""


def factors(
    ins: Sequence[Sequence[int | Sequence[int] | None]],
    outs: Sequence[Sequence[int | Sequence[int] | None]],
    **more: Any,
) -> Factors:
    """``Factors`` from lists, in which a dimension of one factor is its number, and None is a dimension nobody cuts.

    >>> factors([[0, 1], [1, 2]], [[0, 2]], reduced={1: "sum"}).ins
    (((0,), (1,)), ((1,), (2,)))
    """
    for name in more.keys() & {"whole", "carried"}:
        more[name] = frozenset(more[name])
    return Factors(tuple(map(_dims, ins)), tuple(map(_dims, outs)), **more)


def _dims(dims: Written) -> Dims:
    return tuple(() if d is None else (d,) if isinstance(d, int) else tuple(d) for d in dims)


# --- what many rules are made of ------------------------------------------------------------------------------------


def elementwise(*avals: Any, **_: Any) -> Factors:
    """Of operations on arrays of one shape, scalars, and arrays that are stretched where their size is 1."""
    return _elementwise(*[a.shape for a in avals])


@lru_cache(1024)  # in a program the same shapes recur
def _elementwise(*shapes: tuple[int, ...]) -> Factors:
    return factors([*map(unstretched, shapes)], [range(max(map(len, shapes), default=0))])


def unstretched(shape: Sequence[int], numbers: Sequence[int] | None = None) -> list[int | None]:
    """The numbers (``0, 1 ...`` without) as the factors of dimensions, but for those of size 1, which may be stretched.

    >>> unstretched((3, 1, 4))
    [0, None, 2]
    """
    numbers = range(len(shape)) if numbers is None else numbers
    return [None if n == 1 else d for n, d in zip(shape, numbers, strict=True)]


def free_but(avals: Sequence[Any], outs: int, dims: Sequence[int]) -> Factors:
    """Of operations on arrays of one rank, and scalars, that go along ``dims``, of which they need all; with so many
    results of that rank."""
    numbers = [None if d in dims else d for d in range(avals[0].ndim)]
    return factors([numbers[: a.ndim] for a in avals], [numbers] * outs)


def carried_along(x: Any, dims: Sequence[int]) -> Factors:
    """Of operations that go along ``dims``, of which they need all, with a result of the same shape that is cut like
    the operand."""
    return factors([range(x.ndim)], [range(x.ndim)], whole=dims, carried=dims)


def leading(free: int, ins: Sequence[Any], outs: Sequence[Any]) -> Factors:
    """Of operations on the last dimensions of arrays, done for each index of the ``free`` ones before them."""
    dims = [[[*range(free), *[None] * (a.ndim - free)] for a in avals] for avals in (ins, outs)]
    return factors(*dims)


def sized(p: Any, name: str) -> Run:
    """A ``local`` for primitives whose parameter ``name`` is the shape of their result."""

    def local(place: Place, *blocks: Any, **params: Any) -> Sequence[Any]:
        return p.bind_all(*blocks, **{**params, name: place.shape(0)})

    return local


def fitted(extents: Sequence[int], whole: Sequence[int], block: Sequence[int]) -> tuple[int, ...]:
    """``extents``, with those of a block where they are those of a whole dimension.

    >>> fitted((1, 8), (4, 8), (2, 4))
    (1, 4)
    """
    return tuple([b if e == n else e for e, n, b in zip(extents, whole, block, strict=True)])
