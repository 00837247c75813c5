"""``jax.experimental.colocated_python``: Python beside devices of other machines, which no platform of polyax has.

Libraries import these names, and use them on such platforms alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DeviceList = tuple
"""Devices of a sharding, in their order."""
ifrt_programs = None
"""What makes programs for such platforms."""


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``fun`` where its arguments are. It can't be called.

    >>> colocated_python(abs)(1)
    Traceback (most recent call last):
        ...
    NotImplementedError: abs can't run beside the devices of another machine: no platform of polyax has such devices
    """

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise _refusal(getattr(fun, "__name__", repr(fun)))

    return refused


def colocated_python_class(cls: type) -> Callable[..., Any]:
    """Decorator: objects of ``cls`` there. None can be made."""
    return colocated_python(cls)


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The processors beside devices.

    Raises:
      NotImplementedError: always.
    """
    raise _refusal("what colocated_cpu_devices is asked for")


def _refusal(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"{what} can't run beside the devices of another machine: no platform of polyax has such devices"
    )
