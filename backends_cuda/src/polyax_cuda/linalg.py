"""Linear algebra through cuSOLVER and cuBLAS, where CuPy's own functions wait or don't tell what failed (which is NaN).

They store matrices by columns, we by rows: they get our memory as the transpose, or a transposed copy. The modules that
need these libraries are imported late, as machines without a GPU may lack them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_cuda.views import address, array, why_missing
from polyax_kernels.lowering import CallContext

LETTERS = {"float32": "s", "float64": "d"}
UPPER = 1
"""CUBLAS_FILL_MODE_UPPER."""

PERMUTE = """
extern "C" __global__ void permute(
    const int *exchanges, int *pivots, int *permutation, long long count, long long k, long long m) {
  long long n = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (n >= count) return;
  exchanges += n * k, pivots += n * k, permutation += n * m;
  for (long long i = 0; i < m; i++) permutation[i] = (int)i;
  for (long long i = 0; i < k; i++) {
    int other = pivots[i] = exchanges[i] - 1, row = permutation[i];
    permutation[i] = permutation[other], permutation[other] = row;
  }
}
"""
"""Exchanges of rows, counted from 1, as ``pivots`` counted from 0, and the permutation that they make."""


def _stack(x: Any) -> Any:
    return x.reshape(-1, *x.shape[-2:])


def cholesky(x: Any) -> Any:
    """Our lower triangle is the upper one of cuSOLVER, and ``L L^T`` is ``U^T U``."""
    from cupy_backends.cuda.libs import cusolver

    a, letter, handle = _stack(x).copy(), LETTERS[x.dtype.name], cupy.cuda.device.get_cusolver_handle()
    count, n = a.shape[:2]
    failed = cupy.zeros(count, np.int32)
    if count > 1:
        places = cupy.arange(count, dtype=np.uint64) * a.strides[0] + address(a)
        getattr(cusolver, f"{letter}potrfBatched")(handle, UPPER, n, address(places), n, address(failed), count)
    else:
        size = getattr(cusolver, f"{letter}potrf_bufferSize")(handle, UPPER, n, address(a), n)
        work, potrf = cupy.empty(size, a.dtype), getattr(cusolver, f"{letter}potrf")
        potrf(handle, UPPER, n, address(a), n, address(work), size, address(failed))
    return cupy.tril(cupy.where(failed[:, None, None] != 0, a.dtype.type(np.nan), a)).reshape(x.shape)


def triangular_solve(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool, **_: Any
) -> Any:
    """``x op(a) = b`` is ``op(a)^T x^T = b^T``."""
    from cupyx.scipy.linalg import solve_triangular

    trans, right = int(transpose_a == left_side), _stack(b)
    right = right if left_side else cupy.swapaxes(right, 1, 2)
    x = solve_triangular(_stack(a), right, trans, lower, unit_diagonal, check_finite=False)
    return (x if left_side else cupy.swapaxes(x, 1, 2)).reshape(b.shape)


def lu(ctx: CallContext, outs: Sequence[Any], args: Sequence[Any]) -> None:
    """A singular matrix has factors, too."""
    from cupy_backends.cuda.libs import cusolver

    with ctx.runtime.working():
        a = cupy.ascontiguousarray(cupy.swapaxes(_stack(array(args[0])), 1, 2))
        (count, n, m), letter, handle = a.shape, LETTERS[a.dtype.name], cupy.cuda.device.get_cusolver_handle()
        exchanges, info = cupy.empty((count, min(m, n)), np.int32), cupy.empty(1, np.int32)
        size = getattr(cusolver, f"{letter}getrf_bufferSize")(handle, m, n, address(a), m)
        work, getrf = cupy.empty(size, a.dtype), getattr(cusolver, f"{letter}getrf")
        for one, rows in zip(a, exchanges, strict=True):
            getrf(handle, m, n, address(one), m, address(work), address(rows), address(info))
        _stack(array(outs[0]))[...] = cupy.swapaxes(a, 1, 2)
        function = ctx.runtime.load(PERMUTE, "permute")
        places = [(exchanges.data, 0), *((v.memory, v.offset) for v in outs[1:])]
        ctx.runtime.launch(function, (-(-count // 128),), (128,), places, (count, min(m, n), m))


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = {a.dtype.name for a in avals}
    odd = [f"{p}={params[p]}" for p in ("pivoting", "subset_by_index", "algorithm") if params.get(p)]
    if not names <= LETTERS.keys() or odd:
        return f"cuSOLVER is called for float32 and float64, not for {' and '.join(odd or sorted(names))}"
    if any(0 in a.shape for a in avals):
        return "cuSOLVER takes no empty matrices"
    return why_missing("cupy_backends.cuda.libs.cusolver", "cuSOLVER", "nvidia-cusolver-cu12")
