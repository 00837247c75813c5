"""Matrix products through cuBLAS: which strided batched product a ``dot_general`` is, and the call.

cuBLAS stores matrices by columns, we by rows: it computes ``C^T = B^T A^T`` on the same memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_cuda.views import address, array, why_missing
from polyax_kernels.lowering import CallContext
from polyax_kernels.products import Digit, Side, count, sides

TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}
"""The names of dtypes in CUDA's enumeration cudaDataType."""
COMPUTE_32F, COMPUTE_64F, DEFAULT_ALGORITHM = 68, 70, -1
LARGEST = 2**31 - 1
"""cuBLAS counts in int32."""


@dataclass(frozen=True)
class Matrices:
    """One operand: matrices ``stride`` apart, stored by rows (or, ``transposed``, by columns) that are ``ld`` apart."""

    transposed: bool
    ld: int
    stride: int


def run(ctx: CallContext, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
    both = sides([v.aval for v in args], params)
    with ctx.runtime.working():
        found = [matrices(side, rows) for side, rows in zip(both, (True, False), strict=True)]
        operands = [array(v) for v in args]
        for n, side in enumerate(both):
            if found[n] is None:
                operands[n], found[n] = _moved(operands[n], params["dimension_numbers"], n, side)
        names = [v.aval.dtype.name for v in (*args, outs[0])]
        size = count(both[0].batch), count(both[0].free), count(both[1].free), count(both[0].contracted)
        _multiply(size, names, operands, found, array(outs[0]))


def matrices(side: Side, left: bool) -> Matrices | None:
    """An operand as it lies in memory; None if cuBLAS can't step through it so.

    ``left``: its matrices are ``(free, contracted)``, else ``(contracted, free)``.

    >>> matrices(Side(((4, 6),), ((2, 3),), ((3, 1),)), left=True)
    Matrices(transposed=False, ld=3, stride=6)
    """
    if max(map(len, (side.batch, side.free, side.contracted))) > 1:
        return None
    batch, free, contracted = ((*digits, (1, 0))[0] for digits in (side.batch, side.free, side.contracted))
    ld = _leading(*((free, contracted) if left else (contracted, free)))
    return None if ld is None else Matrices(*ld, batch[1])


def _leading(rows: Digit, columns: Digit) -> tuple[bool, int] | None:
    """Whether a matrix is stored by columns, and how far these, or its rows, are apart."""
    if 1 in columns:
        return False, max(rows[1], columns[0])
    return (True, max(columns[1], rows[0])) if 1 in rows else None


def _moved(x: Any, dimension_numbers: Any, n: int, side: Side) -> tuple[Any, Matrices]:
    """A copy whose dimensions are batch, free, contracted, and what it is."""
    contracted, batch = (dims[n] for dims in dimension_numbers)
    free = [d for d in range(x.ndim) if d not in batch and d not in contracted]
    copied = cupy.ascontiguousarray(cupy.transpose(x, (*batch, *free, *contracted)))
    rows, columns = count(side.free), count(side.contracted)
    return copied, Matrices(transposed=n == 1, ld=columns, stride=rows * columns)


def _multiply(
    size: tuple[int, int, int, int], names: Sequence[str], operands: Sequence[Any], found: Sequence[Any], out: Any
) -> None:
    from cupy_backends.cuda.libs import cublas  # it needs the library, which machines without a GPU may lack

    batch, m, n, k = size
    a, b = found
    x, y, z = (TYPES[name] for name in names)
    compute, real = (COMPUTE_64F, np.float64) if names[2] == "float64" else (COMPUTE_32F, np.float32)
    one, zero = np.ones((), real), np.zeros((), real)
    cublas.gemmStridedBatchedEx(
        cupy.cuda.device.get_cublas_handle(), int(b.transposed), int(a.transposed), n, m, k,
        one.ctypes.data, address(operands[1]), y, b.ld, b.stride, address(operands[0]), x, a.ld, a.stride,
        zero.ctypes.data, address(out), z, n, m * n, batch, compute, DEFAULT_ALGORITHM,
    )  # fmt: skip


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    names = [a.dtype.name for a in avals]
    wanted = np.dtype(params.get("preferred_element_type") or avals[0].dtype).name
    if names[0] != names[1] or names[0] not in TYPES:
        return f"cuBLAS has no product of {' and '.join(names)}"
    if wanted != names[0] and (wanted != "float32" or names[0] == "float64"):
        return f"cuBLAS has no product of {names[0]} in {wanted}"
    if any(0 in a.shape for a in avals):
        return "cuBLAS takes no empty matrices"
    if max(math.prod(a.shape) for a in avals) > LARGEST:
        return "cuBLAS counts elements in 32 bits"
    return why_missing("cupy_backends.cuda.libs.cublas", "cuBLAS", "nvidia-cublas-cu12")
