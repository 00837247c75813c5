"""What is done to a kernel before it is compiled: ``in_words``, ``collapse``, on hosts ``at_once``, and ``generalize``
for all sizes.

Afterwards equal work has equal keys, so that each distinct kernel is compiled once.
"""

from __future__ import annotations

from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.passes.collapse import collapse
from polyax_kernels.passes.generalize import generalize
from polyax_kernels.passes.residues import at_once
from polyax_kernels.passes.words import in_words


def canonical(kernel: Kernel, for_all_sizes: bool = True, *, alone: bool = False) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel to compile, and the launch parameters to call it with: its extents, if it is to serve all sizes.
    ``alone``: threads have points of their own, next to each other."""
    collapsed = collapse(in_words(kernel))
    collapsed = at_once(collapsed) if alone else collapsed
    return generalize(collapsed) if for_all_sizes else (collapsed, ())
