"""``emitter.py`` of a ``new-backend`` project, filled in: kernels become C, whose emitter polyax brings.

For a language that is nothing like C, each method of ``Emitter`` is written, as ``polyax_wasm.emitter`` does.
"""

from __future__ import annotations

from polyax_kernels.api.emitters import Kernel, c_source, choose
from polyax_kernels.api.lowerings import Limits


def source(kernel: Kernel, limits: Limits) -> str:
    """The text of a kernel, with loops made for vectors and caches."""
    return c_source(kernel, choose(kernel, limits), "kernel")
