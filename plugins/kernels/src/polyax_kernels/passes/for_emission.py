"""What is done to a kernel before it is walked: rewrites after which emitters have little left to know.

Loads and stores get one index, the element offset; narrow floats are computed in float32; short folds have no loops;
operations that the emitter lacks are decomposed. Nothing here depends on a language or chooses a schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from polyax_kernels.ir.expr import Expr, bitcast, cast, const, make, op, postorder, rewrite, rewriter
from polyax_kernels.ir.kernel import Kernel, Operand, Store, kernel_roots, map_kernel
from polyax_kernels.ir.limits import FLOAT32, NARROW
from polyax_kernels.ir.scalars import TABLE
from polyax_kernels.passes.straight import without_short_folds

BITS = np.dtype("uint16")
"""What holds a narrow float."""


def as_expr(extent: int | Expr) -> Expr:
    return extent if isinstance(extent, Expr) else const(extent)


def size(shape: Sequence[int | Expr]) -> int | Expr:
    """The number of elements, an expression if a dimension is one."""
    total: int | Expr = 1
    for n in shape:
        total = total * n if isinstance(total, int) and isinstance(n, int) else as_expr(total) * as_expr(n)
    return total


def offset(indices: Sequence[Expr], shape: Sequence[int | Expr]) -> Expr:
    """The row-major element offset of ``indices`` in an array of ``shape``."""
    total: Expr | None = None
    for n, (i, extent) in enumerate(zip(indices, shape, strict=True)):
        if extent == 1:
            continue
        stride = size(shape[n + 1 :])
        term = i if isinstance(stride, int) and stride == 1 else i * stride
        total = term if total is None else total + term
    return const(0) if total is None else total


def flatten(kernel: Kernel) -> Kernel:
    """The kernel on one-dimensional operands: each load and store has one index, the element offset."""
    shapes = [operand.shape for operand in kernel.operands]
    if all(len(shape) == 1 for shape in shapes):
        return kernel

    def linear_load(x: Expr) -> Expr | None:
        if x.kind != "load":
            return None
        shape = shapes[x.attr.slot]
        return make("load", x.dtype, (offset(x.args[: len(shape)], shape), *x.args[len(shape) :]), x.attr)

    def linear_store(store: Store) -> Store:
        return replace(store, indices=(offset(store.indices, shapes[store.slot]),))

    flat = map_kernel(kernel, rewriter(linear_load))
    stages = tuple(replace(s, stores=tuple(map(linear_store, s.stores))) for s in flat.stages)
    operands = tuple(Operand((size(o.shape),), o.dtype, o.role) for o in kernel.operands)
    return replace(flat, stages=stages, operands=operands)


def widen(kernel: Kernel) -> Kernel:
    """Computes float16 and bfloat16 in float32, rounding after each operation; folds round once, at their end.

    Sums, products, quotients and square roots stay correctly rounded: float32 has more than twice the digits.
    """
    if not any(x.dtype in NARROW for x in postorder(*kernel_roots(kernel))):
        return kernel
    return map_kernel(kernel, rewriter(_wide))


def _wide(x: Expr) -> Expr | None:
    if x.kind not in ("op", "fold") or not any(a.dtype in NARROW for a in x.args):
        return None
    if x.kind == "fold":
        return _wide_fold(x)
    if x.attr == "select":  # moves bits, and rounds nothing
        return bitcast(op("select", x.args[0], *(bitcast(a, BITS) for a in x.args[1:])), x.dtype)
    if x.attr == "nextafter":  # the neighbour depends on the type: computed on its bits
        return rewrite(_decompose(x), _wide)
    result = op(x.attr, *(cast(_exact(a), FLOAT32) if a.dtype in NARROW else a for a in x.args))
    return cast(result, x.dtype)


def _exact(x: Expr) -> Expr:
    """The float32 that ``x`` was made of, where rounding it changed nothing."""
    exact = x.kind == "cast" and x.args[0].kind == "cast" and x.args[0].args[0].dtype == x.dtype
    return x.args[0].args[0] if exact else x


def _wide_fold(x: Expr) -> Expr:
    wide = tuple(cast(a, FLOAT32) if a.dtype in NARROW else a for a in x.args)
    return cast(make("fold", wide[len(wide) // 2 + x.attr.which].dtype, wide, x.attr), x.dtype)


def expand(kernel: Kernel, supports: Callable[[str, np.dtype], bool]) -> Kernel:
    """Decomposes the operations that an emitter doesn't support.

    Raises:
      NotImplementedError: one of them has no decomposition.
    """

    def rule(x: Expr) -> Expr | None:
        if x.kind != "op" or supports(x.attr, x.args[-1].dtype):
            return None
        return rewrite(_decompose(x), rule)

    return map_kernel(kernel, rewriter(rule))


def _decompose(x: Expr) -> Expr:
    made = TABLE[x.attr].decompose
    if made is None:
        raise NotImplementedError(
            f"the scalar operation {x.attr} on {x.args[-1].dtype} has no decomposition and this emitter lacks it; "
            "give its class an implementation and name it in `supports`"
        )
    return made(*x.args)


def prepare(kernel: Kernel, supports: Callable[[str, np.dtype], bool]) -> Kernel:
    """All of the above, in order."""
    return expand(without_short_folds(widen(flatten(kernel))), supports)
