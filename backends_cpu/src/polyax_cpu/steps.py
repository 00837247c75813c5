"""Steps for the native runtime, what they cost, and tables of them that one native call works off.

Must not know what steps do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

from polyax_cpu import pool
from polyax_cpu.entry import Entry
from polyax_cpu.notes.reading import Known, know
from polyax_cpu.records import LINE, NativeRef, NativeStep, NativeSteps
from polyax_kernels.plan.plan import BranchStep, CallStep, ControlStep, LoopStep, Ref, Step

PARALLEL_COST = 200_000
"""Steps of fewer scalar operations or bytes run on one thread: waking another one costs some microseconds."""
PIECE_COST, MOST = 1_000_000, 4
"""Longer steps are cut into more pieces than there are threads, so that a late thread does less: so many for each. What
reads strips of rows has one, as memory is read in the order in which it lies."""
ITEM_COST = 10_000
"""Items that take longer are shared evenly, to the last one: they lie in lines of their own."""
QUICK_COST = 20_000
"""Native calls of less work keep the interpreter's lock: they last a few microseconds."""
CALLED, CACHED = 30, 4
"""What calling a step costs beside its work, and how many times faster work on what is in the cache is."""

ON_BASES = -1
"""Instead of a count of operands: the function takes the bases themselves."""
Described = tuple[NativeStep, Any]
"""A step, and what must live as long as it."""


class Work(Protocol):
    """What a native function of a library is to compute: its scalars, its whole range, and how many operations."""

    @property
    def scalars(self) -> tuple[int, ...]: ...
    @property
    def extent(self) -> int: ...
    @property
    def flops(self) -> int: ...


class Table:
    """The steps of one native call, with everything that they point to.

    If that takes long, it is one call for all members of a group that have come to it, and threads share them.
    ``sources``: the step of the plan that each is.
    """

    works = waits = False
    tells = True
    """Whether traces learn of its steps without asking."""

    def __init__(
        self, described: Sequence[Described], cost: int, members: int = 1, sources: Sequence[Step] = ()
    ) -> None:
        steps = [step for step, _ in described]
        array = (NativeStep * len(steps))(*steps)
        self.steps = NativeSteps(ctypes.addressof(array), len(steps))
        self.keep = [array, *(keep for _, keep in described)]
        self.stops = members > 1 and cost * members > PIECE_COST
        self.release = cost > QUICK_COST
        self.entry = Entry(self.steps, self.release)
        self.known = know(self.entry.address, Known(sources))
        self.run = self.entry.run
        if self.stops or any(s.piece < s.end for s in steps):
            pool.ensure_started()

    def __call__(self, bases: list[Any]) -> None:
        self.run(bases)

    def walk(self, bases: Sequence[Any]) -> Generator[tuple[Any, Sequence[Any]]]:
        yield self, bases

    def of_all(self, members: Mapping[int, Sequence[Any]], axes: Any) -> list[int]:
        """Runs it for those that have come; nobody waits for others."""
        self.entry.run_members(list(members.values()))
        return list(members)


def described(
    address: int, operands: Sequence[Ref], scalars: Sequence[int], end: int, piece: int, cost: int, keep: Any = None
) -> Described:
    """The step that calls the function at ``address`` on the range up to ``end``, ``piece`` at a time; all of them cost
    so much."""
    places = (NativeRef * len(operands))(*[(r.base, r.offset) for r in operands])
    values = (ctypes.c_int64 * len(scalars))(*scalars)
    brief = cost <= PIECE_COST * pool.thread_count()
    step = NativeStep(address, ctypes.addressof(values), 0, end, piece, brief, len(operands), ctypes.addressof(places))
    return step, (places, values, keep)


def copying(source: Ref, target: Ref, nbytes: int, divides: bool = True) -> Described:
    piece = piece_of(nbytes, nbytes) if divides else nbytes
    return described(pool.symbols()["polyax_copy"], (source, target), (), nbytes, piece, nbytes)


def piece_of(cost: int, extent: int, grain: int = 1, most: int = MOST) -> int:
    """How long the pieces are into which a step over ``extent`` is cut, at ``most`` so many for each thread."""
    threads = pool.thread_count()
    if cost <= PARALLEL_COST or threads == 1:
        return extent
    return piece_size(extent, min(extent, threads * min(most, max(1, cost // (PIECE_COST * threads)))), grain)


def piece_of_library(cost: int, extent: int) -> int:
    """As ``piece_of``, for a library's items, all of which take as long: each thread has one piece."""
    threads = min(pool.thread_count(), extent)
    return -(-extent // threads) if cost > ITEM_COST * extent else piece_size(extent, threads)


def piece_size(extent: int, pieces: int, grain: int = 1) -> int:
    """How long ``pieces`` are: whole lines, if they are as long as one, else multiples of ``grain``."""
    even = -(-extent // pieces)
    whole = max(LINE, grain) if even >= LINE else grain
    return -(-even // whole) * whole


# --- costs ------------------------------------------------------------------------------------------------------------


def cost_of(step: Step) -> int:
    """In bytes or scalar operations; products do many of them at a time."""
    if isinstance(step, ControlStep):
        return max(lasting(step), QUICK_COST + 1)
    if isinstance(step, CallStep):
        flops = step.flops if step.lowering.sums else operations(step)
        return max(step.bytes_moved, flops // 8)
    return max(step.bytes_moved, step.flops)


def lasting(step: Step) -> int:
    """The cost of a step in a loop, where arrays are mostly small and stay in the cache."""
    if isinstance(step, LoopStep):
        return step.turns * sum(lasting(s) for _, inner in step.inners for s in inner.plan.steps)
    if isinstance(step, BranchStep):
        return max(sum(map(lasting, inner.plan.steps)) for inner in step.branches)
    if isinstance(step, CallStep):
        return CALLED + (operations(step) // 5 or step.flops) // CACHED
    return CALLED + step.flops // CACHED


def operations(step: CallStep) -> int:
    """Of a native function, many of which are done at a time."""
    return 0 if step.native is None else step.native[1].flops
