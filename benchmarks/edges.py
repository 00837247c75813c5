"""What the core adds to a launch, on a backend that does nothing: the whole of a call under ``jit``, and the checks of
what the backend gives. ``python benchmarks/edges.py [--results 1 3]``; the least of many runs, in microseconds.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import polyax
from polyax.backend import BackendSpec, CompileOptions, Device, Executable, HostArrayBackend, Report, hookimpl
from polyax.backend import registry as plugins
from polyax.runtime.contract import edge

RUNS, CALLS = 30, 5000


class NothingDone(Executable):
    """Gives the same buffers again and again."""

    def __init__(self, options: CompileOptions, outs: list[Any]) -> None:
        self.options = options
        self.outs = outs

    def launch(self, buffers: Sequence[Any], queue: Any) -> tuple[list[Any], Any]:
        return self.outs, None

    def report(self) -> Report:
        return Report("nothing")


class NothingBackend(HostArrayBackend):
    """Devices of the host that compute nothing."""

    name = "nothing"

    def __init__(self) -> None:
        super().__init__("nothing")

    def compile(self, jaxpr: Any, options: CompileOptions) -> Executable:
        made = [np.zeros(a.shape, a.dtype) for a in jaxpr.out_avals]
        return NothingDone(options, [self.to_device(x, options.device) for x in made])


class Plugin:
    """What registers it."""

    @hookimpl
    def polyax_backends(self) -> Iterator[BackendSpec]:
        yield BackendSpec("nothing", probe=lambda: None, open=NothingBackend)


def least(call: Callable[[], Any]) -> float:
    """Microseconds of one call."""
    return min(timeit.repeat(call, number=CALLS, repeat=RUNS)) / CALLS * 1e6


def measured(device: Device, count: int) -> tuple[float, float, float]:
    """A call with ``count`` results, a launch, and the same launch with its results checked."""
    x = polyax.device_put(np.ones(4, np.float32), device)
    call = polyax.jit(lambda x: [x + n for n in range(count)])
    call(x)
    compiled: Any = device.client.compile(polyax.make_jaxpr(call)(x), CompileOptions(device))
    checked = edge.launcher(compiled, device, "f", [x.aval] * count)
    checked([], None)
    return least(lambda: call(x)), least(lambda: compiled.launch([], None)), least(lambda: checked([], None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, nargs="+", default=[1, 3])
    options = parser.parse_args()
    plugins.register(Plugin(), "nothing")
    (device, *_) = polyax.devices("nothing")
    print(f"{'results':>8}{'call':>10}{'launch':>10}{'checks':>10}  microseconds")
    for count in options.results:
        call, launch, checked = measured(device, count)
        print(f"{count:>8}{call:>10.2f}{launch:>10.2f}{checked - launch:>10.2f}")


if __name__ == "__main__":
    main()
