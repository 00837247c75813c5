"""Kernels without a GPU: the CUDA C of whole programs for the limits of a given one, and whether NVRTC takes it.

Example:
  >>> import numpy as np, polyax
  >>> program = polyax.make_jaxpr(lambda x: (x * x).sum())(np.ones(8, np.float32))
  >>> texts = sources(program)
  >>> len(texts), compile_all(texts)
  (1, 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.backend import CompileOptions
from polyax_cuda import jit
from polyax_cuda.backend import CudaBackend
from polyax_cuda.emitter import CudaEmitter
from polyax_kernels.expr import consing
from polyax_kernels.gpu.emitter import gpu_source
from polyax_kernels.gpu.runtime import KernelRejected
from polyax_kernels.gpu.schedule import choose
from polyax_kernels.kernel import Kernel
from polyax_kernels.limits import REALS, Limits
from polyax_kernels.plan import KernelStep

H100 = Limits(dtypes=REALS, lanes=1, local_bytes=48 * 1024, threads=1024, group=256, units=132)
TARGET = "sm_90"


def sources(program: ClosedJaxpr, eager: bool = False, limits: Limits = H100) -> list[str]:
    """The kernels of ``program`` as a GPU with ``limits`` would run them; library calls have none.

    ``eager``: the program is one operation, whose kernel serves all sizes.
    """
    backend = CudaBackend([Absent(limits)])
    options = CompileOptions(tuple(backend.devices()), (False,) * len(program.in_avals), eager=eager)
    with consing():
        steps = backend.plan(program, options).steps
        return [source(s.kernel, s.scalars, limits) for s in steps if isinstance(s, KernelStep)]


def source(kernel: Kernel, scalars: Sequence[int] = (), limits: Limits = H100) -> str:
    """The program text of one kernel. Call it inside ``with consing():``."""
    return gpu_source(kernel, choose(kernel, limits, scalars), CudaEmitter)


def compile_all(texts: Iterable[str], target: str = TARGET) -> int:
    """Compiles each distinct text, all together since that is faster; returns how many there are.

    Raises:
      KernelRejected: NVRTC doesn't accept one of them; its log and its text are in the error.
    """
    distinct = list(dict.fromkeys(texts))
    bodies = (text.removeprefix(CudaEmitter.header).replace('extern "C" ', "") for text in distinct)
    spaces = (f"namespace n{n} {{\n{body}}}\n" for n, body in enumerate(bodies))
    try:
        jit.compiled("".join((CudaEmitter.header, *spaces)), target)
    except KernelRejected:
        for text in distinct:
            jit.compiled(text, target)
        raise
    return len(distinct)


class Absent:
    """A GPU that isn't there. Programs can be planned for it."""

    kind = "absent"

    def __init__(self, limits: Limits) -> None:
        self.limits: Any = limits
