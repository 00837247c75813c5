"""``check_emitter``: kernels by an emitter of somebody's, each beside what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polyax
from polyax_conformance.parts.findings import Findings, Wrong, difference, raised, told
from polyax_conformance.parts.kernels import KernelCase, every
from polyax_conformance.parts.running import (
    GuardedMemory,
    Launch,
    RunKernel,
    by_function,
    by_platform,
    interpret,
    kernel_backend,
)
from polyax_kernels.api.emitters import Kernel, consing, kernel_roots

USUAL = ("bool", "int8", "int32", "int64", "uint8", "uint32", "float32", "float64")


def check_emitter(
    run: RunKernel | str,
    *,
    dtypes: Sequence[Any] | None = None,
    only: str = "",
    source: Callable[[Kernel], str] | None = None,
) -> Findings:
    """Computes some hundreds of small kernels by an emitter, and compares them with what they mean: all operations on
    all numbers, casts, loads and stores with masks, folds, scratch, scalars, several results.

    Found are wrong values, what is stored elsewhere or not at all, and what raises. ``NotImplementedError`` isn't
    wrong: it declines.

    Args:
      run: ``run(kernel, arrays, scalars)`` computes a kernel, changing the arrays that it writes. Or the name of a
        platform made of kernels, whose own way is taken then.
      dtypes: those to be tried; without them the usual ones that a platform has.
      only: a word that the names of kernels must have.
      source: the text of a kernel, to be shown; platforms have one.

    Raises:
      TypeError: the platform isn't made of kernels.

    >>> import numpy as np
    >>> from polyax_kernels.api.emitters import NumpyEmitter, Schedule, emit_kernel
    >>> def run(kernel, arrays, scalars):
    ...     extent = kernel.grid[0].extent if kernel.grid else 1
    ...     stop = extent if isinstance(extent, int) else scalars[extent.attr]
    ...     emit_kernel(kernel, Schedule(), NumpyEmitter(kernel, arrays, scalars), np.asarray(0), np.asarray(stop))
    >>> print(check_emitter(run, only="max of float32"))
    emitter: 1 cases, 0 wrong, 0 declined
    """
    chosen = [polyax.numpy.dtype(d) for d in dtypes or USUAL]
    found = Findings("emitter")
    compute: Launch = by_function(run) if callable(run) else by_platform(run)
    if not callable(run):
        found.part, backend = f"emitter of {run}", kernel_backend(run)
        source = source or backend.source
        chosen = [d for d in chosen if dtypes or d in backend.limits_of(backend.devices()[0]).dtypes]
    with consing():
        for case in every(chosen):
            if only in case.name:
                _check(case, compute, source, found)
    return found


def _check(case: KernelCase, launch: Launch, source: Callable[[Kernel], str] | None, found: Findings) -> None:
    memories = [GuardedMemory(x) for x in case.arrays]
    found.checked += 1
    try:
        launch(case.kernel, memories, case.scalars)
    except NotImplementedError as e:
        found.lacking[case.name] = str(e)
        return
    except Exception as e:
        faults = [(raised(e), told(case.arrays))]
    else:
        faults = list(_faults(case, memories))
    found.wrong += [Wrong(case.name, fault, given, _text(case.kernel, source)) for fault, given in faults[:1]]


def _text(kernel: Kernel, source: Callable[[Kernel], str] | None) -> str:
    """What is computed, and what the emitter made of it."""
    meant = "\n".join(str(x) for x in kernel_roots(kernel)[-1:])
    try:
        return meant if source is None else f"{meant}\n{source(kernel)}"
    except Exception as e:
        return f"{meant}\nno text: {e}"


def _faults(case: KernelCase, memories: Sequence[GuardedMemory]) -> Any:
    """What is wrong with memory after a launch."""
    wanted = [x.copy().reshape(-1) for x in case.arrays]
    interpret(case.kernel, wanted, case.scalars)
    operands = [o for o in case.kernel.operands if o.role != "local"]
    given = [x for x, o in zip(case.arrays, operands, strict=True) if o.role != "out"]
    names = [*(f"operand {n}" for n in range(len(operands) - len(case.results))), *case.results]
    for n, (memory, want, operand) in enumerate(zip(memories, wanted, operands, strict=True)):
        if not memory.whole:
            yield f"it writes beyond {names[n]} ({operand.role}, {want.size} of {want.dtype})", told(given)
        same = 0.0 if operand.role == "in" else case.rtol
        shape = case.arrays[n].shape
        fault = difference(memory.array.reshape(shape), want.reshape(shape), same, given)
        if fault and operand.role == "in":
            yield f"it writes to {names[n]}, which it may only read: {fault[0]}", fault[1]
        elif fault:
            yield f"{names[n]}: {fault[0]}", fault[1]
