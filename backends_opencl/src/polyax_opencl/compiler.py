"""OpenCL C to kernels through the device's compiler, with its binaries cached on disk. Knows no arrays."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from polyax.backend import DiskCache
from polyax_kernels.api.gpu import KernelRejected
from polyax_opencl import pocl
from polyax_opencl.functions import PROCESSOR
from polyax_opencl.probe import cl, find, on_processor, title

CORRECT_DIVISION = "-cl-fp32-correctly-rounded-divide-sqrt"

ATTEMPTS = 3
"""Processes that compile the same source at once meet in PoCL's cache: now and then the build of one fails without a
word from the compiler, and works when it is asked for again."""

_cache = DiskCache("opencl")
_building = threading.Lock()


class Function(NamedTuple):
    """A kernel, whose arguments are state: whoever sets them holds ``lock`` until it is started."""

    kernel: cl.Kernel
    lock: threading.Lock


def functions(context: cl.Context, source: str, names: Sequence[str]) -> list[Function]:
    """The functions ``names`` of the program ``source``, for the one device of ``context``.

    Raises:
      KernelRejected: the compiler doesn't accept it.
    """
    program = kept_by_pocl(context, source) if is_kept(context.devices[0]) else from_cache(context, source)
    return [Function(cl.Kernel(program, name), threading.Lock()) for name in names]


def is_kept(device: cl.Device) -> bool:
    """PoCL keeps what it compiles itself, watched over by ``kept``, and compiles once more to give a binary away."""
    return device.platform.name == pocl.PLATFORM


def kept_by_pocl(context: cl.Context, source: str) -> cl.Program:
    if kept := find().kept:
        try:
            kept.enter()
        except OSError as e:
            warnings.warn(f"Nobody watches over what PoCL keeps in {kept.folder}: {e}", stacklevel=2)
    return from_source(context, source, ATTEMPTS)


def from_cache(context: cl.Context, source: str) -> cl.Program:
    device = context.devices[0]
    key = "\n".join((identity(device), *options(device), source))
    program = from_binary(context, _cache.get(key))
    if program is None:
        program = from_source(context, source)
        _cache.put(key, program.binaries[0])
    return program


def from_source(context: cl.Context, source: str, attempts: int = 1) -> cl.Program:
    try:
        return built(cl.Program(context, source), context.devices[0])
    except cl.Error as e:
        if attempts > 1:
            return from_source(context, source, attempts - 1)
        raise KernelRejected(title(context.devices[0]), str(e), numbered(source)) from None


def from_binary(context: cl.Context, code: bytes | None) -> cl.Program | None:
    """None if there is no code, or if the driver doesn't take it (any more)."""
    if code is None:
        return None
    try:
        return built(cl.Program(context, context.devices, [code]), context.devices[0])
    except cl.Error:
        return None


def built(program: cl.Program, device: cl.Device) -> cl.Program:
    """The program, compiled. What compilers say about programs that they accept is not shown."""
    with _building, warnings.catch_warnings():  # the filters of all threads change meanwhile: one at a time
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return program.build(options(device))


def options(device: cl.Device) -> list[str]:
    """No warnings; division and square root rounded correctly where the device can."""
    correct = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    processor = on_processor(device)
    return ["-w", *[CORRECT_DIVISION] * bool(correct), *[f"-D{PROCESSOR}"] * processor]


def identity(device: cl.Device) -> str:
    """All that a binary depends on beside source and options."""
    platform = device.platform
    return "\n".join((platform.name, platform.version, device.name, device.version, device.driver_version))


def numbered(source: str) -> str:
    """The text with line numbers, which the compiler's messages refer to.

    >>> print(numbered("int a;\\nint b;"))
    1  int a;
    2  int b;
    """
    lines = source.splitlines()
    width = len(str(len(lines)))
    return "\n".join(f"{n:{width}}  {line}" for n, line in enumerate(lines, 1))
