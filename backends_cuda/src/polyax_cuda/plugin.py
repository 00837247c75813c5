"""How polyax finds this backend, and what a machine lacks for it. Imports no toolkit before that is needed."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from polyax.ir.primitive import Primitive
from polyax.runtime.backend import Backend, BackendSpec
from polyax.runtime.hooks import hookimpl

NO_DEVICE, WRONG_DRIVER = 100, 35
"""Error codes of the CUDA runtime."""
UNVERIFIED = "unverified: its kernels compile, but no GPU has run them yet"


@hookimpl
def polyax_backends() -> Iterable[BackendSpec]:
    """NVIDIA GPUs: the default platform where there are some."""
    return [BackendSpec("cuda", probe=why_not, open=_open, priority=20, note=UNVERIFIED)]


@hookimpl
def polyax_lowerings(backend: Backend) -> Mapping[Primitive, Any] | None:
    """Products, linear algebra, transforms, sorts and convolutions through NVIDIA's libraries."""
    if backend.name != "cuda":
        return None
    from polyax_cuda.library import LOWERINGS

    return LOWERINGS


def _open() -> Backend:
    from polyax_cuda.backend import CudaBackend
    from polyax_cuda.runtime import all_gpus

    return CudaBackend("cuda", all_gpus())


def why_not() -> str | None:
    """None if there is a GPU, its driver and a compiler, else the reason as users will read it.

    The driver comes first: without one, which is common, importing CuPy would cost half a second for nothing.
    """
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
        from cupy.cuda import nvrtc, runtime

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as e:
        return f"CuPy or NVRTC can't be loaded ({e}); pip install --upgrade cupy-cuda12x nvidia-cuda-nvrtc-cu12"
    return why_no_device(runtime)


def why_no_device(runtime: Any) -> str | None:
    """``runtime`` is ``cupy.cuda.runtime``."""
    try:
        runtime.getDeviceCount()
    except runtime.CUDARuntimeError as e:
        if e.status == WRONG_DRIVER:
            have, need = (
                f"{v // 1000}.{v % 1000 // 10}" for v in (runtime.driverGetVersion(), runtime.runtimeGetVersion())
            )
            return f"the NVIDIA driver supports CUDA {have}, but CuPy was built for {need}; update the driver"
        if e.status == NO_DEVICE:
            return "the NVIDIA driver finds no GPU; see whether CUDA_VISIBLE_DEVICES hides it, and what nvidia-smi says"
        return f"the NVIDIA driver doesn't work: {e}; see what nvidia-smi says"
    return None
