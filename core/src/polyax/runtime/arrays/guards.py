"""Guards of copies: what moves between the host and devices, and among devices, is logged or refused if so wished.

Costs a look at ``on`` for each copy, and nothing where nothing is copied.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from polyax.ir.config import config
from polyax.ir.errors import PolyaxRuntimeError

WAYS = ("host_to_device", "device_to_device", "device_to_host")

on: list[bool] = []
"""Whether a guard was ever set."""

_asked = threading.local()
_logger = logging.getLogger(__name__)


class asked_for:
    """Copies inside the block are what the user has asked for."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        if on:
            self.before, _asked.explicitly = getattr(_asked, "explicitly", False), True

    def __exit__(self, *_: object) -> None:
        if on:
            _asked.explicitly = getattr(self, "before", False)


class embedded:
    """Copies inside the block are of what a program holds, at which no guard looks."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, _asked.embedded = getattr(_asked, "embedded", False), True

    def __exit__(self, *_: object) -> None:
        _asked.embedded = self.before


def level(way: str) -> str:
    """What is to be done about copies that way, as ``config`` has it: ``allow``, if nobody asks."""
    return config.get(f"transfer_guard_{way}") or config.get("transfer_guard") or "allow"


def watched(way: str) -> bool:
    """Whether anything is to be done about copies that way. Asked where ``on`` holds."""
    return level(way) != "allow"


def passes(way: str, aval: Any, *places: Any) -> None:
    """Looks at a copy, from one place to another.

    Raises:
      JaxRuntimeError: such copies are disallowed.
    """
    if getattr(_asked, "embedded", False):
        return
    asked = level(way)
    if asked == "allow" or (getattr(_asked, "explicitly", False) and not asked.endswith("_explicit")):
        return
    what = f"{way.replace('_', '-')} transfer: aval={aval!r}"
    for name, place in zip(("sharding", "dst_sharding")[-len(places) :], places, strict=True):
        what += f", {name}={place!r}"
    if asked.startswith("log"):
        _logger.warning("%s", what)
        return
    raise PolyaxRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {what}. Copy it with polyax.device_put or polyax.device_get, or set "
        f"transfer_guard_{way} to 'allow'."
    )


def _note(name: str) -> None:
    if name.startswith("transfer_guard"):
        on[:] = [True]


config.on_update(_note)
if any(config.get(name) for name in ("transfer_guard", *(f"transfer_guard_{way}" for way in WAYS))):
    on.append(True)
