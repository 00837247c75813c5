"""PyOpenCL, imported quietly, and the devices that it finds, or why there are none. Makes no context."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from polyax.backend import cache_root, config, why_no_cache
from polyax_opencl import pocl
from polyax_opencl.kept import Kept

DRIVER = "install your device's driver, or a processor's: pip install \"polyax-opencl[pocl]\""
"""What to do about a machine without platforms."""


os.environ.setdefault("PYOPENCL_NO_CACHE", "1")  # that cache holds pickles

import pyopencl as cl  # noqa: E402
from pyopencl import tools  # noqa: E402, F401


@dataclass(frozen=True)
class Found:
    """The devices of all platforms, in the order in which they are numbered, or why there are none."""

    devices: tuple[cl.Device, ...] = ()
    why_none: str | None = None
    kept: Kept | None = None
    """What PoCL keeps on disk, where we said where."""


@cache
def find() -> Found:
    """Platforms by name, and each platform's devices in its own order: numbers stay from run to run."""
    folder = pocl_folder()
    with told_pocl(folder) as ours:
        return replace(listed(), kept=Kept(folder) if folder and ours else None)


def pocl_folder() -> Path | None:
    """Where PoCL may keep what it compiles: beside our caches, if it may at all."""
    folder = cache_root() / "pocl"
    private = config.compilation_cache and why_no_cache(cache_root()) is None and why_no_cache(folder) is None
    return folder if private else None


@contextlib.contextmanager
def told_pocl(folder: Path | None) -> Generator[bool]:
    """Whether PoCL, which reads its variables when its devices are listed, is told of ``folder``; what the user has set
    stays. Afterwards nothing is set, for processes that are started by this one."""
    name, value = ("POCL_KERNEL_CACHE", "0") if folder is None else ("POCL_CACHE_DIR", str(folder))
    ours = name not in os.environ
    os.environ.setdefault(name, value)
    try:
        yield ours
    finally:
        if ours:
            del os.environ[name]


def listed() -> Found:
    try:
        platforms = sorted(cl.get_platforms(), key=lambda p: (p.name, p.version))
    except cl.Error as e:
        return Found(why_none=f"no OpenCL platform is installed ({e}); {DRIVER}")
    found = [d for p in platforms for d in usable_devices(p)]
    if not found and any(p.name == pocl.PLATFORM for p in platforms):
        return Found(why_none=f"{pocl.TOO_OLD}; use a newer one, or {DRIVER}")
    if not found:
        names = ", ".join(p.name for p in platforms) or "none"
        return Found(why_none=f"the OpenCL platforms ({names}) have no usable device; see clinfo, or {DRIVER}")
    return Found(tuple(found))


def usable_devices(platform: cl.Platform) -> list[cl.Device]:
    """Its devices that are there and have a compiler that works; a platform without any raises."""
    try:
        return [d for d in platform.get_devices() if d.available and d.compiler_available and compiles(platform, d)]
    except cl.Error:
        return []


def compiles(platform: cl.Platform, device: cl.Device) -> bool:
    """Whether its compiler knows what to compile for."""
    known = platform.name != pocl.PLATFORM or pocl.knows_processor(device.version)
    return known or pocl.name_processor(device.int_ptr)


def on_processor(device: cl.Device) -> bool:
    """Whether it is the processor that this program runs on."""
    return bool(device.type & cl.device_type.CPU)


def title(device: cl.Device) -> str:
    """What the device is called, and whose driver it is: one device may have several."""
    return f"{device.name.strip()}, {device.platform.name.strip()}"
