"""Running one program on several devices: cutting arguments, launching everywhere, putting results together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from polyax.control.spmd import Axes, Spec, shard_map_p, whole
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import def_rule
from polyax.runtime import devices as places
from polyax.runtime.array import Array
from polyax.runtime.backend import Device
from polyax.runtime.collectives import Group, entered
from polyax.runtime.dispatch import Program, compile_program
from polyax.runtime.queue import INLINE_COST, HostQueue, Task
from polyax.runtime.sharded import Index, ShardedArray

_launching = threading.Lock()
"""Held while a program is started on all devices: in which order two of them are started must not differ."""


@def_rule(shard_map_p, "impl")
def _run(
    *args: Any,
    jaxpr: ClosedJaxpr,
    axes: Axes,
    in_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
    devices: tuple[Device, ...] | None,
    name: str,
) -> list[Any]:
    group = Group(axes)
    chosen = _devices(group.size, devices, name)
    members = [_blocks_for(group, rank, d, args, in_specs, axes) for rank, d in enumerate(chosen)]
    programs = [compile_program(jaxpr, d, name) for d in chosen]
    results = _launch(group, programs, members)
    avals = [whole(a, s, axes) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]
    indices = [[_index(a, s, group, rank) for rank in range(group.size)] for a, s in zip(avals, out_specs, strict=True)]
    return [
        ShardedArray(aval, [outs[n] for outs in results], where)
        for n, (aval, where) in enumerate(zip(avals, indices, strict=True))
    ]


def _devices(count: int, asked: tuple[Device, ...] | None, name: str) -> list[Device]:
    found = list(asked) if asked is not None else places.local_devices()
    if len(found) < count:
        platform = found[0].platform if found else "none"
        raise ValueError(
            f"{name}: compiling computation that requires {count} logical devices, but only {len(found)} devices are "
            f"available on {platform}. Map over an axis of at most {len(found)}, or, on virtual devices of the host, "
            f"set POLYAX_NUM_CPU_DEVICES={count} before the first computation."
        )
    return found[:count]


def _blocks_for(
    group: Group, rank: int, device: Device, args: Sequence[Any], specs: Sequence[Spec], axes: Axes
) -> list[Array]:
    return [_block(x, _index(aval_of(x), s, group, rank), device) for x, s in zip(args, specs, strict=True)]


def _index(aval: ShapedArray, spec: Spec, group: Group, rank: int) -> Index:
    """Where the block of member ``rank`` is in the whole array."""
    at = group.coordinates(rank)
    sizes = dict(zip(group.names, group.sizes, strict=True))
    index = [slice(None)] * aval.ndim
    for dim, names in spec:
        n, count = 0, 1
        for name in names:
            n, count = n * sizes[name] + at[name], count * sizes[name]
        extent = aval.shape[dim] // count
        index[dim] = slice(n * extent, (n + 1) * extent)
    return tuple(index)


def _block(x: Any, index: Index, device: Device) -> Array:
    """A block of an argument on its device: without a copy if it is there."""
    if isinstance(x, ShardedArray):
        for shard, where in zip(x.shards, x.indices, strict=True):
            if where == index and shard.device is device:
                return shard
    if all(s == slice(None) for s in index):
        return places.device_put(x, device) if type(x) is Array else places.from_host(x, device, aval_of(x))
    return places.from_host(np.asarray(x)[index], device)


def _launch(group: Group, programs: Sequence[Program], members: Sequence[Sequence[Array]]) -> list[list[Any]]:
    with _launching:
        if all(isinstance(p.device.queue, HostQueue) for p in programs):
            return [_start(group, rank, p, xs) for rank, (p, xs) in enumerate(zip(programs, members, strict=True))]
        with ThreadPoolExecutor(len(programs)) as pool:  # collectives of these devices block whoever launches
            jobs = [pool.submit(_enter, group, rank, p, xs) for rank, (p, xs) in enumerate(zip(programs, members))]
            return [job.result() for job in jobs]


def _enter(group: Group, rank: int, program: Program, args: Sequence[Array]) -> list[Any]:
    with entered(group, rank):
        return program.run(args)


def _start(group: Group, rank: int, program: Program, args: Sequence[Array]) -> list[Any]:
    buffers = [x.buffer for x in args]
    outs, _ = program.launch(buffers, _MemberQueue(program.device.queue, group, rank))
    return [Array(a, b, program.device) for a, b in zip(program.out_avals, outs, strict=True)]


class _MemberQueue:
    """The queue of a device on which a member of a group runs, always on the queue's own thread: it may block."""

    def __init__(self, queue: HostQueue, group: Group, rank: int) -> None:
        self.queue = queue
        self.group = group
        self.rank = rank

    def run(self, work: Callable[[], None], inputs: Sequence[Any], cost: int) -> Task | None:
        def as_member() -> None:
            with entered(self.group, self.rank):
                work()

        return self.queue.run(as_member, inputs, max(cost, INLINE_COST + 1))
