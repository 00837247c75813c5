"""OpenBLAS without a compiler: function addresses from the wheel's shared library. Knows no arrays.

OpenBLAS runs single-threaded; our pool splits the work, so that two pools don't fight for the cores.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
from pathlib import Path

ROW_MAJOR, COLUMN_MAJOR = 101, 102
UPPER, LOWER, GENERAL, UNIT, LEFT, RIGHT = 121, 122, 131, 132, 141, 142
TRANS = {(False, False): 111, (True, False): 112, (True, True): 113, (False, True): 114}
"""By whether a matrix is transposed, and whether it is conjugated. BLAS calls these ``CblasNoTrans`` and so on."""


@functools.cache
def _openblas() -> ctypes.CDLL:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, while the library is loaded: it then starts no threads
    try:
        library = ctypes.CDLL(str(_path()))
    finally:
        if before is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        else:
            os.environ["OPENBLAS_NUM_THREADS"] = before
    library.scipy_openblas_set_num_threads(1)
    return library


def _path() -> Path:
    """The shared library. Its package isn't imported: that would load it with threads, which spin beside ours.

    Raises:
      ModuleNotFoundError: the package isn't installed.
      FileNotFoundError: it lacks its library.
    """
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            "No module named 'scipy_openblas32'; pip install scipy-openblas32", name="scipy_openblas32"
        )
    folder = Path(found.origin).parent / "lib"
    for path in sorted(folder.glob("libscipy_openblas*")):
        if path.suffix != ".a":
            return path
    raise FileNotFoundError(f"no shared library in {folder}; pip install --force-reinstall scipy-openblas32")


def read_ahead() -> None:
    """Asks the system to have the library in memory when it is first called, which is mostly soon: it is large, and
    reading it from a disk takes twice as long as a first product does. Where systems can't be asked, or there is no
    library, nothing happens."""
    if not hasattr(os, "posix_fadvise"):
        return
    with contextlib.suppress(ModuleNotFoundError, OSError), open(_path(), "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def address(name: str) -> int:
    """The address of a function such as ``cblas_sgemm``.

    Raises:
      AttributeError: the library lacks it.
    """
    pointer = ctypes.cast(getattr(_openblas(), f"scipy_{name}"), ctypes.c_void_p).value
    assert pointer is not None
    return pointer
