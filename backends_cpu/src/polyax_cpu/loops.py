"""Loops and branches as steps of native programs: where the plan says that memory is, written down for the native
runtime. Knows no primitive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from polyax_cpu import pool
from polyax_cpu.steps import Described, Table, on_bases
from polyax_kernels.plan.plan import BranchStep, ControlStep, CopyStep, Inner, LoopStep, Ref, Step

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
    test = None if step.test is None else steps[0]
    record, keep = _loop(native, step, steps[-1], test)
    return on_bases(pool.symbols()["polyax_loop"], [ctypes.addressof(record)], (record, keep))


def _table(native: Native, steps: Sequence[Step]) -> Table | None:
    described = [native(s) for s in steps]
    found = [d for d in described if d is not None]
    return Table(found, 0) if len(found) == len(described) else None


def _loop(native: Native, step: LoopStep, body: Table, test: Table | None) -> tuple[Any, Any]:
    """A ``Loop`` of the native runtime, and what must live as long as it."""
    even, odd, holds = [*step.body.even], [*step.body.odd], -1
    if step.test is not None:
        holds = len(even) + len(step.test.even)
        even += [*step.test.even, step.holds]
        odd += [*step.test.odd, step.holds]
    around = [_copies(native, copies) for copies in (step.before, *step.ends)]
    length = MOST_TURNS if step.length is None else step.length
    return _record(body, test, around, (even, odd), step.strides, (len(step.body.even), holds, length))


def _branch(step: BranchStep, tables: Sequence[Table]) -> Described:
    """Each branch is a loop of one turn."""
    none = [Table([], 0)] * 3
    pairs = zip(step.branches, tables, strict=True)
    records, keep = zip(*[_branch_record(inner, table, none) for inner, table in pairs], strict=True)
    addresses = map(ctypes.addressof, records)
    values = [step.index.base, step.index.offset, *addresses]
    return on_bases(pool.symbols()["polyax_cond"], values, (records, keep))


def _branch_record(inner: Inner, table: Table, around: Sequence[Table]) -> tuple[Any, Any]:
    return _record(table, None, around, (inner.even, inner.odd), (), (len(inner.even), -1, 1))


def _copies(native: Native, copies: Sequence[CopyStep]) -> Table:
    table = _table(native, copies)
    assert table is not None
    return table


def _record(
    body: Table,
    test: Table | None,
    around: Sequence[Table],
    slots: tuple[Sequence[Ref | None], Sequence[Ref | None]],
    strides: Sequence[tuple[int, int]],
    numbers: tuple[int, int, int],
) -> tuple[Any, Any]:
    tables = [body, test or Table([], 0), *around]
    places = _words([x for ref in (*slots[0], *slots[1]) for x in _slot(ref)])
    moving = _words([x for place, nbytes in strides for n in (place, place + len(slots[0])) for x in (n, nbytes)])
    fields = [x for t in tables for x in (ctypes.addressof(t.steps), t.count)]
    fields += [ctypes.addressof(places), len(slots[0]), ctypes.addressof(moving), 2 * len(strides), *numbers]
    return _words(fields), (tables, places, moving)


def _slot(ref: Ref | None) -> tuple[int, int]:
    ref = ref or ABSENT
    return ref.base, ref.offset


def _words(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
