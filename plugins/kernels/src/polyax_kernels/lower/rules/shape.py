"""Primitives that move elements: index arithmetic and masked loads, free once they are fused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from polyax_kernels.ir.expr import Expr, cast, const, op, where
from polyax_kernels.ir.kernel import Stage, Store
from polyax_kernels.lower.lowering import Out, Read, Update
from polyax_kernels.lower.rules.table import kernels

Sizes = Sequence[int]

CHOSEN_FROM = 8
"""Pieces of a concatenation that are chosen from at each point, which can be fused; beyond, choosing costs too much."""
STACKED = 20
"""Those of one element each that are chosen from where they are folded: written out, such a fold chooses nothing."""


@kernels("broadcast_in_dim")
def _broadcast_in_dim(out: Out, x: Read, *, broadcast_dimensions: Sizes, **_: Any) -> Expr:
    return x.at(tuple([out.i[d] for d in broadcast_dimensions]))


@kernels("transpose")
def _transpose(out: Out, x: Read, *, permutation: Sizes) -> Expr:
    places = dict(zip(permutation, out.i, strict=True))
    return x(*[places[d] for d in range(len(permutation))])


@kernels("squeeze", aliases=True)
def _squeeze(out: Out, x: Read, *, dimensions: Sizes) -> Expr:
    rest = iter(out.i)
    return x(*[const(0) if d in dimensions else next(rest) for d in range(len(x.shape))])


@kernels("reshape", aliases=True)
def _reshape(out: Out, x: Read, **_: Any) -> Expr:
    return x(*reshaped(out.i, out.shape, x.shape))


def reshaped(i: Sequence[Expr], shape: Sizes, source: Sizes) -> list[Expr]:
    """The indices into ``source`` of the element that has indices ``i`` in ``shape``.

    Dimensions are matched in groups of equal size, so that ``//`` and ``%`` appear only where a dimension is cut.

    >>> from polyax_kernels.ir.expr import Axis, consing, index
    >>> with consing():
    ...     i, j = (index(Axis(n, name)) for n, name in ((6, "i"), (4, "j")))
    ...     reshaped((i, j), (6, 4), (2, 3, 4))
    [floordiv(i, 3), mod(i, 3), j]
    """
    found: list[Expr] = []
    for dims, source_dims in _groups(shape, source):
        sizes = [source[d] for d in source_dims]
        if len(dims) == 1 and len(sizes) == 1:
            found.append(i[dims[0]])
            continue
        linear: Expr = const(0)
        for n, d in enumerate(dims):
            linear = i[d] if n == 0 else linear * shape[d] + i[d]
        found += _unravel(linear, sizes)
    return found


def _unravel(linear: Expr, sizes: Sizes) -> list[Expr]:
    """The row-major indices of element number ``linear``."""
    found: list[Expr] = []
    wide = [d for d, n in enumerate(sizes) if n != 1]
    for d, n in enumerate(sizes):
        inner = math.prod(sizes[d + 1 :])
        quotient = linear if inner == 1 else linear // inner
        if n == 1:
            found.append(const(0))
        else:
            found.append(quotient if d == wide[0] else quotient % n)
    return found


def _groups(shape: Sizes, source: Sizes) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of both shapes that hold the same elements, as short as possible; dimensions of size 1 are
    put into some run."""
    groups: list[tuple[list[int], list[int]]] = []
    a = b = 0
    while a < len(shape) or b < len(source):
        dims, source_dims = [], []
        left, right = 1, 1
        while left != right or not (dims or source_dims):
            if a < len(shape) and (left <= right or b == len(source)):
                left *= shape[a]
                dims.append(a)
                a += 1
            elif b < len(source):
                right *= source[b]
                source_dims.append(b)
                b += 1
            else:
                break
        groups.append((dims, source_dims))
    return groups


@kernels("rev")
def _rev(out: Out, x: Read, *, dimensions: Sizes) -> Expr:
    return x(*[const(n - 1) - i if d in dimensions else i for d, (i, n) in enumerate(zip(out.i, x.shape, strict=True))])


@kernels("iota")
def _iota(out: Out, *, dimension: int, **_: Any) -> Expr:
    return cast(out.i[dimension], out.dtype)


@kernels("slice")
def _slice(out: Out, x: Read, *, start_indices: Sizes, strides: Sizes | None, **_: Any) -> Expr:
    steps = strides or (1,) * len(x.shape)
    return x(*[affine(i, a, s) for i, a, s in zip(out.i, start_indices, steps, strict=True)])


def affine(i: Expr, start: int, step: int) -> Expr:
    """``start + i * step``."""
    scaled = i if step == 1 else i * step
    return scaled if start == 0 else scaled + start


@kernels("pad")
def _pad(out: Out, x: Read, value: Read, *, padding_config: Sequence[tuple[int, int, int]]) -> Expr:
    """The element where one is, else the padding value."""
    indices: list[Expr] = []
    conditions: list[Expr] = []
    for i, n, (low, high, inner) in zip(out.i, x.shape, padding_config, strict=True):
        j = affine(i, -low, 1)
        if low > 0:
            conditions.append(j >= 0)
        if inner:
            conditions.append(op("eq", j % (inner + 1), const(0)))
            j = j // (inner + 1)
        if high > 0:
            conditions.append(j < n)
        indices.append(j)
    inside = all_of(conditions)
    if inside is not None and x.literal is not None:
        return where(inside, x(*indices), value())
    return x(*indices, mask=inside, other=value())


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """As a mask; None if there are none."""
    return reduce(partial(op, "and"), conditions) if conditions else None


@kernels("concatenate")
def _concatenate(out: Out, *pieces: Read, dimension: int) -> Expr | list[Update]:
    """A few pieces are chosen from at each point; of many, each is written to its region."""
    most = CHOSEN_FROM
    if CHOSEN_FROM < len(pieces) <= STACKED and all(x.shape[dimension] == 1 for x in pieces):
        most = STACKED if dimension in out.folded() else CHOSEN_FROM
    return _chosen(out, pieces, dimension) if len(pieces) <= most else _written(out, pieces, dimension)


def _written(out: Out, pieces: Sequence[Read], dimension: int) -> list[Update]:
    updates: list[Update] = []
    start = 0
    for x in pieces:
        grid, i = out.grid(x.shape)
        place = tuple([affine(k, start, 1) if d == dimension else k for d, k in enumerate(i)])
        updates.append(Update(grid, (Stage((), (Store(out.slot, place, x(*i)),)),)))
        start += x.shape[dimension]
    return updates


def _chosen(out: Out, pieces: Sequence[Read], dimension: int) -> Expr:
    """Each piece is read only where it is."""
    i, end = out.i[dimension], out.shape[dimension]
    result = const(0, out.dtype)
    for x in reversed(pieces):
        start = end - x.shape[dimension]
        indices = [affine(k, -start, 1) if d == dimension else k for d, k in enumerate(out.i)]
        bounds = [i >= start] * (start > 0) + [i < end] * (end < out.shape[dimension])
        if x.shape[dimension]:
            result = x(*indices, mask=all_of(bounds), other=result)
        end = start
    return result


@kernels("split", each=True)
def _split(out: Out, x: Read, *, sizes: Sizes, axis: int) -> Expr:
    start = sum(sizes[: out.which])
    return x(*[affine(i, start, 1) if d == axis else i for d, i in enumerate(out.i)])
