"""``GpuBackend``: kernels, plans and memory on devices with a queue of their own. A backend for one vendor's library adds
``runtimes``, one per device, its dialect of ``GpuEmitter``, and lowerings for the libraries that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from polyax_kernels.backend import KernelBackend
from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.gpu.runtime import Runtime


class GpuBackend(KernelBackend):
    """What a subclass gives: ``emitter``, and the runtimes in the order of their devices.

    A lowering's ``Call.run(ctx, outs, args, **params)`` gets ``View``s: ``memory, offset`` (in bytes) and ``aval``, and
    ``ctx.runtime``, which it may put work into.
    """

    emitter: ClassVar[type[GpuEmitter]]

    def __init__(self, name: str, runtimes: Sequence[Runtime]) -> None:
        super().__init__(name)
        self.runtimes = tuple(runtimes)
