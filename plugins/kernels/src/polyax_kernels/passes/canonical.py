"""What is done to a kernel before it is compiled: ``collapse``, and ``generalize`` if it is to serve all sizes.

Afterwards equal work has equal keys, so that each distinct kernel is compiled once.
"""

from __future__ import annotations

from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.passes.collapse import collapse
from polyax_kernels.passes.generalize import generalize


def canonical(kernel: Kernel, for_all_sizes: bool = True) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel to compile, and the launch parameters to call it with: its extents, if it is to serve all sizes."""
    return generalize(collapse(kernel)) if for_all_sizes else (collapse(kernel), ())
