"""Loops and branches as steps of native programs: where the plan says that memory is, written down for the native
runtime. Knows no primitive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from polyax_cpu import pool
from polyax_cpu.records import NativeBranches, NativeLoop, NativeMoving, NativeRef
from polyax_cpu.steps import Described, Table, on_bases
from polyax_kernels.plan.plan import BranchStep, ControlStep, CopyStep, LoopStep, Ref, Step

MOST_TURNS = (1 << 63) - 1
ABSENT = Ref(-1)

Native = Callable[[Step], Described | None]
"""How the native runtime runs a step; None if Python must."""


def native_control(native: Native, step: ControlStep) -> Described | None:
    """The step that runs a loop or a branch without Python; None if some step of its programs needs Python."""
    tables = [_table(native, (*inner.plan.steps, *inner.copies)) for _, inner in step.inners]
    if None in tables:
        return None
    steps = [t for t in tables if t is not None]
    if isinstance(step, BranchStep):
        return _branch(step, steps)
    return on_bases(pool.symbols()["polyax_loop"], *_loop(native, step, steps))


def _table(native: Native, steps: Sequence[Step]) -> Table | None:
    described = [native(s) for s in steps]
    found = [d for d in described if d is not None]
    return Table(found, 0) if len(found) == len(described) else None


def _loop(native: Native, step: LoopStep, tables: Sequence[Table]) -> tuple[NativeLoop, Any]:
    """A loop as the native runtime reads it, and what must live as long as it."""
    even, odd = [*step.body.even], [*step.body.odd]
    loop = NativeLoop(body=tables[-1].steps, test_first=len(even), holds=-1)
    loop.turns = MOST_TURNS if step.length is None else step.length
    if step.test is not None:
        loop.test, loop.holds = tables[0].steps, len(even) + len(step.test.even)
        even += [*step.test.even, step.holds]
        odd += [*step.test.odd, step.holds]
    around = [_copies(native, copies) for copies in (step.before, *step.ends)]
    loop.before, loop.even, loop.odd = (table.steps for table in around)
    return loop, (tables, around, _slots(loop, even, odd), _moving(loop, step.strides))


def _branch(step: BranchStep, tables: Sequence[Table]) -> Described:
    """Each branch is a loop of one turn."""
    loops = [NativeLoop(body=table.steps, holds=-1, turns=1) for table in tables]
    slots = [_slots(loop, inner.even, inner.odd) for loop, inner in zip(loops, step.branches, strict=True)]
    addresses = (ctypes.c_void_p * len(loops))(*map(ctypes.addressof, loops))
    record = NativeBranches(NativeRef(step.index.base, step.index.offset), ctypes.addressof(addresses))
    return on_bases(pool.symbols()["polyax_cond"], record, (tables, loops, slots, addresses))


def _copies(native: Native, copies: Sequence[CopyStep]) -> Table:
    table = _table(native, copies)
    assert table is not None
    return table


def _slots(loop: NativeLoop, even: Sequence[Ref | None], odd: Sequence[Ref | None]) -> Any:
    refs = [ref or ABSENT for ref in (*even, *odd)]
    places = (NativeRef * len(refs))(*((ref.base, ref.offset) for ref in refs))
    loop.slots, loop.width = ctypes.addressof(places), len(even)
    return places


def _moving(loop: NativeLoop, strides: Sequence[tuple[int, int]]) -> Any:
    """Slots move in even and odd turns alike."""
    both = [(slot + skip, nbytes) for slot, nbytes in strides for skip in (0, loop.width)]
    moving = (NativeMoving * len(both))(*both)
    loop.moving, loop.moving_count = ctypes.addressof(moving), len(both)
    return moving
