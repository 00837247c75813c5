"""The loaded native runtime and its threads: how many there are, and when they start.

Threads start with the first program that has work for several; a child process starts its own after ``fork``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading

from polyax.ir.forks import uncut
from polyax_cpu import compiler, machine_code, native
from polyax_kernels import settings

_lock = threading.Lock()
_started = False
_loading = threading.Lock()
_runtime: list[compiler.LoadedCode] = []


def runtime() -> compiler.LoadedCode:
    """The native runtime, loaded at the first call."""
    if not _runtime:
        with _loading:
            if not _runtime:
                _runtime.append(_load())
    return _runtime[0]


def _load() -> compiler.LoadedCode:
    """Compiled without optimisation: that takes a quarter of the time, and launches are no slower."""
    make = lambda: compiler.compile(native.source(compiler.host().triple), level=0)
    made = machine_code.cached("native runtime", make)
    return compiler.LoadedCode(made, native.EXPORTS)


def prepare() -> None:
    """Loads the native runtime on a thread of its own, while the program that will need it is still being traced."""

    def load() -> None:
        with uncut:
            runtime()

    threading.Thread(target=load, name="polyax-cpu-prepare", daemon=True).start()


@functools.cache
def symbols() -> dict[str, int]:
    """What kernels may call: the runtime's functions by name."""
    return {name: runtime().address(name) for name in native.EXPORTS}


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
            start = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(runtime().address("polyax_start"))
            start(thread_count() - 1)
            _started = True


def _forget() -> None:
    """Only the thread that forked lives on in the child."""
    global _started, _lock, _loading
    _started, _lock, _loading = False, threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
