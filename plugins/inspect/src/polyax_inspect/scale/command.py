"""``python -m polyax scale FILE:FUNCTION --mesh 1x256``: a table of predictions, a row for each size of the mesh."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyax.backend import UsageError
from polyax.commands import function
from polyax.runtime.contract.text import columns, size, width
from polyax.sharding import AbstractMesh
from polyax_inspect.scale.machine import Machine, link, measured, quantity
from polyax_inspect.scale.prediction import Prediction, predict

NAMES = ("data", "model", "pipe")
HEAD = ("devices", "mesh", "compute", "exchange", "step", "efficiency", "sent by each device")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE:FUNCTION", help="from a mesh to (function, arguments with shardings)")
    parser.add_argument("--mesh", required=True, metavar="1x256", help="the size of each axis, of the largest mesh")
    parser.add_argument("--axes", metavar="A,B", help=f"their names; by default the first of {','.join(NAMES)}")
    parser.add_argument(
        "--link", action="append", default=[], metavar="[AXIS=]25GB/s:2us", help="bandwidth and latency"
    )
    parser.add_argument("--flops", metavar="100T", help="of a device; measured on the one here if left out")
    parser.add_argument("--bandwidth", metavar="2TB/s", help="of its memory; measured if left out")
    parser.add_argument("--shared", action="store_true", help="all devices are one processor, as virtual ones are")


def run(options: argparse.Namespace) -> int:
    """Prints the table."""
    mesh = _mesh(options.mesh, options.axes)
    machine = replace(_machine(options.flops, options.bandwidth, options.link), shared=options.shared)
    setup = function(options.function)
    print(f"each device: {machine.flops:.3g} operations/s, {machine.bandwidth:.3g} bytes/s of memory\n")
    rows = [_row(predict(setup, m, machine)) for m in growing(mesh)]
    print("\n".join(columns([HEAD, *rows], width(), right=(0, 2, 3, 4, 5))))
    return 0


def _mesh(text: str, names: str | None) -> AbstractMesh:
    try:
        sizes = [int(n) for n in text.split("x")]
    except ValueError:
        raise UsageError(f"--mesh: expected sizes such as 1x256, got {text!r}") from None
    axes = names.split(",") if names else NAMES[: len(sizes)]
    if len(axes) != len(sizes):
        raise UsageError(f"--axes: {len(sizes)} axes need as many names, got {', '.join(axes)}")
    return AbstractMesh(sizes, tuple(axes))


def _machine(flops: str | None, bandwidth: str | None, links: Sequence[str]) -> Machine:
    try:
        found = dict(link(text) for text in links)
        named = {axis: way for axis, way in found.items() if axis is not None}
        here = Machine(0, 0) if flops and bandwidth else measured()
        return replace(
            here,
            flops=quantity(flops) if flops else here.flops,
            bandwidth=quantity(bandwidth) if bandwidth else here.bandwidth,
            link=found.get(None, here.link),
            links=named,
        )
    except ValueError as e:
        raise UsageError(str(e)) from None


def growing(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    """Meshes from one device up to ``mesh``, the last axis that has several growing first.

    >>> [m.axis_sizes for m in growing(AbstractMesh((2, 4), ("x", "y")))]
    [(1, 1), (1, 2), (1, 4), (2, 4)]
    """
    sizes = [1] * len(mesh.axis_sizes)
    yield mesh.update(axis_sizes=sizes)
    for n, whole in reversed(list(enumerate(mesh.axis_sizes))):
        while sizes[n] < whole:
            sizes[n] = min(2 * sizes[n], whole)
            yield mesh.update(axis_sizes=sizes)


def _row(p: Prediction) -> tuple[str, ...]:
    exchanged = ", ".join(f"{axis}: {size(round(n))}" for axis, n in p.sent.items() if n) or "nothing"
    shape = "x".join(map(str, p.mesh.axis_sizes))
    times = [f"{1e3 * t:.3f} ms" for t in (p.compute, p.communication, p.step)]
    return (str(p.mesh.size), shape, *times, f"{p.efficiency:.1%}", exchanged)
