"""``print_environment_info``: what a report of a fault should begin with."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from polyax.runtime.arrays.devices import devices, local_devices, process_count


def installed_version(name: str) -> str:
    """Of a distribution."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


__version__ = installed_version("polyax")


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions, devices, the machine and the settings of the environment, or gives them as a text.

    >>> print_environment_info(return_string=True).splitlines()[0].startswith("polyax:")
    True
    """
    lines = [
        f"polyax: {__version__}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {_device_info()}",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
    ]
    lines += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("POLYAX_")]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def _device_info() -> str:
    kinds = {d.device_kind for d in devices()}
    return f"{'-'.join(sorted(kinds))}-{len(devices())}, {len(local_devices())} local devices"
