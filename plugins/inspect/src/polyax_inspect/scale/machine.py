"""A machine, as far as predictions look at it: how fast a device computes, and what links carry."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp

UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Connection:
    """What connects neighbours along an axis of a mesh."""

    bandwidth: float
    """Bytes a second, each way."""
    latency: float
    """Seconds until the first byte is there."""


@dataclass(frozen=True)
class Machine:
    """Devices that are all alike, and their links."""

    flops: float
    """Scalar operations a second, of one device."""
    bandwidth: float
    """Bytes a second between a device and its memory."""
    launch: float = 0.0
    """Seconds that each step of a program takes, whatever it does."""
    link: Connection = Connection(25e9, 2e-6)
    """Along axes that ``links`` doesn't name."""
    links: Mapping[str, Connection] = field(default_factory=dict)
    shared: bool = False
    """All devices are one processor and its memory, as virtual devices and processes of one machine are."""

    def along(self, axis: Any) -> Connection:
        return self.links.get(str(axis), self.link)


def quantity(text: str) -> float:
    """A number with a unit: operations, bytes, either of them a second.

    >>> quantity("1.5T"), quantity("25GB/s")
    (1500000000000.0, 25000000000.0)

    Raises:
      ValueError: it isn't one.
    """
    found = re.fullmatch(r"([\d.]+(?:e[+-]?\d+)?)\s*([kMGTP]?)(?:B|flops)?(?:/s)?", text.strip())
    if found is None:
        raise ValueError(f"expected a number such as 1.5T or 25GB/s, got {text!r}")
    return float(found.group(1)) * UNITS[found.group(2)]


def link(text: str) -> tuple[str | None, Connection]:
    """``[AXIS=]BANDWIDTH[:LATENCY]``: the axis, if one is named, and its link.

    >>> link("data=25GB/s:2us")
    ('data', Connection(bandwidth=25000000000.0, latency=2e-06))

    Raises:
      ValueError: the text has another form.
    """
    axis, _, rest = text.rpartition("=")
    bandwidth, _, latency = rest.partition(":")
    found = re.fullmatch(r"([\d.]+)(s|ms|us|ns)", latency or "0s")
    if found is None:
        raise ValueError(f"expected a time such as 2us after the colon, got {text!r}")
    return axis or None, Connection(quantity(bandwidth), float(found.group(1)) * TIMES[found.group(2)])


# --- measured here ----------------------------------------------------------------------------------------------------


def measured() -> Machine:
    """The default device of this machine: its products, its memory and its launches are timed."""
    n = 1024
    x, long, short = jnp.ones((n, n), np.float32), jnp.ones(1 << 24, np.float32), jnp.ones(8, np.float32)
    launch = _seconds(lambda x: x + 1, short)
    product = _seconds(lambda x: x @ x, x)
    triad = _seconds(lambda x: x * 2 + 1, long)
    return Machine(2 * n**3 / product, 2 * long.nbytes / triad, launch)


def _seconds(fun: Callable[[Any], Any], x: Any) -> float:
    """The shortest of several runs."""
    jitted = polyax.jit(fun)
    jitted(x).block_until_ready()
    times: list[float] = []
    for _ in range(10):
        start = time.perf_counter()
        jitted(x).block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)
