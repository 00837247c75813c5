"""What a backend asks of a kernel before it compiles it: ``collapse``, ``generalize`` and ``structural_key``.

Afterwards equal work has equal keys, so that each distinct kernel is compiled once.
"""

from __future__ import annotations

from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.passes.collapse import collapse
from polyax_kernels.passes.generalize import generalize

__all__ = ["canonical", "collapse", "generalize", "structural_key"]


def canonical(kernel: Kernel, for_all_sizes: bool = True) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel to compile, and the launch parameters to call it with: its extents, if it is to serve all sizes."""
    return generalize(collapse(kernel)) if for_all_sizes else (collapse(kernel), ())
