"""Plans: what an executable does, step by step, and where each value lives.

Memory is addressed by ``Ref(base, offset)``: the bases are the program's inputs, the results that a launch allocates,
the arena, and literals of the program, in this order. Knows neither devices nor primitives' meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.lazy import lazy
from polyax.runtime.contract.listing import Listing
from polyax_kernels.ir.graph import Node
from polyax_kernels.ir.kernel import Kernel

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
    out_avals: tuple[ShapedArray, ...] = ()

    @property
    def primitives(self) -> tuple[str, ...]:
        return self.kernel.primitives


@dataclass(frozen=True)
class CallStep:
    """Runs a library call; ``lowering`` is a ``Call``."""

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

    @lazy
    def native(self) -> Any:
        """What compiled plans call for it, in the backend's own terms; None if it needs Python."""
        native = self.lowering.native
        return None if native is None else native(self.arg_avals, self.out_avals, self.params)


@dataclass(frozen=True)
class CopyStep:
    """Copies ``nbytes`` from ``source`` to ``target``: what an update in place must not overwrite."""

    source: Ref
    target: Ref
    nbytes: int
    primitives: tuple[str, ...] = ()
    flops: ClassVar[int] = 0

    @property
    def bytes_moved(self) -> int:
        return 2 * self.nbytes


@dataclass(frozen=True)
class Inner:
    """A plan within another one. Its bases are places of the outer plan: ``even[n]`` and ``odd[n]`` in turns of these
    numbers, since a carry may live at two places by turns. None: it doesn't use that base."""

    plan: Plan
    even: tuple[Ref | None, ...]
    odd: tuple[Ref | None, ...]
    copies: tuple[CopyStep, ...] = ()
    """What is copied behind the steps; its refs count the places above, of which there are more than bases."""


@dataclass(frozen=True)
class LoopStep:
    """Runs a plan again and again: ``length`` times, or as long as ``test`` leaves true at ``holds``."""

    body: Inner
    test: Inner | None
    holds: Ref | None
    length: int | None
    strides: tuple[tuple[int, int], ...]
    """Places of ``body`` that move on after each turn, and by how many bytes."""
    before: tuple[CopyStep, ...]
    """Brings the first carries to where turns begin."""
    ends: tuple[tuple[CopyStep, ...], tuple[CopyStep, ...]]
    """Brings the last carries to where they are wanted, after an even and an odd number of turns."""
    primitive: Any
    out_avals: tuple[ShapedArray, ...] = ()
    primitives: tuple[str, ...] = ()

    @property
    def inners(self) -> tuple[tuple[str, Inner], ...]:
        return (("body", self.body),) if self.test is None else (("test", self.test), ("body", self.body))

    @property
    def turns(self) -> int:
        """As far as is known; else a guess that makes it worth a thread of its own."""
        return UNKNOWN_TURNS if self.length is None else self.length

    @property
    def bytes_moved(self) -> int:
        around = sum(c.bytes_moved for c in (*self.before, *self.ends[(self.length or 0) % 2]))
        return around + (self.length or 1) * sum(_each(inner, "bytes_moved") for _, inner in self.inners)

    @property
    def flops(self) -> int:
        return self.turns * sum(_each(inner, "flops") for _, inner in self.inners)


@dataclass(frozen=True)
class BranchStep:
    """Runs the plan of ``branches`` whose number, an int32, is at ``index``."""

    index: Ref
    branches: tuple[Inner, ...]
    primitive: Any
    out_avals: tuple[ShapedArray, ...] = ()
    primitives: tuple[str, ...] = ()

    @property
    def inners(self) -> tuple[tuple[str, Inner], ...]:
        return tuple((f"branch {n}", inner) for n, inner in enumerate(self.branches))

    @property
    def bytes_moved(self) -> int:
        """Of the longest branch."""
        return max(_each(inner, "bytes_moved") for inner in self.branches)

    @property
    def flops(self) -> int:
        return max(_each(inner, "flops") for inner in self.branches)


UNKNOWN_TURNS = 1000
ControlStep = LoopStep | BranchStep
Step = KernelStep | CallStep | CopyStep | LoopStep | BranchStep


def _each(inner: Inner, what: str) -> int:
    """The bytes or operations of one run."""
    return sum(getattr(step, what) for step in (*inner.plan.steps, *inner.copies))


class Made(NamedTuple):
    """The node that a step does the work of, and where that reads and writes."""

    node: Node
    args: tuple[Ref, ...]
    outs: tuple[Ref, ...]


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
    results: tuple[ShapedArray, ...]
    overwritten: frozenset[int] = frozenset()
    """Inputs (donated ones) that the program may write to."""
    decisions: list[Any] = field(default_factory=list)
    bytes_unfused: int = 0
    program: Listing | None = None
    """The equations that steps compute, if somebody wants to see them."""
    made: list[Made] = field(default_factory=list)
    """What each step was made of, for the checker; empty unless ``config.checks``."""

    @property
    def arena(self) -> int:
        """The number of the arena's base."""
        return len(self.inputs) + len(self.fresh)

    @property
    def bases(self) -> int:
        """How many there are."""
        return self.arena + 1 + len(self.literals)

    @property
    def cost(self) -> int:
        """Scalar operations and bytes: what decides whether a launch runs in the calling thread."""
        return sum(max(s.bytes_moved, s.flops) for s in self.steps)

    @lazy
    def shared(self) -> frozenset[int]:
        """Bases that hold several results, or an input and a result."""
        repeated = {b for n, b in enumerate(self.outputs) if b in self.outputs[:n]}
        return frozenset(repeated | {b for b in self.outputs if b < len(self.inputs) and b not in self.overwritten})

    def with_steps(self, change: Callable[[Step], Step]) -> Plan:
        """``change`` made to all steps, those of loops and branches included."""
        return replace(self, steps=[change(_with_inner(s, change)) for s in self.steps])


def _with_inner(step: Step, change: Callable[[Step], Step]) -> Step:
    def changed(inner: Inner) -> Inner:
        return replace(inner, plan=inner.plan.with_steps(change))

    if isinstance(step, LoopStep):
        return replace(step, body=changed(step.body), test=step.test and changed(step.test))
    return replace(step, branches=tuple(map(changed, step.branches))) if isinstance(step, BranchStep) else step


def walk_steps(plan: Plan) -> Iterator[Step]:
    """All steps, those of loops and branches behind these."""
    for step in plan.steps:
        yield step
        if isinstance(step, ControlStep):
            for _, inner in step.inners:
                yield from walk_steps(inner.plan)


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


def literal_key(value: np.ndarray) -> Any:
    """What tells literals apart: equal scalars are one."""
    return id(value) if value.shape else (value.dtype, value.tobytes())


def aligned(nbytes: int) -> int:
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
