"""How polyax finds this backend, and what a machine lacks for it. Imports no toolkit before that is needed."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from polyax.backend import Backend, BackendSpec, Lowering, Primitive, hookimpl

NO_DEVICE, WRONG_DRIVER = 100, 35
"""Error codes of the CUDA runtime."""
UNVERIFIED = "unverified: its kernels compile, but no GPU has run them yet"


polyax_requires = ">=1,<2"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """NVIDIA GPUs: the default platform where there are some."""
    return [BackendSpec("cuda", probe=why_not, open=_open, priority=20, note=UNVERIFIED)]


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Primitive, Lowering] | None:
    """Products, linear algebra, transforms, sorts and convolutions through NVIDIA's libraries."""
    if backend.name != "cuda":
        return None
    from polyax_cuda.library import LOWERINGS

    return LOWERINGS


def _open() -> Backend:
    from cupy_backends.cuda.api.runtime import getDeviceCount

    from polyax_cuda.backend import CudaBackend
    from polyax_cuda.runtime import CudaRuntime

    return CudaBackend("cuda", [CudaRuntime(n) for n in range(getDeviceCount())])


def why_not() -> str | None:
    """None if all is there, else the reason as users will read it. The driver is tried first, as CuPy loads slowly."""
    if find_spec("cupy") is None:
        return "CuPy isn't installed; pip install cupy-cuda12x"
    driver = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(driver)
    except OSError:
        return (
            f"there is no NVIDIA driver on this machine ({driver} can't be loaded); install one and see that "
            "nvidia-smi lists the GPU. In a container, start it with the GPU (docker run --gpus all)"
        )
    try:
        import cupy_backends.cuda.api.runtime as runtime
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as e:
        return f"CuPy or NVRTC can't be loaded ({e}); pip install --upgrade cupy-cuda12x nvidia-cuda-nvrtc-cu12"
    return why_no_device(runtime)


def why_no_device(runtime: Any) -> str | None:
    """``runtime`` is CuPy's module of that name."""
    try:
        runtime.getDeviceCount()
    except runtime.CUDARuntimeError as e:
        return f"{e}; see what nvidia-smi says, whether CUDA_VISIBLE_DEVICES hides the GPU, and how old the driver is"
    return None
