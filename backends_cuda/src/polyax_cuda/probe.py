"""What a machine lacks to compute on NVIDIA GPUs, in plain words with the remedy. Makes nothing and changes nothing."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec
from typing import Any

NO_DEVICE, WRONG_DRIVER = 100, 35
"""Error codes of the CUDA runtime."""


def why_not() -> str | None:
    """None if there is a GPU, a driver, and all that it takes to compile kernels.

    The driver comes first: without one, which is common, importing CuPy would cost half a second for nothing.
    """
    if find_spec("cupy") is None:
        return "CuPy isn't installed; pip install cupy-cuda12x"
    reason = why_no_driver()
    if reason is not None:
        return reason
    try:
        from cupy.cuda import runtime
    except ImportError as e:
        return f"CuPy can't be imported ({e}); pip install --upgrade cupy-cuda12x"
    return why_no_device(runtime) or why_no_compiler()


def why_no_driver() -> str | None:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return (
            f"there is no NVIDIA driver on this machine ({name} can't be loaded); install one and see that nvidia-smi "
            "lists the GPU. In a container, start it with the GPU (docker run --gpus all)"
        )
    return None


def why_no_device(runtime: Any) -> str | None:
    """``runtime`` is ``cupy.cuda.runtime``."""
    try:
        runtime.getDeviceCount()
    except runtime.CUDARuntimeError as e:
        if e.status == WRONG_DRIVER:
            have, need = (_version(v) for v in (runtime.driverGetVersion(), runtime.runtimeGetVersion()))
            return f"the NVIDIA driver supports CUDA {have}, but CuPy was built for {need}; update the driver"
        if e.status == NO_DEVICE:
            return "the NVIDIA driver finds no GPU; see whether CUDA_VISIBLE_DEVICES hides it, and what nvidia-smi says"
        return f"the NVIDIA driver doesn't work: {e}; see what nvidia-smi says"
    return None


def why_no_compiler() -> str | None:
    """Whether kernels can be compiled here; no GPU is needed for that."""
    try:
        from cupy.cuda import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as e:
        return f"NVRTC, which compiles kernels, can't be loaded ({e}); pip install nvidia-cuda-nvrtc-cu12"
    return None


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
