"""Linear algebra through cuSOLVER and cuBLAS, where CuPy's own functions wait or don't tell what failed (which is NaN).

They store matrices by columns, we by rows: they get our memory as the transpose, or a transposed copy. The modules that
need these libraries are imported late, as machines without a GPU may lack them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from polyax.backend import ShapedArray
from polyax_cuda.runtime import array
from polyax_kernels.api.gpu import pivots
from polyax_kernels.api.lowerings import LETTERS, factorizations, why_missing

LOWER = 0  # CUBLAS_FILL_MODE_LOWER


def _stack(x: Any) -> Any:
    return x.reshape(-1, *x.shape[-2:])


def cholesky(x: Any) -> Any:
    """The factor that cuSOLVER leaves below the diagonal is transposed for us: the other triangle, which would lie
    right, takes it 2.7 times as long (4096 x 4096 on an H100)."""
    from cupy_backends.cuda.libs import cusolver

    a, letter, handle = _stack(x).copy(), LETTERS[x.dtype.name], cupy.cuda.device.get_cusolver_handle()
    count, n = a.shape[:2]
    failed = cupy.zeros(count, np.int32)
    if count > 1:
        places = cupy.arange(count, dtype=np.uint64) * a.strides[0] + a.data.ptr
        getattr(cusolver, f"{letter}potrfBatched")(handle, LOWER, n, places.data.ptr, n, failed.data.ptr, count)
    else:
        size = getattr(cusolver, f"{letter}potrf_bufferSize")(handle, LOWER, n, a.data.ptr, n)
        work, potrf = cupy.empty(size, a.dtype), getattr(cusolver, f"{letter}potrf")
        potrf(handle, LOWER, n, a.data.ptr, n, work.data.ptr, size, failed.data.ptr)
    factors = cupy.where(failed[:, None, None] != 0, a.dtype.type(np.nan), cupy.swapaxes(a, 1, 2))
    return cupy.tril(factors).reshape(x.shape)


def triangular_solve(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool, **_: Any
) -> Any:
    """``x op(a) = b`` is ``op(a)^T x^T = b^T``."""
    from cupyx.scipy.linalg import solve_triangular

    trans, right = int(transpose_a == left_side), _stack(b)
    right = right if left_side else cupy.swapaxes(right, 1, 2)
    x = solve_triangular(_stack(a), right, trans, lower, unit_diagonal, check_finite=False)
    return (x if left_side else cupy.swapaxes(x, 1, 2)).reshape(b.shape)


def lu(ctx: Any, outs: Sequence[Any], args: Sequence[Any]) -> None:
    """A singular matrix has factors, too."""
    from cupy_backends.cuda.libs import cusolver

    with ctx.runtime.working():
        a = cupy.ascontiguousarray(cupy.swapaxes(_stack(array(args[0])), 1, 2))
        (count, n, m), letter, handle = a.shape, LETTERS[a.dtype.name], cupy.cuda.device.get_cusolver_handle()
        exchanges, info = cupy.empty((count, min(m, n)), np.int32), cupy.empty(1, np.int32)
        size = getattr(cusolver, f"{letter}getrf_bufferSize")(handle, m, n, a.data.ptr, m)
        work, getrf = cupy.empty(size, a.dtype), getattr(cusolver, f"{letter}getrf")
        for one, rows in zip(a, exchanges, strict=True):
            getrf(handle, m, n, one.data.ptr, m, work.data.ptr, rows.data.ptr, info.data.ptr)
        _stack(array(outs[0]))[...] = cupy.swapaxes(a, 1, 2)
        pivots.permute(ctx.runtime, exchanges.data, outs[1:], (count, min(m, n), m))


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if any(0 in a.shape for a in avals):
        return "cuSOLVER takes no empty stacks of matrices"
    missing = why_missing("cupy_backends.cuda.libs.cusolver", "cuSOLVER", "nvidia-cusolver-cu12")
    return factorizations.why_not(avals, params) or missing
