"""What is done to a kernel before it is compiled: ``in_words``, ``collapse``, and ``generalize`` for all sizes.

Afterwards equal work has equal keys, so that each distinct kernel is compiled once.
"""

from __future__ import annotations

from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.passes.collapse import collapse
from polyax_kernels.passes.generalize import generalize
from polyax_kernels.passes.words import in_words


def canonical(kernel: Kernel, for_all_sizes: bool = True) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel to compile, and the launch parameters to call it with: its extents, if it is to serve all sizes."""
    collapsed = collapse(in_words(kernel))
    return generalize(collapsed) if for_all_sizes else (collapsed, ())
