"""How programs on several devices meet: a group whose members exchange arrays, through the host.

Whoever runs a member's program enters the group in its thread first; the rules of collectives ask for it there.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np


class Group:
    """The members that run one program together; they are numbered in row-major order over the axes.

    >>> Group((("i", 2), ("j", 3))).members(4, ("i",))
    [1, 4]
    """

    def __init__(self, axes: Sequence[tuple[Any, int]]) -> None:
        self.names = [name for name, _ in axes]
        self.sizes = [size for _, size in axes]
        self.size = math.prod(self.sizes)
        self._values: list[Any] = [None] * self.size
        self._barrier = threading.Barrier(self.size)

    def coordinates(self, rank: int) -> dict[Any, int]:
        """The member's position along each axis."""
        position = np.unravel_index(rank, self.sizes) if self.sizes else ()
        return {name: int(n) for name, n in zip(self.names, position, strict=True)}

    def members(self, rank: int, names: Sequence[Any]) -> list[int]:
        """The members that differ from ``rank`` along the named axes alone, in order."""
        own = self.coordinates(rank)
        ranges = [range(n) if name in names else [own[name]] for name, n in zip(self.names, self.sizes, strict=True)]
        return [int(np.ravel_multi_index(at, self.sizes)) for at in itertools.product(*ranges)]

    @contextlib.contextmanager
    def exchange(self, rank: int, value: Any) -> Generator[list[Any]]:
        """Inside the block, the values of all members; all must have come before anyone enters or leaves it.

        Raises:
          RuntimeError: another member failed, so that it will never come.
        """
        self._values[rank] = value
        self._meet()
        yield list(self._values)
        self._meet()

    def _meet(self) -> None:
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise RuntimeError("another device of this computation failed, so that its collectives can't end") from None

    def abort(self) -> None:
        """Lets all members know that one has failed."""
        self._barrier.abort()


_here = threading.local()


@contextlib.contextmanager
def entered(group: Group, rank: int) -> Generator[None]:
    """Makes this thread run member ``rank`` of ``group``; an error in it reaches the other members."""
    before = getattr(_here, "member", None)
    _here.member = (group, rank)
    try:
        yield
    except BaseException:
        group.abort()
        raise
    finally:
        _here.member = before


def member() -> tuple[Group, int]:
    """The group, and the number in it, that this thread runs a program for."""
    found = getattr(_here, "member", None)
    if found is None:
        raise RuntimeError("a collective runs outside of any group of devices; use it under pmap")
    return found
