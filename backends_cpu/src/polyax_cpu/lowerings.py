"""What the cpu backend lowers by itself: matrix products through BLAS, linear algebra through LAPACK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops.contract import dot_general_p
from polyax_cpu.libraries import lapack, products
from polyax_kernels.lower.lowering import Call, CallContext, Lowering


def _why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = {a.dtype.name for a in avals}
    wanted = params.get("preferred_element_type")
    if len(names) != 1 or not names <= products.LETTERS.keys():
        return f"BLAS has no product of {' and '.join(sorted(names))}"
    if wanted is not None and np.dtype(wanted) != avals[0].dtype:
        return f"BLAS has no product of {avals[0].dtype} in {wanted}"
    return None


def _in_numpy(
    _: CallContext, outs: Sequence[np.ndarray], args: Sequence[np.ndarray], *, dimension_numbers: Any, **__: Any
) -> None:
    """For operands whose dimensions would have to be moved first, which NumPy does."""
    contracted, batch = dimension_numbers
    matrices = []
    for x, b, c, last in zip(args, batch, contracted, (True, False), strict=True):
        free = [d for d in range(x.ndim) if d not in b and d not in c]
        order = (*b, *free, *c) if last else (*b, *c, *free)
        count, inner = int(np.prod([x.shape[d] for d in b])), int(np.prod([x.shape[d] for d in c]))
        rows = int(np.prod([x.shape[d] for d in free]))
        matrices.append(x.transpose(order).reshape(count, *((rows, inner) if last else (inner, rows))))
    outs[0][...] = np.matmul(*matrices).reshape(outs[0].shape)


def _native(args: Sequence[ShapedArray], _: Sequence[ShapedArray], params: Mapping[str, Any]) -> Any:
    """The address of the native function and the product that it is to compute; None: not without copies."""
    product = products.describe(args, params)
    return None if product is None else (products.function(args[0].dtype.name), product)


LOWERINGS: dict[Primitive, Lowering] = {
    dot_general_p: Call(_in_numpy, _why_not, native=_native),
    **lapack.LOWERINGS,
}
