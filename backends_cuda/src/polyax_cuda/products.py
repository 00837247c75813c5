"""Matrix products through cuBLAS. It stores matrices by columns, we by rows: it computes ``C^T = B^T A^T``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from polyax.backend import ShapedArray
from polyax_cuda.runtime import array
from polyax_kernels.api.lowerings import count, sides, taken, why_missing, why_not_blas

TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}  # in cudaDataType
COMPUTE_32F, COMPUTE_64F, DEFAULT_ALGORITHM = 68, 70, -1
"""Names of cuBLAS. float32 is computed in float32, not in TF32."""


def prepare(
    ctx: Any, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """The function that calls cuBLAS. Operands through which it can't step are copied first."""
    left, right = sides(args, params)
    (a, a_order), (b, b_order) = (taken(n, side, args[n], params) for n, side in enumerate((left, right)))
    x, y, z = (TYPES[v.dtype.name] for v in (*args, *outs))
    batch, m, n, k = (count(digits) for digits in (left.batch, left.free, right.free, left.contracted))
    compute, real = (COMPUTE_64F, "float64") if outs[0].dtype.name == "float64" else (COMPUTE_32F, "float32")
    one, zero = np.ones((), real), np.zeros((), real)

    def run(outs: Sequence[Any], args: Sequence[Any]) -> None:
        from cupy_backends.cuda.libs import cublas  # late, as machines without a GPU may lack the library

        with ctx.runtime.working():
            p, q, out = _moved(args[0], a_order), _moved(args[1], b_order), array(outs[0])
            cublas.gemmStridedBatchedEx(
                cupy.cuda.device.get_cublas_handle(), int(b.transposed), int(a.transposed), n, m, k,
                one.ctypes.data, q.data.ptr, y, b.ld, b.stride, p.data.ptr, x, a.ld, a.stride,
                zero.ctypes.data, out.data.ptr, z, n, m * n, batch, compute, DEFAULT_ALGORITHM,
            )  # fmt: skip

    return run


def _moved(view: Any, order: Sequence[int] | None) -> Any:
    x = array(view)
    return x if order is None else cupy.ascontiguousarray(cupy.transpose(x, order))


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    missing = why_missing("cupy_backends.cuda.libs.cublas", "cuBLAS", "nvidia-cublas-cu12")
    return why_not_blas("cuBLAS", TYPES, avals, params) or missing
