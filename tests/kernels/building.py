"""Kernels for tests, and ways to run them: under NumPy, and compiled as C."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyax_kernels.emit.c import CEmitter, program
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.ir.expr import Axis, Expr, index, load
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, Stage, Store

F32, F64, I32, I64, BOOL = map(np.dtype, ("float32", "float64", "int32", "int64", "bool"))
FLAGS = ("-std=gnu99", "-O2", "-ftree-vectorize", "-march=native", "-fopenmp-simd", "-fPIC", "-shared", "-w")
EXACT = ("-fwrapv", "-fno-math-errno", "-fno-trapping-math")


def axes(*extents: int) -> tuple[Axis, ...]:
    return tuple(Axis(n, f"a{k}") for k, n in enumerate(extents))


def indices(nest: Sequence[Axis]) -> tuple[Expr, ...]:
    return tuple(map(index, nest))


def inputs(arrays: Sequence[np.ndarray]) -> list[Operand]:
    return [Operand(a.shape, a.dtype, "in") for a in arrays]


def one_store(grid: tuple[Axis, ...], value: Expr, arrays: Sequence[np.ndarray]) -> Kernel:
    """A kernel that stores ``value`` at each point of the grid to an output of the grid's shape."""
    shape = tuple(a.extent for a in grid)
    out = Operand(shape, value.dtype, "out")
    store = Store(len(arrays), indices(grid), value)
    return Kernel(grid, (Stage((), (store,)),), (*inputs(arrays), out))


def elementwise(value: Any, *arrays: np.ndarray) -> Kernel:
    """``value(*elements)`` at each point of arrays of one shape."""
    grid = axes(*arrays[0].shape)
    return one_store(grid, value(*[load(n, a.dtype, indices(grid)) for n, a in enumerate(arrays)]), arrays)


def result_of(kernel: Kernel) -> np.ndarray:
    (out,) = [o for o in kernel.operands if o.role == "out"]
    return np.zeros(out.shape, out.dtype)


class CompiledKernels:
    """Kernels in one shared library."""

    def __init__(self, kernels: Sequence[Kernel], schedules: Sequence[Schedule] | None = None) -> None:
        emitters = [CEmitter(kernel, f"k{n}") for n, kernel in enumerate(kernels)]
        for n, emitter in enumerate(emitters):
            emit_kernel(kernels[n], schedules[n] if schedules else Schedule(), emitter, "begin", "end")
        self.text = program(emitters)
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder, "k.so")
            command = ["cc", *FLAGS, *EXACT, "-x", "c", "-", "-o", str(library), "-lm"]
            subprocess.run(command, input=self.text, text=True, check=True)
            self.library = ctypes.CDLL(str(library))

    def run(self, n: int, kernel: Kernel, buffers: Sequence[np.ndarray], params: Sequence[int] = ()) -> None:
        extent = kernel.grid[0].extent if kernel.grid else 1
        stop = extent if isinstance(extent, int) else params[extent.attr]
        pointers = (ctypes.c_void_p * len(buffers))(*[b.ctypes.data for b in buffers])
        scalars = (ctypes.c_int64 * max(1, len(params)))(*params)
        for begin, end in ((0, stop // 2), (stop // 2, stop)):  # ranges are independent
            self.library[f"k{n}"](pointers, scalars, ctypes.c_int64(begin), ctypes.c_int64(end))


def run_c(kernel: Kernel, buffers: Sequence[np.ndarray], schedule: Schedule | None = None) -> None:
    CompiledKernels([kernel], [schedule or Schedule()]).run(0, kernel, buffers)


def assert_gives(kernel: Kernel, x: np.ndarray, want: np.ndarray, rtol: float) -> None:
    """As C and through NumPy, with the schedule that is chosen for it, the kernel makes ``want`` of ``x``."""
    schedule = choose(kernel)
    for runner in (run_c, lambda kernel, buffers, schedule: run(kernel, buffers, (), schedule)):
        buffers = [x, result_of(kernel)]
        runner(kernel, buffers, schedule)
        np.testing.assert_allclose(buffers[1], want, rtol=rtol, err_msg="C" if runner is run_c else "NumPy")
