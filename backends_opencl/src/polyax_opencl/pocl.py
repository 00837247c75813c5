"""PoCL on processors that are newer than its compiler, which calls them ``generic`` and then refuses that name.

The name is a string that PoCL's record of the device points to; nothing else that it knows of the processor is wrong.
So we have it point to a name that the compiler accepts: the level of the x86-64 architecture that the processor has
(https://github.com/pocl/pocl/issues/1049). Processors that the compiler knows are left alone.
"""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

PLATFORM = "Portable Computing Language"
TOO_OLD = "the compiler of this PoCL is older than the processor and has no name for it"
UNKNOWN = b"generic"
LONGEST = 16
"""Bytes of a name that are looked at."""
RECORD = 4096
"""Bytes of a device's record that are looked through."""
POINTER = ctypes.sizeof(ctypes.c_void_p)
V2 = frozenset(["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"])
V3 = V2 | frozenset(["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"])
V4 = V3 | frozenset(["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"])
LEVELS = ((b"x86-64-v4", V4), (b"x86-64-v3", V3), (b"x86-64-v2", V2), (b"x86-64", frozenset[str]()))
"""Names that compilers know, and the flags of processors that they stand for: the x86-64 psABI, table 3.1."""

_names = {name: ctypes.create_string_buffer(name) for name, _ in LEVELS}
"""What records point to from then on."""


def knows_processor(version: str) -> bool:
    """Whether PoCL can compile for the device with this version text, which ends with the processor's name."""
    return not version.endswith("-generic") or platform.machine() not in ("x86_64", "AMD64")


def name_processor(record: int) -> bool:
    """Has the device's record, which lies at the address ``record``, name the processor; False where that fails."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:  # not Linux
        return False
    try:
        names = ((at, _pointed_to(memory, at)) for at in range(record, record + RECORD, POINTER))
        place, name = next(((at, name) for at, name in names if name == UNKNOWN or name in _names), (0, b""))
    finally:
        os.close(memory)
    if name == UNKNOWN:  # else it is named already, or there is none
        ctypes.c_void_p.from_address(place).value = ctypes.addressof(_names[level(processor_flags())])
    return bool(name)


def _pointed_to(memory: int, at: int) -> bytes:
    """The text that a pointer leads to, up to its end: read through the system, which answers for any address, also one
    that isn't there. Behind the record there may be anything."""
    try:
        target = int.from_bytes(os.pread(memory, POINTER, at), "little")
        return os.pread(memory, LONGEST, target).partition(b"\0")[0] if 0 < target < 1 << 63 else b""
    except OSError:
        return b""


def level(flags: frozenset[str]) -> bytes:
    """The highest level of x86-64 whose instructions a processor with ``flags`` has.

    >>> level(frozenset({"sse4_1", "avx2"}))
    b'x86-64'
    """
    return next(name for name, needed in LEVELS if needed <= flags)


def processor_flags() -> frozenset[str]:
    """As Linux lists them."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))
