"""Work of Python functions that release the interpreter's lock, shared by the threads of the native runtime: these are
awake while programs follow each other. Knows no library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from polyax_cpu import pool
from polyax_cpu.records import FUNCTION_PARAMS
from polyax_kernels.host.backend import FUNCTION

_NUMBERS = [ctypes.c_int64] * 3
_TYPES = [FUNCTION, *(ctypes.c_int64 if type == "i64" else ctypes.c_void_p for type, _ in FUNCTION_PARAMS), *_NUMBERS]


def share(extent: int, run: Callable[[int, int], None], grain: int = 1) -> None:
    """``run`` on ranges that cover ``0..extent``, one for each thread, which begin at multiples of ``grain``.

    Raises:
      Exception: what the first of them raised that failed, when all have ended.
    """
    size = -(-extent // (pool.thread_count() * grain)) * grain
    pieces = -(-extent // size) if size else 0
    if pieces <= 1:
        return run(0, extent)
    pool.ensure_started()
    failed: list[BaseException] = []

    def piece(_: Any, __: Any, begin: int, end: int) -> None:
        try:
            run(begin, end)
        except BaseException as e:
            failed.append(e)

    parallel = ctypes.CFUNCTYPE(None, *_TYPES)(pool.symbols()["polyax_parallel"])
    parallel(FUNCTION(piece), None, None, 0, extent, size, pieces, 1)
    if failed:
        raise failed[0]
