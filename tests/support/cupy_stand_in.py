"""NumPy dressed as CuPy, with cuBLAS and cuSOLVER made of NumPy and SciPy on addresses of host memory.

The lowerings of the cuda backend run on it: what they do with shapes, strides, addresses and pivots shows, whatever
the real libraries do with speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from ctypes import c_double, c_float
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

from support.emulator import EmulatedRuntime, Pointer


class Array(np.ndarray):
    """An array that knows its address as CuPy's do."""

    @property
    def data(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return SimpleNamespace(ptr=self.ctypes.data)


def make(shape: Sequence[int], dtype: Any, memory: Pointer) -> Any:
    """``cupy.ndarray``."""
    return memory.array(shape, dtype).view(Array)


class StandIn:
    """The module ``cupy``."""

    ndarray = staticmethod(make)
    cuda = SimpleNamespace(
        device=SimpleNamespace(get_cusolver_handle=lambda: "cusolver"), alloc=lambda nbytes: SimpleNamespace(ptr=512)
    )

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return np.asarray(function(*args, **kwargs)).view(Array)

        return call


class Runtime(EmulatedRuntime):
    """What lowerings ask of a GPU beside launches."""

    number = 0
    stream, recorder = (SimpleNamespace(ptr=place) for place in (1, 2))
    queue = stream

    def working(self) -> Any:
        return nullcontext()

    current = working


def at(address: int, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> np.ndarray:
    """Memory at an address, with strides in elements."""
    dtype = np.dtype(dtype)
    buffer = SimpleNamespace(
        __array_interface__={
            "data": (address, False),
            "shape": tuple(shape),
            "typestr": dtype.str,
            "strides": None if strides is None else tuple(s * dtype.itemsize for s in strides),
            "version": 3,
        }
    )
    return np.asarray(buffer)


class CuBlas:
    """The C functions that are called of cuBLAS, and in which order a handle was made ready."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def cublasCreate_v2(self, handle: Any) -> int:
        self.made.append("create")
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: int) -> int:
        self.made.append(f"stream {stream}")
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, place: int, nbytes: int) -> int:
        self.made.append(f"workspace {nbytes}")
        return 0

    def cublasGemmStridedBatchedEx(self, *args: Any) -> int:
        gemm_strided_batched_ex(*args)
        return 0


def gemm_strided_batched_ex(
    handle: Any, transa: int, transb: int, m: int, n: int, k: int, alpha: Any, a: int, a_type: int, lda: int,
    a_stride: int, b: int, b_type: int, ldb: int, b_stride: int, beta: Any, c: int, c_type: int, ldc: int,
    c_stride: int, batch: int, compute: int, algorithm: int,
) -> None:  # fmt: skip
    """BLAS's definition, by columns, on matrices at addresses."""
    assert algorithm == -1
    real, number = {68: (np.float32, c_float), 77: (np.float32, c_float), 70: (np.float64, c_double)}[compute]
    dtypes = {0: np.float32, 1: np.float64, 2: np.float16}
    assert isinstance(alpha._obj, number)
    assert (alpha._obj.value, beta._obj.value) == (1, 0)

    def operand(place: int, dtype: int, rows: int, columns: int, transposed: int, ld: int, stride: int) -> np.ndarray:
        assert ld >= (columns if transposed else rows)
        steps = (stride, ld, 1) if transposed else (stride, 1, ld)
        return at(place, (batch, rows, columns), dtypes[dtype], steps).astype(real)

    product = operand(a, a_type, m, k, transa, lda, a_stride) @ operand(b, b_type, k, n, transb, ldb, b_stride)
    at(c, (batch, m, n), dtypes[c_type], (c_stride, 1, ldc))[...] = product


class CuSolver:
    """LAPACK's routines under cuSOLVER's names and arguments."""

    def __getattr__(self, name: str) -> Any:
        dtype = {"s": np.float32, "d": np.float64}[name[0]]
        if name.endswith("_bufferSize"):
            return lambda *args: 16
        routine = getattr(self, name[1:])
        return lambda *args: routine(dtype, *args)

    @staticmethod
    def potrf(dtype: Any, handle: Any, uplo: int, n: int, a: int, ld: int, work: int, size: int, info: int) -> None:
        assert (handle, uplo, size) == ("cusolver", 0, 16)
        columns = at(a, (n, n), dtype, (1, ld))
        factor, failed = scipy.linalg.lapack.get_lapack_funcs("potrf", (columns,))(columns, lower=True, clean=False)
        columns[...], at(info, (1,), np.int32)[...] = factor, failed

    def potrfBatched(
        self, dtype: Any, handle: Any, uplo: int, n: int, places: int, ld: int, info: int, batch: int
    ) -> None:
        for k, place in enumerate(at(places, (batch,), np.uint64)):
            self.potrf(dtype, handle, uplo, n, int(place), ld, 0, 16, info + 4 * k)

    @staticmethod
    def getrf(dtype: Any, handle: Any, m: int, n: int, a: int, ld: int, work: int, pivots: int, info: int) -> None:
        columns = at(a, (m, n), dtype, (1, ld))
        factors, exchanges, _ = scipy.linalg.lapack.get_lapack_funcs("getrf", (columns,))(columns)
        columns[...], at(pivots, (min(m, n),), np.int32)[...] = factors, exchanges + 1


def solve_triangular(
    a: Any, b: Any, trans: int, lower: bool, unit_diagonal: bool, overwrite_b: bool = False, check_finite: bool = False
) -> Any:
    """CuPy's, for stacks."""
    pairs = zip(a, b, strict=True)
    return np.stack([scipy.linalg.solve_triangular(x, y, trans, lower, unit_diagonal) for x, y in pairs]).view(Array)
