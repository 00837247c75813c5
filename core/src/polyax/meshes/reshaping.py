"""The factors of a reshape: what dimensions that are split, merged or both have in common."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from polyax.meshes.factors import Factors, Run, factors


class _Side:
    """One shape, read from its outermost dimension on."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = shape
        self.dims: list[list[int]] = [[] for _ in shape]
        self.dim = -1
        self.rest = 1
        """What is left of the size of dimension ``dim``."""

    def advance(self) -> None:
        """Goes on to the next dimension that isn't used up, if there is one."""
        while self.rest == 1 and self.dim + 1 < len(self.shape):
            self.dim += 1
            self.rest = self.shape[self.dim]

    def take(self, factor: int, size: int) -> None:
        self.dims[self.dim].append(factor)
        self.rest //= size


def reshaped(old: Sequence[int], new: Sequence[int], local: Run) -> Factors:
    """The factors of arrays of shape ``old`` that become arrays of shape ``new``, in row-major order.

    >>> reshaped((6, 4), (2, 3, 4), None).ins, reshaped((6, 4), (2, 3, 4), None).outs
    ((((0, 1), (2,)),), (((0,), (1,), (2,)),))
    """
    if 0 in (*old, *new):
        return factors([[None] * len(old)], [[None] * len(new)])
    before, after, sizes, whole = _Side(old), _Side(new), {}, set()
    while True:
        before.advance()
        after.advance()
        if before.rest == after.rest == 1:
            return factors([before.dims], [after.dims], sizes=sizes, whole=whole, local=local)
        if (common := gcd(before.rest, after.rest)) > 1:
            factor = len(sizes)
            sizes[factor] = common
            before.take(factor, common)
            after.take(factor, common)
        else:
            _skip(before, after, sizes, whole)


def _skip(before: _Side, after: _Side, sizes: dict[int, int], whole: set[int]) -> None:
    """Leaves dimensions whole that have nothing in common, as far as they hold the same elements."""
    n, m = _leave(before, sizes, whole), _leave(after, sizes, whole)
    while n != m:
        if n < m:
            before.advance()
            n *= _leave(before, sizes, whole)
        else:
            after.advance()
            m *= _leave(after, sizes, whole)


def _leave(side: _Side, sizes: dict[int, int], whole: set[int]) -> int:
    """Makes what is left of a dimension a factor of its own."""
    size, factor = side.rest, len(sizes)
    sizes[factor] = size
    whole.add(factor)
    side.take(factor, size)
    return size
