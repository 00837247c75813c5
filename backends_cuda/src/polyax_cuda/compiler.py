"""CUDA C to machine code through NVRTC, with a cache on disk. Needs neither a GPU nor a driver."""

from __future__ import annotations

from cupy_backends.cuda.libs import nvrtc

from polyax.backend import DiskCache
from polyax_kernels.api.gpu import KernelRejected

OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--fmad=false")
"""Nothing is contracted to a fused product and sum: kernels that compute one value agree on it, fused or not."""

_cache = DiskCache("cuda")


def binary(source: str, target: str) -> bytes:
    """The program compiled for ``target``: machine code for ``sm_90``, PTX for ``compute_90``.

    Raises:
      KernelRejected: NVRTC doesn't accept it.
    """
    key = "\n".join((f"NVRTC {nvrtc.getVersion()}", target, *OPTIONS, source))
    code = _cache.get(key)
    if code is None:
        code = compiled(source, target)
        _cache.put(key, code)
    return code


def compiled(source: str, target: str) -> bytes:
    """As ``binary``, without the cache."""
    program = nvrtc.createProgram(source, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"--gpu-architecture={target}", *OPTIONS))
        return nvrtc.getCUBIN(program) if target.startswith("sm_") else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as e:
        raise KernelRejected(f"cuda ({target})", nvrtc.getProgramLog(program) or str(e), source) from None
    finally:
        nvrtc.destroyProgram(program)


def target(major: int, minor: int) -> str:
    """The machine code of a GPU, or PTX, which its driver translates, if NVRTC doesn't know the GPU.

    >>> target(9, 0)
    'sm_90'
    """
    capability, known = 10 * major + minor, nvrtc.getSupportedArchs()
    return f"sm_{capability}" if capability in known else f"compute_{max(n for n in known if n < capability)}"
