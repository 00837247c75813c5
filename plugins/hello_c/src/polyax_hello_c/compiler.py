"""Turns C into functions: cc makes a shared library, ctypes loads it, a cache on disk spares cc the next time."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

from polyax.backend import DiskCache

FLAGS = ("-std=gnu99", "-O2", "-ftree-vectorize", "-march=native", "-fopenmp-simd", "-fPIC", "-shared", "-w")
"""``-fopenmp-simd`` obeys the emitter's vector hints, and needs no OpenMP library."""
EXACT = ("-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
"""Integers wrap, nobody reads errno or floating-point flags: with that known, more loops vectorise. Results stay, and
two kernels that compute one value agree on it."""

_cache = DiskCache("hello_c")


class CompileError(RuntimeError):
    """The C compiler refused a program; the text holds its complaint and the program."""


def load(source: str) -> ctypes.CDLL:
    """The C program ``source``, compiled and loaded.

    Raises:
      CompileError: the compiler doesn't accept it.
    """
    key = f"{target()}\n{source}"
    with tempfile.TemporaryDirectory(prefix="polyax-hello-c-") as folder:
        library = Path(folder, "kernel.so")
        code = _cache.get(key)
        if code is None:
            compile_to(library, source)
            _cache.put(key, library.read_bytes())
        else:
            library.write_bytes(code)
        return ctypes.CDLL(str(library))  # stays loaded after its file is gone


def compile_to(library: Path, source: str) -> None:
    """Runs the compiler; the program goes in through a pipe."""
    command = [*compiler(), "-x", "c", "-", "-o", str(library), "-lm"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode:
        raise CompileError(f"{' '.join(command)} failed:\n{done.stderr}\nThe program:\n{source}")


def compiler() -> list[str]:
    return [os.environ.get("CC", "cc"), *FLAGS, *EXACT]


@functools.cache
def target() -> str:
    """What machine code depends on beside the source: the flags, and all that the compiler defines (version, ISA)."""
    command = [*compiler(), "-dM", "-E", "-x", "c", os.devnull]
    return " ".join(compiler()) + subprocess.run(command, capture_output=True, text=True).stdout
