"""OpenBLAS without a compiler: function addresses from the wheel's shared library. Knows no arrays.

OpenBLAS runs single-threaded; our pool splits the work, so that two pools don't fight for the cores.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
from collections.abc import Generator
from pathlib import Path

from polyax_cpu.compiler import host

ROW_MAJOR, COLUMN_MAJOR = 101, 102
UPPER, LOWER, GENERAL, UNIT, LEFT, RIGHT = 121, 122, 131, 132, 141, 142
TRANS = {(False, False): 111, (True, False): 112, (True, True): 113, (False, True): 114}
"""By whether a matrix is transposed, and whether it is conjugated. BLAS calls these ``CblasNoTrans`` and so on."""


CORES = {"znver4": "ZEN"}
"""Processors for which other kernels are faster than those it would choose. Zen 4 computes 512 bits in two halves: with
kernels for 256, products of 256 x 256 and more take 0.93 of the time, and triangular systems half of it."""


@functools.cache
def _openblas() -> ctypes.CDLL:
    with _environment(**_settings()):
        library = ctypes.CDLL(str(_path()))
    library.scipy_openblas_set_num_threads(1)
    return library


def _settings() -> dict[str, str]:
    """What the library reads once, while it is loaded. With one thread it starts none; users may name a core."""
    core = os.environ.get("OPENBLAS_CORETYPE") or CORES.get(host().cpu)
    return {"OPENBLAS_NUM_THREADS": "1"} | ({} if core is None else {"OPENBLAS_CORETYPE": core})


@contextlib.contextmanager
def _environment(**settings: str) -> Generator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _path() -> Path:
    """The shared library. Its package isn't imported: that would load it with threads, which spin beside ours.

    Raises:
      ModuleNotFoundError: the package isn't installed.
    """
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            "No module named 'scipy_openblas32'; pip install scipy-openblas32", name="scipy_openblas32"
        )
    folder = Path(found.origin).parent / "lib"
    return next(p for p in sorted(folder.glob("libscipy_openblas*")) if p.suffix != ".a")


def address(name: str) -> int:
    """The address of a function such as ``cblas_sgemm``.

    Raises:
      AttributeError: the library lacks it.
    """
    pointer = ctypes.cast(getattr(_openblas(), f"scipy_{name}"), ctypes.c_void_p).value
    assert pointer is not None
    return pointer
