"""A backend made of kernels that needs no compiler, for plugins of strangers: hundreds of faults are quick on it."""

from __future__ import annotations

from kernels.numpy_backend import NumpyKernelBackend

from polyax_kernels.backend import KernelBackend


class Interpreted(NumpyKernelBackend):
    """Takes what plugins bring. Its module is that of the class behind it: these tests are users, not a backend."""

    __module__ = NumpyKernelBackend.__module__
    lowerings = KernelBackend.lowerings
    chosen_fusers = KernelBackend.chosen_fusers
