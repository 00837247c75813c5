"""Plans: what an executable does, step by step, and where each value lives.

Memory is addressed by ``Ref(base, offset)``: the bases are the program's inputs, the results that a launch allocates,
the arena, and scalars written in the program, in this order. Knows neither devices nor primitives' meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.plan.journal import Journal

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Ref:
    """A place in memory: ``offset`` bytes into base number ``base``."""

    base: int
    offset: int = 0


@dataclass(frozen=True)
class KernelStep:
    """Runs ``kernel``; ``operands`` in the order of its launch arguments."""

    kernel: Kernel
    operands: tuple[Ref, ...]
    scalars: tuple[int, ...] = ()
    bytes_moved: int = 0
    flops: int = 0
    inplace: bool = False
    """Some operand's memory is also that of another one: elements are read before they are written."""
    out_avals: tuple[ShapedArray, ...] = ()

    @property
    def primitives(self) -> tuple[str, ...]:
        return self.kernel.primitives


@dataclass(frozen=True)
class CallStep:
    """Runs a library call; ``lowering`` is a ``Call`` or ``Native``."""

    lowering: Any
    primitive: Any
    params: dict[str, Any]
    args: tuple[Ref, ...]
    arg_avals: tuple[ShapedArray, ...]
    outs: tuple[Ref, ...]
    out_avals: tuple[ShapedArray, ...]
    bytes_moved: int = 0
    flops: int = 0
    primitives: tuple[str, ...] = ()


@dataclass(frozen=True)
class CopyStep:
    """Copies ``nbytes`` from ``source`` to ``target``: what an update in place must not overwrite."""

    source: Ref
    target: Ref
    nbytes: int
    primitives: tuple[str, ...] = ()

    @property
    def bytes_moved(self) -> int:
        return 2 * self.nbytes

    @property
    def flops(self) -> int:
        return 0


Step = KernelStep | CallStep | CopyStep


@dataclass
class Plan:
    """A program whose memory is laid out."""

    inputs: tuple[ShapedArray, ...]
    fresh: tuple[int, ...]
    """Bytes of each result buffer that a launch allocates."""
    arena_bytes: int
    literals: tuple[np.ndarray, ...]
    steps: list[Step]
    outputs: tuple[int, ...]
    """The base that holds each result, at offset 0: fresh, or an input."""
    overwritten: frozenset[int] = frozenset()
    """Inputs (donated ones) that the program may write to."""
    decisions: list[Any] = field(default_factory=list)
    bytes_unfused: int = 0
    results: tuple[ShapedArray, ...] = ()
    journal: Journal = field(default_factory=Journal)

    @property
    def arena(self) -> int:
        """The number of the arena's base."""
        return len(self.inputs) + len(self.fresh)

    @property
    def cost(self) -> int:
        """Scalar operations and bytes: what decides whether a launch runs in the calling thread."""
        return sum(max(s.bytes_moved, s.flops) for s in self.steps)

    @cached_property
    def shared(self) -> frozenset[int]:
        """Bases that hold several results, or an input and a result."""
        repeated = {b for n, b in enumerate(self.outputs) if b in self.outputs[:n]}
        return frozenset(repeated | {b for b in self.outputs if b < len(self.inputs) and b not in self.overwritten})


class Arena:
    """Offsets into one block of memory: the smallest free gap that fits is used first; neighbours are joined.

    >>> arena = Arena()
    >>> a, b = arena.allocate(100), arena.allocate(10)
    >>> arena.free(a, 100)
    >>> (a, b, arena.allocate(64), arena.size)
    (0, 128, 0, 192)
    """

    def __init__(self) -> None:
        self.size = 0
        self._gaps: dict[int, int] = {}  # start -> end
        self._ends: dict[int, int] = {}  # end -> start

    def allocate(self, nbytes: int) -> int:
        need = aligned(nbytes)
        fitting = [(end - start, start) for start, end in self._gaps.items() if end - start >= need]
        if not fitting:
            start = self._ends.get(self.size, self.size)  # a gap at the end grows
            self._remove(start)
            self.size = start + need
            return start
        _, start = min(fitting)
        end = self._gaps[start]
        self._remove(start)
        if end > start + need:
            self._add(start + need, end)
        return start

    def free(self, start: int, nbytes: int) -> None:
        end = start + aligned(nbytes)
        if end in self._gaps:
            after = self._gaps[end]
            self._remove(end)
            end = after
        if start in self._ends:
            before = self._ends[start]
            self._remove(before)
            start = before
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        self._gaps[start], self._ends[end] = end, start

    def _remove(self, start: int) -> None:
        if start in self._gaps:
            del self._ends[self._gaps.pop(start)]


def aligned(nbytes: int) -> int:
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
