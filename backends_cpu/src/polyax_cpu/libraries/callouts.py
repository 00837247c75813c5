"""Steps that need Python among native ones: native code calls a function of addresses, which sees arrays there.

So a user's function or a NumPy routine costs its own time, not that of all that runs around it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.runtime.contract.queue import check_wanted
from polyax_cpu import pool
from polyax_cpu.records import NativeStep
from polyax_cpu.steps import Described, described
from polyax_kernels.lower.lowering import CallContext
from polyax_kernels.plan.plan import CallStep


def call_out(step: CallStep, context: CallContext) -> Described:
    """The step in which native code calls a library's Python function. What that raises, ``Table.run`` raises."""
    run = _on_addresses(step, context)
    operands = (*step.args, *step.outs)
    native, keep = described(pool.symbols()["polyax_call_out"], operands, (id(run),), 1, 1, 0, run)
    native.fails = 1
    return native, keep


def is_call_out(native: NativeStep) -> bool:
    return native.function == pool.symbols()["polyax_call_out"]


def _on_addresses(step: CallStep, context: CallContext) -> Callable[[int], None]:
    """The call as a function of where the addresses of operands and results are."""
    ready = step.lowering.ready(context, step.out_avals, step.arg_avals, step.params)
    views = [_view(a.shape, a.dtype, a.nbytes) for a in (*step.arg_avals, *step.out_avals)]
    addresses, count = ctypes.c_size_t * len(views), len(step.args)

    def run(address: int) -> None:
        check_wanted()  # it may be a step of a long loop
        arrays = [view(place) for view, place in zip(views, addresses.from_address(address), strict=True)]
        ready(arrays[count:], arrays[:count])

    return run


def _view(shape: Sequence[int], dtype: Any, nbytes: int) -> Callable[[int], np.ndarray]:
    """An array of memory at an address, which outlives it."""
    if not nbytes:
        return lambda _: np.empty(shape, dtype)
    raw: Any = ctypes.c_char * nbytes
    return lambda address: np.ndarray(shape, dtype, raw.from_address(address))
