"""Matrix products of cuBLAS, called as C functions: CuPy refuses to call it while a stream records.

A handle belongs to one stream and has a workspace of its own, without which cuBLAS would allocate during a recording.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_double, c_float, c_int, c_longlong, c_void_p
from functools import cache
from typing import Any

import cupy
import cupy_backends.cuda.api.runtime as runtime

from polyax_kernels.api.gpu import DeviceError

WORKSPACE = 32 << 20
"""What NVIDIA's documentation of ``cublasSetWorkspace`` recommends for the largest GPUs, in bytes."""
DEFAULT_ALGORITHM = -1
STATUS = {3: "allocation failed", 7: "invalid value", 13: "execution failed", 15: "not supported"}
"""Of ``cublasStatus_t``, what a call for a product gives."""
SCALARS = {
    "float32": (c_float(1.0), c_float(0.0)),
    "float64": (c_double(1.0), c_double(0.0)),
}
"""What products are multiplied by, and what was there before, by the type of the sums."""
PRODUCT = (
    c_void_p, *[c_int] * 5,
    c_void_p, c_void_p, c_int, c_int, c_longlong,
    c_void_p, c_int, c_int, c_longlong,
    c_void_p, c_void_p, c_int, c_int, c_longlong,
    c_int, c_int, c_int,
)  # fmt: skip


@cache
def library() -> Any:
    """The library that CuPy has loaded, with the types of what is called."""
    from cupy_backends.cuda.libs import cublas  # loads it

    assert cublas is not None
    major = runtime.runtimeGetVersion() // 1000
    found = ctypes.CDLL(f"cublas64_{major}.dll" if sys.platform == "win32" else f"libcublas.so.{major}")
    found.cublasCreate_v2.argtypes = [c_void_p]
    found.cublasSetStream_v2.argtypes = [c_void_p, c_void_p]
    found.cublasSetWorkspace_v2.argtypes = [c_void_p, c_void_p, ctypes.c_size_t]
    found.cublasGemmStridedBatchedEx.argtypes = PRODUCT
    return found


def done(status: int, what: str) -> None:
    """Raises DeviceError if the call for ``what`` has failed."""
    if status:
        raise DeviceError(
            f"cuBLAS failed with status {status} ({STATUS.get(status, 'see cublasStatus_t')}) for {what}. Check its "
            "version and the driver's (`nvidia-smi`), and the memory that is free; POLYAX_PLATFORMS=cpu does without it"
        )


class CublasHandle:
    """cuBLAS on one stream of the current device, which outlives it."""

    def __init__(self, stream: int) -> None:
        self._library, self._handle = library(), c_void_p()
        self._workspace = cupy.cuda.alloc(WORKSPACE)
        done(self._library.cublasCreate_v2(byref(self._handle)), "a handle")
        # the stream before the workspace, which it would take away
        done(self._library.cublasSetStream_v2(self._handle, stream), "a handle's stream")
        done(self._library.cublasSetWorkspace_v2(self._handle, self._workspace.ptr, WORKSPACE), "a handle's workspace")

    def product(
        self, transposes: tuple[int, int], sizes: tuple[int, int, int], left: tuple[int, int, int, int],
        right: tuple[int, int, int, int], out: tuple[int, int, int, int], batch: int, compute: int, sums: str,
        what: str,
    ) -> None:  # fmt: skip
        """``out = left right`` for a ``batch``, by columns; ``sizes`` are its rows, its columns, and what is summed.

        Operands are (address, cudaDataType, leading dimension, elements from matrix to matrix); ``compute`` is a
        cublasComputeType, whose sums are of the type ``sums``; errors tell of ``what``.
        """
        one, zero = SCALARS[sums]
        done(
            self._library.cublasGemmStridedBatchedEx(
                self._handle, *transposes, *sizes, byref(one), *left, *right, byref(zero), *out,
                batch, compute, DEFAULT_ALGORITHM,
            ),
            f"the product of {what}",
        )  # fmt: skip


@cache
def handle(device: int, stream: int) -> CublasHandle:
    """That of a stream of the current device, whose number tells streams of several devices apart."""
    return CublasHandle(stream)
