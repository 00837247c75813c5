"""Scratch of narrow floats as float32: what is rounded once is not made narrow, and wide again by each that reads it.

``t = bfloat16(exp(x)); s = sum(t); y = t / s`` rounds ``t`` in its 32 bits, and keeps these.
"""

from __future__ import annotations

from dataclasses import replace

from polyax_kernels.ir.expr import Expr, cast, load, rewriter
from polyax_kernels.ir.kernel import Kernel, Store, map_kernel
from polyax_kernels.ir.limits import FLOAT32, NARROW


def in_wide_scratch(kernel: Kernel) -> Kernel:
    """The kernel whose locals of float16 and bfloat16 are float32, with the same numbers. It is widened already."""
    stores = [store for stage in kernel.stages for store in stage.stores]
    combined = {store.slot for store in stores if store.combine is not None}
    own = {n for n, o in enumerate(kernel.operands) if o.role == "local" and o.dtype in NARROW and n not in combined}
    if not own:
        return kernel

    def rule(x: Expr) -> Expr | None:
        if x.kind == "load" and x.attr.slot in own:
            place, *masked = x.args
            wide = load(x.attr.slot, FLOAT32, (place,), *([masked[0], cast(masked[1], FLOAT32)] if masked else []))
            return cast(wide, x.dtype)
        return cast(x.args[0].args[0], x.dtype) if x.kind == "cast" and _was_read(x.args[0]) else None

    def _was_read(x: Expr) -> bool:
        return x.kind == "cast" and x.args[0].kind == "load" and x.args[0].attr.slot in own

    def kept(store: Store) -> Store:
        return replace(store, value=cast(store.value, FLOAT32)) if store.slot in own else store

    wide = map_kernel(kernel, rewriter(rule))
    stages = [replace(stage, stores=tuple(map(kept, stage.stores))) for stage in wide.stages]
    operands = [replace(o, dtype=FLOAT32) if n in own else o for n, o in enumerate(kernel.operands)]
    return replace(wide, stages=tuple(stages), operands=tuple(operands))
