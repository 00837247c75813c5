"""Which batched matrix product a ``dot_general`` is, and how its indices step through the operands' memory.

Says nothing of how products are computed: BLAS, tiles and panels of a backend start from here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray

Digit = tuple[int, int]
"""(size, stride in elements): an index that runs over several dimensions is a number with a digit for each of them."""


@dataclass(frozen=True)
class Side:
    """An operand as matrices: the digits of its batch, free and contracted indices, the last one changing fastest."""

    batch: tuple[Digit, ...]
    free: tuple[Digit, ...]
    contracted: tuple[Digit, ...]


def sides(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> tuple[Side, Side]:
    """Both operands of a ``dot_general``, with as few digits as their memory allows.

    >>> import numpy as np
    >>> x, y = (ShapedArray(s, np.dtype("float32")) for s in ((2, 3, 5), (7, 5)))
    >>> left, right = sides((x, y), {"dimension_numbers": (((2,), (1,)), ((), ()))})
    >>> left.free, left.contracted, right.free
    (((6, 5),), ((5, 1),), ((7, 5),))
    """
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    return _side(avals[0].shape, lb, lc), _side(avals[1].shape, rb, rc)


def _side(shape: tuple[int, ...], batch: Sequence[int], contracted: Sequence[int]) -> Side:
    digits = [(size, math.prod(shape[d + 1 :])) for d, size in enumerate(shape)]
    free = [d for d in range(len(shape)) if d not in batch and d not in contracted]
    return Side(*(merged([digits[d] for d in dims]) for dims in (batch, free, contracted)))


def merged(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """The same index with digits joined that step through memory as one.

    >>> merged([(2, 15), (3, 5), (1, 7), (5, 2)])
    ((6, 5), (5, 2))
    """
    result: list[Digit] = []
    for size, stride in digits:
        if size == 1:
            continue
        if result and result[-1][1] == size * stride:
            result[-1] = (result[-1][0] * size, stride)
        else:
            result.append((size, stride))
    return tuple(result)


def count(digits: Sequence[Digit]) -> int:
    """How many values the index has."""
    return math.prod(size for size, _ in digits)


@dataclass(frozen=True)
class Stored:
    """An operand as BLAS takes it: matrices ``stride`` elements apart, whose rows are ``ld`` apart; or whose columns
    are, if it is stored ``transposed``."""

    transposed: bool
    ld: int
    stride: int


def stored(side: Side, left: bool) -> Stored | None:
    """The matrices ``(free, contracted)`` of a left operand, or ``(contracted, free)`` of a right one; None if BLAS
    can't step through them where they lie.

    >>> stored(Side(((4, 6),), ((2, 3),), ((3, 1),)), left=True)
    Stored(transposed=False, ld=3, stride=6)
    """
    if max(map(len, (side.batch, side.free, side.contracted))) > 1:
        return None
    batch, free, contracted = ((*digits, (1, 0))[0] for digits in (side.batch, side.free, side.contracted))
    rows, columns = (free, contracted) if left else (contracted, free)
    if 1 in columns:
        return Stored(False, max(rows[1], columns[0]), batch[1])
    return Stored(True, max(columns[1], rows[0]), batch[1]) if 1 in rows else None


def grouped(left: Side, right: Side) -> tuple[int, tuple[Side, int], tuple[Side, int]] | None:
    """A batch as groups of equal size, in which a single step leads from one matrix to the next: the size, and each
    side in one group with how far apart its groups are; None if there are no such groups, or nothing is in them.

    Heads of attention: as ``(batch, position, head, feature)`` they are neither next to each other nor one batch.

    >>> grouped(Side(((2, 48), (4, 3)), ((4, 12),), ((3, 1),)), Side(((8, 9),), ((3, 3),), ((3, 1),)))[0]
    4
    """
    size = min(side.batch[-1][0] if len(side.batch) > 1 else count(side.batch) for side in (left, right))
    if size == 0:
        return None
    one, other = _group(left, size), _group(right, size)
    return None if one is None or other is None else (size, one, other)


def _group(side: Side, size: int) -> tuple[Side, int] | None:
    match side.batch:
        case ():
            return side, 0
        case ((total, step),) if total % size == 0:
            return replace(side, batch=((size, step),)), size * step
        case ((_, apart), (inner, step)) if inner == size:
            return replace(side, batch=((size, step),)), apart
        case _:
            return None


def taken(n: int, side: Side, aval: ShapedArray, params: Mapping[str, Any]) -> tuple[Stored, Sequence[int] | None]:
    """How BLAS takes operand ``n`` of a ``dot_general``, and, if it can't where that lies, the order of dimensions to
    copy it to first."""
    found = stored(side, left=n == 0)
    if found is not None:
        return found, None
    contracted, batch = (dims[n] for dims in params["dimension_numbers"])
    free = [d for d in range(len(aval.shape)) if d not in batch and d not in contracted]
    rows, columns = count(side.free), count(side.contracted)
    if len(aval.shape) - 1 in free:  # rows of memory stay rows, which is far cheaper to copy
        return Stored(n == 0, rows, rows * columns), (*batch, *contracted, *free)
    return Stored(n == 1, columns, rows * columns), (*batch, *free, *contracted)


MANY, TINY = 256, 8
"""More products than this, of matrices no larger than that, are kernels."""


def why_tiny(left: Side, right: Side) -> str | None:
    """Why many products of a few numbers each are left to a kernel, if it is that."""
    if count(left.batch) > MANY and max(map(count, (left.free, right.free, left.contracted))) <= TINY:
        return f"of matrices no larger than {TINY}, a thread multiplies several in the time of a call"
    return None


def why_not_blas(
    library: str, types: Collection[str], avals: Sequence[ShapedArray], params: Mapping[str, Any]
) -> str | None:
    """Why a BLAS with products of ``types``, and of narrow ones in float32, isn't asked, if so."""
    names = [a.dtype.name for a in avals]
    wanted = np.dtype(params.get("preferred_element_type") or avals[0].dtype).name
    if names[0] != names[1] or names[0] not in types:
        return f"{library} has no product of {' and '.join(names)}"
    if wanted != names[0] and (wanted != "float32" or names[0] == "float64"):
        return f"{library} has no product of {names[0]} in {wanted}"
    if not 0 < min(sizes := [math.prod(a.shape) for a in avals]) <= max(sizes) < 2**31:
        return f"{library} takes no empty matrices, and counts in 32 bits"
    return None
