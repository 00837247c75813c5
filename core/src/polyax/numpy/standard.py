"""What the Python array API standard asks of a library: which namespace, devices and dtypes an array's library has."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from polyax.ir import dtypes
from polyax.ir.config import config
from polyax.runtime.plugins import topology
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.plugins.registry import registry

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = "2024.12"

_NAMES = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS: dict[str, tuple[str, ...]] = {
    **{kind: (kind,) for kind in _NAMES},
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}
_WIDE = frozenset(("int64", "uint64", "float64", "complex128"))


def array_namespace(self: Any, *, api_version: str | None = None) -> ModuleType:
    """``polyax.numpy``, for programs that compute with arrays of any library.

    Raises:
      ValueError: another version of the standard is asked for.
    """
    if api_version is not None and api_version != __array_api_version__:
        raise ValueError(f"{api_version=} is not available; available versions are: ['{__array_api_version__}']")
    return sys.modules["polyax.numpy"]


class ArrayNamespaceInfo:
    """The devices and dtypes of arrays, in the words of the array API standard."""

    def capabilities(self) -> dict[str, Any]:
        """What inputs may be, within transformations too: no shape depends on values there."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: arrays that nobody placed go where those are that they meet."""

    def devices(self) -> list[Any]:
        """None and the devices of all platforms in use."""
        default = default_device_now().backend
        platforms = [default, *(b for b in registry.opened() if b is not default)]
        return [None, *(d for b in platforms for d in topology.devices_of(b))]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of what is made of Python's numbers."""
        floating, integral = dtypes.default_float(), dtypes.default_int()
        return {
            "real floating": floating,
            "complex floating": dtypes.wider(floating, "complex64"),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The standard's dtypes by their names, of some kinds or all; those of 64 bits if these are enabled.

        Raises:
          KeyError: an unknown kind.
        """
        kinds = ("numeric", "bool") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        names = [name for k in kinds for part in _KINDS[k] for name in _NAMES[part]]
        return {name: dtypes.as_dtype(name) for name in names if config.enable_x64 or name not in _WIDE}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What can be asked of this library, as the array API standard says.

    >>> sorted(__array_namespace_info__().dtypes(kind="real floating"))
    ['float32']
    """
    return ArrayNamespaceInfo()
