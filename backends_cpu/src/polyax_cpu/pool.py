"""The native runtime's parts and its threads: how many there are, and when they start.

Threads start with the first program that has work for several; a child process starts its own after ``fork``.
"""

from __future__ import annotations

import ctypes
import os
import threading

from polyax_cpu import native, processors
from polyax_cpu.calls import running
from polyax_cpu.functions import large_arguments
from polyax_cpu.machine_code import Part
from polyax_cpu.notes import clock
from polyax_cpu.notes import native as notes
from polyax_kernels import settings

_lock = threading.Lock()
_started = False

_BY = "its counter" if clock.counts() else "the system's clock"
_runtime = Part(
    f"native runtime, timed by {_BY}", lambda: native.source(processors.host().triple), native.EXPORTS, notes.imports
)
_exact = [
    Part(f"large arguments of {kind.type}", kind.source, kind.exports)
    for kind in (large_arguments.SINGLE, large_arguments.DOUBLE)
]
native_calls = Part(
    f"native calls, timed by {_BY}", running.source, [running.ENTER], lambda: _runtime.symbols() | notes.imports()
)
"""Few programs need it at once: one that runs for the first time doesn't wait for it."""
PARTS = (_runtime, *_exact, native_calls)


def prepare() -> None:
    """Loads the native runtime on a thread of its own, while the program that will need it is still being traced."""
    _runtime.prepare()


def symbols() -> dict[str, int]:
    """The runtime's functions by name."""
    return _runtime.symbols()


def symbols_for(code: bytes) -> dict[str, int]:
    """What kernels may call: the functions by name that stand in object code or its text. The linker takes its time for
    each that it is told of, whether it is called or not."""
    called = lambda part: [name for name in part.exports if name.encode() in code]
    return {name: part.symbols()[name] for part in (_runtime, *_exact) for name in called(part)}


def thread_count() -> int:
    """``config.num_threads``, else the cores that this process may use."""
    if asked := settings.num_threads():
        return asked
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ensure_started() -> None:
    """Starts the workers, once in a process; the thread that launches is one of the team."""
    global _started
    if _started:
        return
    with _lock:
        if not _started:
            start = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(symbols()["polyax_start"])
            start(thread_count() - 1)
            _started = True


def _forget() -> None:
    """Only the thread that forked lives on in the child."""
    global _started, _lock
    _started, _lock = False, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
