"""A kernel backend whose kernels run under the NumPy interpreter: tests of the compiler's middle need no compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.contract.hooks import Chosen, Offer
from polyax_fusion.fusers import FUSERS
from polyax_kernels.emit.indices import index_dtype
from polyax_kernels.emit.numpy import NumpyEmitter
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.host.backend import Function, HostKernelBackend
from polyax_kernels.ir import expr
from polyax_kernels.ir.graph import Graph
from polyax_kernels.ir.kernel import Kernel, Schedule
from polyax_kernels.pipeline import graph_of


class NumpyKernelBackend(HostKernelBackend):
    """``fused``: whether fusers run, or the names of those that do."""

    emitter = NumpyEmitter

    def __init__(self, fused: bool | Collection[str] = True) -> None:
        super().__init__("numpy_kernels")
        self.chosen = {f.name for f in FUSERS} if fused is True else set(fused or ())
        self.compilations = 0

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        return {}

    def chosen_fusers(self) -> list[Chosen]:
        return [Chosen("the tests", f) for f in FUSERS if f.name in self.chosen]

    def graph(self, closed: ClosedJaxpr) -> Graph:
        """The graph of a program before it is planned."""
        return graph_of(closed, self.compilation(CompileOptions(self.devices()[0])))

    def compile_function(self, kernel: Kernel) -> Function:
        self.compilations += 1
        entries = expr._table.entries
        operands = [o for o in kernel.operands if o.role != "local"]

        def run(pointers: Any, scalars: Any, begin: int, end: int) -> None:
            expr._table.entries = (
                entries  # the interpreter walks the kernel again: equal expressions must stay one object
            )
            arrays = [_array(p, o.shape, o.dtype, scalars) for p, o in zip(pointers, operands, strict=False)]
            emitter = self.emitter(kernel, arrays, scalars)
            schedule = Schedule(index_dtype=index_dtype(kernel, self.limits))
            emit_kernel(kernel, schedule, emitter, np.asarray(begin), np.asarray(end))
            expr._table.entries = None

        return run


def _array(pointer: int, shape: tuple[Any, ...], dtype: np.dtype, scalars: Any) -> np.ndarray:
    sizes = [n if isinstance(n, int) else scalars[n.attr] for n in shape]
    nbytes = int(np.prod(sizes)) * dtype.itemsize
    raw = (ctypes.c_char * max(nbytes, 1)).from_address(pointer)
    return np.frombuffer(raw, dtype, int(np.prod(sizes)))
