"""Kernels without a GPU: the CUDA C of whole programs, and whether NVRTC takes it.

Example:
  >>> import numpy as np, polyax
  >>> compile_all(sources(polyax.make_jaxpr(lambda x: (x * x).sum())(np.ones(8, np.float32))))
  1
"""

from __future__ import annotations

from collections.abc import Iterable

from polyax.backend import ClosedJaxpr
from polyax_cuda import compiler
from polyax_cuda.backend import CudaBackend, limits
from polyax_cuda.emitter import HEADER
from polyax_kernels.api.gpu import offline
from polyax_kernels.api.lowerings import Limits

H100, TARGET = limits(48 * 1024, 1024, 132), "sm_90"


def sources(program: ClosedJaxpr, device: Limits = H100) -> list[str]:
    """The kernels of ``program`` on a GPU with the limits of ``device``; library calls have none."""
    return offline.sources(CudaBackend, "cuda", program, device)


def compile_all(texts: Iterable[str], target: str = TARGET) -> int:
    """Compiles the distinct texts, all together since that is faster; returns how many there are.

    Raises:
      KernelRejected: NVRTC doesn't accept one of them; its log and its text are in the error.
    """
    return offline.compile_all(texts, HEADER, lambda text: compiler.compiled(text, target))
