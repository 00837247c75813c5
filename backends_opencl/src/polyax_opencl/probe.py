"""PyOpenCL, imported quietly, and the devices that it finds, or why there are none. Makes no context."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from polyax.backend import cache_root, config, why_no_cache
from polyax_opencl import pocl

DRIVER = "install your device's driver, or a processor's: pip install \"polyax-opencl[pocl]\""
"""What to do about a machine without platforms."""


def keep_private() -> None:
    """Switches PyOpenCL's own cache off, which holds pickles, and has PoCL keep what it compiles beside our caches.

    Must run before PyOpenCL is imported; variables that the user has set stay.
    """
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    folder = cache_root() / "pocl"
    if config.compilation_cache and why_no_cache(cache_root()) is None and why_no_cache(folder) is None:
        os.environ.setdefault("POCL_CACHE_DIR", str(folder))
    else:
        os.environ.setdefault("POCL_KERNEL_CACHE", "0")


keep_private()

import pyopencl as cl  # noqa: E402
from pyopencl import tools  # noqa: E402, F401


@dataclass(frozen=True)
class Found:
    """The devices of all platforms, in the order in which they are numbered, or why there are none."""

    devices: tuple[cl.Device, ...] = ()
    why_none: str | None = None


@cache
def find() -> Found:
    """Platforms by name, and each platform's devices in its own order: numbers stay from run to run."""
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
