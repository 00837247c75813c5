"""A GPU for tests: PoCL's device, whose limits say that groups of threads share rows, as on real GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest

from polyax.ir.primitive import Primitive
from polyax.runtime.contract.hooks import Chosen, Offer
from polyax_fusion.fusers import FUSERS
from polyax_kernels.backend import KernelBackend


@cache
def grouped_backend(group: int) -> KernelBackend:
    """The generic GPU path on an OpenCL device, without the libraries of the OpenCL backend."""
    pytest.importorskip("pyopencl", reason="needs pyopencl and an OpenCL device")
    from polyax_kernels.gpu.backend import GpuBackend
    from polyax_opencl.emitter import OpenCLEmitter
    from polyax_opencl.probe import find
    from polyax_opencl.runtime import OpenCLRuntime

    class Grouped(GpuBackend):
        emitter = OpenCLEmitter

        def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
            return {}

        def chosen_fusers(self) -> list[Chosen]:
            return [Chosen("the tests", f) for f in FUSERS]

    runtime = OpenCLRuntime(find().devices[0])
    runtime.limits = replace(runtime.limits, lanes=1, group=group, threads=64)
    return Grouped(f"grouped{group}", [runtime])
