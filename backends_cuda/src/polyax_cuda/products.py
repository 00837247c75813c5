"""Matrix products through cuBLAS. It stores matrices by columns, we by rows: it computes ``C^T = B^T A^T``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyax.backend import ShapedArray
from polyax_cuda import cublas
from polyax_cuda.runtime import Copied
from polyax_kernels.api.lowerings import (
    Side,
    Stored,
    count,
    grouped,
    sides,
    stored,
    taken,
    why_missing,
    why_not_blas,
    why_tiny,
)

TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}  # in cudaDataType
COMPUTE_32F, COMPUTE_64F, COMPUTE_32F_FAST_TF32 = 68, 70, 77
"""Names of cuBLAS."""
GROUPS = 64
"""Calls for one product, each of a part of the batch, that cost less than copying an operand."""


class CublasCalls:
    """A ``dot_general`` as calls of cuBLAS. ``moved``: the order of dimensions to copy an operand to first, if cuBLAS
    can't step through it where it lies. ``groups``: the elements of left, right and result where each call begins."""

    def __init__(
        self, runtime: Any, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]
    ) -> None:
        self.runtime = runtime
        left, right = sides(args, params)
        self.types = [TYPES[v.dtype.name] for v in (*args, *outs)]
        self.itemsizes = [v.dtype.itemsize for v in (*args, *outs)]
        self.sizes = m, n, _ = tuple(count(digits) for digits in (left.free, right.free, left.contracted))
        self.compute, self.sums = _compute(args[0].dtype.name, params)
        self.what = " and ".join(str(a) for a in args)
        total = count(left.batch)
        in_groups = _in_groups(left, right, total)
        if in_groups is not None:
            self.batch, self.left, self.right, steps = in_groups
            self.moved: tuple[Any, Any] = None, None
        else:
            (self.left, one), (self.right, two) = (taken(k, s, args[k], params) for k, s in enumerate((left, right)))
            self.batch, self.moved, steps = total, (one, two), (0, 0)
        each = (*steps, self.batch * m * n)
        self.groups = [tuple(k * step for step in each) for k in range(total // self.batch)]
        self.records = self.moved == (None, None)
        """It allocates nothing, so recordings of the device may have it as a part."""
        with runtime.current():
            for stream in (runtime.stream, runtime.recorder):
                cublas.handle(runtime.number, stream.ptr)

    def __call__(self, outs: Sequence[Any], args: Sequence[Any]) -> None:
        runtime = self.runtime
        with runtime.current() if self.records else runtime.working():
            views = [v if order is None else Copied(v, order) for v, order in zip(args, self.moved, strict=True)]
            self.calls([v.memory.ptr + v.offset for v in (*views, *outs)])

    def calls(self, places: Sequence[int]) -> None:
        """``places`` are the addresses of left, right and result."""
        (x, y, z), a, b = self.types, self.left, self.right
        (m, n, k), handle = self.sizes, cublas.handle(self.runtime.number, self.runtime.queue.ptr)
        for steps in self.groups:
            p, q, out = (at + step * size for at, step, size in zip(places, steps, self.itemsizes, strict=True))
            handle.product(
                (int(b.transposed), int(a.transposed)), (n, m, k),
                (q, y, b.ld, b.stride), (p, x, a.ld, a.stride), (out, z, n, m * n),
                self.batch, self.compute, self.sums, self.what,
            )  # fmt: skip


def _compute(dtype: str, params: Mapping[str, Any]) -> tuple[int, str]:
    """The cublasComputeType for operands of ``dtype``, and the type of the sums; TF32 is what float32 is rounded to."""
    if dtype == "float64":
        return COMPUTE_64F, "float64"
    return COMPUTE_32F_FAST_TF32 if dtype == "float32" and not exact(params) else COMPUTE_32F, "float32"


def exact(params: Mapping[str, Any]) -> bool:
    """Whether float32 is computed in float32: unless somebody asks for less, which on GPUs is TF32."""
    precision = params.get("precision")
    return precision is None or any(p.name == "HIGHEST" for p in precision)


def _in_groups(left: Side, right: Side, total: int) -> tuple[int, Stored, Stored, tuple[int, int]] | None:
    """The batch of one call, how cuBLAS takes the operands of it, and the elements from call to call; None if it can't
    step through them, or only in too many calls."""
    found = grouped(left, right)
    if found is None or total // found[0] > GROUPS:
        return None
    size, (one, apart), (two, other) = found
    a, b = stored(one, left=True), stored(two, left=False)
    return None if a is None or b is None else (size, a, b, (apart, other))


def prepare(
    ctx: Any, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """The function that calls cuBLAS."""
    return CublasCalls(ctx.runtime, outs, args, params)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if reason := why_not_blas("cuBLAS", TYPES, avals, params):
        return reason
    if reason := why_tiny(*sides(avals, params)):
        return reason
    return why_missing("cupy_backends.cuda.libs.cublas", "cuBLAS", "nvidia-cublas-cu12")
