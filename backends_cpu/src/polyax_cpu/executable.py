"""Programs as native code: runs of kernels, products and copies become one table that one native call works off.

Calls into Python (host fallbacks) stand between such runs. Knows plans; must not know how kernels are compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from polyax.runtime.backend import CompileOptions
from polyax_cpu import pool
from polyax_cpu.entry import Entry
from polyax_cpu.products import Product
from polyax_kernels.host import HostExecutable, rows
from polyax_kernels.lowering import Native
from polyax_kernels.plan import CallStep, CopyStep, KernelStep, Plan, Ref, Step
from polyax_kernels.schedule import choose

PARALLEL_COST = 200_000
"""Steps of fewer scalar operations or bytes run on one thread: waking another one costs some microseconds."""
PIECE_COST = 1_000_000
"""Longer steps are cut into more pieces than there are threads, so that a late thread does less."""

SPEED = 20
"""How many times faster native code is than what queues reckon: the waking of their thread takes 50 microseconds."""
QUICK_COST = 20_000
"""Native calls of less work keep the interpreter's lock: they last a few microseconds."""


class Operand(ctypes.Structure):
    _fields_ = [("base", ctypes.c_int64), ("offset", ctypes.c_int64)]


class NativeStep(ctypes.Structure):
    """As the native runtime reads it."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("scalars", ctypes.c_void_p),
        ("begin", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("pieces", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("operands", ctypes.c_void_p),
    ]


class Table:
    """The steps of one native call, with everything that they point to."""

    def __init__(self, steps: Sequence[NativeStep], keep: Sequence[Any], cost: int) -> None:
        self.steps = (NativeStep * len(steps))(*steps)
        self.count = len(steps)
        self.keep = keep
        self.entry = Entry(ctypes.addressof(self.steps), len(steps), cost > QUICK_COST)
        self.run = self.entry.run
        if any(s.pieces > 1 for s in steps):
            pool.ensure_started()

    def __call__(self, bases: list[Any]) -> None:
        self.run(bases)


class CpuExecutable(HostExecutable):
    """A plan of which all runs of native steps are one call each."""

    def __init__(self, backend: Any, plan: Plan, options: CompileOptions) -> None:
        super().__init__(backend, plan, options)
        self.cost = sum(map(_cost, plan.steps)) // SPEED

    def runners(self, steps: Sequence[Step]) -> list[Callable[..., None]]:
        runners: list[Callable[..., None]] = []
        described = [(step, _native(self.backend, step)) for step in steps]
        for native, group in groupby(described, lambda pair: pair[1] is not None):
            if native:
                run = [(step, d) for step, d in group if d is not None]
                cost = sum(_cost(step) for step, _ in run)
                runners.append(Table([d[0] for _, d in run], run, cost))
            else:
                runners += [self.runner(step) for step, _ in group]
        return runners


Described = tuple[NativeStep, Any]
"""A step, and what must live as long as it."""


def _cost(step: Step) -> int:
    """In bytes or scalar operations; products do many of them at a time."""
    if isinstance(step, CallStep):
        found = _product(step)
        return step.bytes_moved if found is None else max(step.bytes_moved, found[1].flops // 8)
    return max(step.bytes_moved, step.flops)


def _native(backend: Any, step: Step) -> Described | None:
    """How the native runtime runs ``step``; None if Python must."""
    if isinstance(step, KernelStep):
        kernel = backend.compiled(step.kernel)
        extent = rows(step)
        pieces = _pieces(_cost(step), extent) if choose(step.kernel).parallel else 1
        return _step(kernel.address, step.operands, step.scalars, extent, pieces, kernel)
    if isinstance(step, CopyStep):
        address = pool.symbols()["polyax_copy"]
        return _step(address, (step.source, step.target), (), step.nbytes, _pieces(step.nbytes, step.nbytes))
    return _library_call(step)


def _product(step: CallStep) -> tuple[int, Product] | None:
    """The native function and the product that it is to compute, if the call is one."""
    if not isinstance(step.lowering, Native):
        return None
    return step.lowering.signature(step.arg_avals, step.out_avals, step.params)


def _library_call(step: CallStep) -> Described | None:
    found = _product(step)
    if found is None:
        return None
    address, product = found
    pieces = min(pool.thread_count(), product.extent) if _cost(step) > PARALLEL_COST else 1
    return _step(address, (*step.args, *step.outs), product.scalars, product.extent, pieces)


def _pieces(cost: int, extent: int) -> int:
    threads = pool.thread_count()
    if cost <= PARALLEL_COST or threads == 1:
        return 1
    return min(extent, threads * min(4, max(1, cost // (PIECE_COST * threads))))


def _step(
    address: int, operands: Sequence[Ref], scalars: Sequence[int], end: int, pieces: int, keep: Any = None
) -> Described:
    places = (Operand * len(operands))(*[(r.base, r.offset) for r in operands])
    values = (ctypes.c_int64 * len(scalars))(*scalars)
    step = NativeStep(address, ctypes.addressof(values), 0, end, pieces, len(operands), ctypes.addressof(places))
    return step, (places, values, keep)
