"""Linear algebra through cuSOLVER and cuBLAS. What fails (no convergence, not positive definite) is NaN; nothing waits.

They store matrices by columns, we by rows: they get our memory as the transpose, or a transposed copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_cuda.views import address, addresses, array, why_missing
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


def _stack(x: Any, ndim: int = 2) -> Any:
    """The array with one leading dimension."""
    return x.reshape(-1, *x.shape[x.ndim - ndim :])


def cholesky(outs: Sequence[Any], args: Sequence[Any]) -> None:
    """Our lower triangle is the upper one of cuSOLVER, and ``L L^T`` is ``U^T U``."""
    from cupy_backends.cuda.libs import cusolver

    a = _stack(args[0]).copy()
    count, n = a.shape[:2]
    handle, letter = cupy.cuda.device.get_cusolver_handle(), LETTERS[a.dtype.name]
    failed = cupy.zeros(count, np.int32)
    if count > 1:
        places = addresses(a)
        getattr(cusolver, f"{letter}potrfBatched")(handle, UPPER, n, address(places), n, address(failed), count)
    else:
        size = getattr(cusolver, f"{letter}potrf_bufferSize")(handle, UPPER, n, address(a), n)
        work = cupy.empty(size, a.dtype)
        potrf = getattr(cusolver, f"{letter}potrf")
        potrf(handle, UPPER, n, address(a), n, address(work), size, address(failed))
    _stack(outs[0])[...] = cupy.tril(cupy.where(failed[:, None, None] != 0, a.dtype.type(np.nan), a))


def triangular_solve(
    outs: Sequence[Any],
    args: Sequence[Any],
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    **_: Any,
) -> None:
    """``x op(a) = b`` is ``op(a)^T x^T = b^T``."""
    from cupyx.scipy.linalg import solve_triangular  # it needs cuBLAS, which machines without a GPU may lack

    a, b = (_stack(x) for x in args)
    b = b if left_side else cupy.swapaxes(b, 1, 2)
    trans = int(transpose_a == left_side)
    x = solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal, check_finite=False)
    _stack(outs[0])[...] = x if left_side else cupy.swapaxes(x, 1, 2)


def lu(ctx: CallContext, outs: Sequence[Any], args: Sequence[Any]) -> None:
    """A singular matrix has factors, too."""
    with ctx.runtime.working():
        x, packed = _stack(array(args[0])), _stack(array(outs[0]))
        a = cupy.ascontiguousarray(cupy.swapaxes(x, 1, 2))
        count, n, m = a.shape
        exchanges = cupy.empty((count, min(m, n)), np.int32)
        _factorize(a, exchanges)
        packed[...] = cupy.swapaxes(a, 1, 2)
        function = ctx.runtime.load(PERMUTE, "permute")
        places = [(exchanges.data, 0), *((v.memory, v.offset) for v in outs[1:])]
        ctx.runtime.launch(function, (-(-count // 128),), (128,), places, (count, min(m, n), m))


def _factorize(a: Any, exchanges: Any) -> None:
    """``getrf`` of matrices stored by columns, in place."""
    from cupy_backends.cuda.libs import cublas, cusolver

    (count, n, m), letter = a.shape, LETTERS[a.dtype.name]
    info = cupy.empty(count, np.int32)
    if count > 1 and m == n:
        handle, places = cupy.cuda.device.get_cublas_handle(), addresses(a)
        getrf = getattr(cublas, f"{letter}getrfBatched")
        getrf(handle, n, address(places), n, address(exchanges), address(info), count)
        return
    handle, getrf = cupy.cuda.device.get_cusolver_handle(), getattr(cusolver, f"{letter}getrf")
    work = cupy.empty(getattr(cusolver, f"{letter}getrf_bufferSize")(handle, m, n, address(a), m), a.dtype)
    for one, rows in zip(a, exchanges, strict=True):
        getrf(handle, m, n, address(one), m, address(work), address(rows), address(info))


def qr(outs: Sequence[Any], args: Sequence[Any], *, full_matrices: bool, **_: Any) -> None:
    outs[0][...], outs[1][...] = cupy.linalg.qr(args[0], "complete" if full_matrices else "reduced")


def eigh(outs: Sequence[Any], args: Sequence[Any], *, lower: bool, **_: Any) -> None:
    outs[1][...], outs[0][...] = cupy.linalg.eigh(args[0], "L" if lower else "U")


def svd(outs: Sequence[Any], args: Sequence[Any], *, full_matrices: bool, compute_uv: bool, **_: Any) -> None:
    if not compute_uv:
        outs[0][...] = cupy.linalg.svd(args[0], compute_uv=False)
        return
    outs[1][...], outs[0][...], outs[2][...] = cupy.linalg.svd(args[0], full_matrices)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = {a.dtype.name for a in avals}
    odd = [p for p in ("pivoting", "subset_by_index", "algorithm") if params.get(p)]
    if not names <= LETTERS.keys():
        return f"cuSOLVER is called for float32 and float64, not for {' and '.join(sorted(names))}"
    if odd:
        return f"cuSOLVER is not called for {' and '.join(f'{p}={params[p]}' for p in odd)}"
    if any(0 in a.shape for a in avals):
        return "cuSOLVER takes no empty matrices"
    return why_missing("cupy_backends.cuda.libs.cusolver", "cuSOLVER", "nvidia-cusolver-cu12")
