"""Running one program on several devices: cutting arguments, launching everywhere, putting results together.

What can be known without the arguments is worked out once for each program. Knows no collective.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from polyax.control.spmd import Axes, Spec, on_one_device, shard_map_p, whole
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import def_rule
from polyax.runtime.arrays import devices as places
from polyax.runtime.arrays.array import Array
from polyax.runtime.arrays.sharded import ShardedArray, blocks
from polyax.runtime.arrays.sharding import DeviceSharding, Index
from polyax.runtime.contract import effects
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.collectives import Group, entered
from polyax.runtime.contract.queue import INLINE_COST, HostQueue, Task, serving
from polyax.runtime.running import nonfinite
from polyax.runtime.running.dispatch import Program, compile_program
from polyax.transforms.memo import kept
from polyax.transforms.vmap import axes_of

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
    if serving():  # a callback: the devices may wait for it, so it can't wait for them
        return _run_here(args, on_one_device(jaxpr, axes, in_specs, out_specs), name)
    chosen = devices if devices is not None else tuple(places.local_devices())
    key = Launcher, axes, in_specs, out_specs, chosen, config.trace_key()
    launcher = kept(jaxpr, key, lambda: Launcher(jaxpr, axes, in_specs, out_specs, chosen, name))
    return launcher(args)


def _run_here(args: Sequence[Any], program: ClosedJaxpr, name: str) -> list[Any]:
    return compile_program(program, places.default_device_now(), name).run([*program.consts, *args])


class Launcher:
    """A program, ready to run on its devices; called with whole arguments."""

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        axes: Axes,
        in_specs: Sequence[Spec],
        out_specs: Sequence[Spec],
        devices: Sequence[Device],
        name: str,
    ) -> None:
        group = Group(axes)
        self.axes = axes
        self.devices = _chosen(group.size, devices, name)
        _check_effects(jaxpr, group.size, name)
        self.name = name
        self.programs = [compile_program(jaxpr, d, name) for d in self.devices]
        self.blocks = jaxpr.in_avals
        wholes = [whole(a, s, axes) for a, s in zip(jaxpr.in_avals, in_specs, strict=True)]
        self.inputs = [self._layout(a, s, group) for a, s in zip(wholes, in_specs, strict=True)]
        self.out_avals = [whole(a, s, axes) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]
        self.outputs = [self._layout(a, s, group) for a, s in zip(self.out_avals, out_specs, strict=True)]
        self.alone = not (axes_of(jaxpr) or jaxpr.effects)  # nobody waits for another one
        self.watched = bool(jaxpr.effects)
        self.searched = on_one_device(jaxpr, axes, in_specs, out_specs) if self.programs[0].checked else None

    def _layout(self, aval: ShapedArray, spec: Spec, group: Group) -> DeviceSharding:
        return DeviceSharding(self.devices, tuple(_index(aval, spec, group, n) for n in range(group.size)))

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        parts = [blocks(x, a, where) for x, a, where in zip(args, self.blocks, self.inputs, strict=True)]
        members = [[p[n] for p in parts] for n in range(len(self.devices))]
        results, tokens = self._launch(members)
        if self.watched:
            effects.started(self.name, tokens)
        outs = [
            ShardedArray(aval, [r[n] for r in results], where)
            for n, (aval, where) in enumerate(zip(self.out_avals, self.outputs, strict=True))
        ]
        if self.searched is not None:
            nonfinite.check(outs, self.searched, [*self.searched.consts, *args], self.name)
        return outs

    def _launch(self, members: Sequence[Sequence[Array]]) -> tuple[list[list[Array]], list[Any]]:
        group = self.devices[0].backend.collectives(self.devices, self.axes)
        with _launching:
            try:
                pairs = self._start_all(group, members)
            except BaseException as e:
                group.abort(e)  # those that were started must not wait for the others
                raise
        return [outs for outs, _ in pairs], [token for _, token in pairs if token is not None]

    def _start_all(self, group: Group, members: Sequence[Sequence[Array]]) -> list[tuple[list[Array], Any]]:
        if self.alone:
            return [_start(p, xs, p.device.queue) for p, xs in zip(self.programs, members, strict=True)]
        jobs = list(zip(range(len(members)), self.programs, members, strict=True))
        if all(isinstance(d.queue, HostQueue) for d in self.devices):
            return [_start(p, xs, _MemberQueue(p.device.queue, group, n)) for n, p, xs in jobs]
        with ThreadPoolExecutor(len(jobs)) as pool:  # collectives of these devices block whoever launches
            return list(pool.map(lambda job: _enter(group, *job), jobs))


def _enter(group: Group, rank: int, program: Program, args: Sequence[Array]) -> tuple[list[Array], Any]:
    with entered(group, rank):
        return _start(program, args, program.device.queue)


def _start(program: Program, args: Sequence[Array], queue: Any) -> tuple[list[Array], Any]:
    outs, token = program.launch([x.alive() for x in args], queue)
    return [Array(a, b, program.device) for a, b in zip(program.out_avals, outs, strict=True)], token


class _MemberQueue:
    """The queue of a device on which a member of a group runs, always on the queue's own thread: it may block."""

    def __init__(self, queue: HostQueue, group: Group, rank: int) -> None:
        self.queue = queue
        self.group = group
        self.rank = rank

    def run(self, work: Callable[[], None], inputs: Sequence[Any], cost: int) -> Task | None:
        def as_member() -> None:
            with entered(self.group, self.rank):
                for b in inputs:  # an operand that failed concerns the other members as well
                    b.wait()
                work()

        return self.queue.run(as_member, (), max(cost, INLINE_COST + 1))


def _chosen(count: int, devices: Sequence[Device], name: str) -> tuple[Device, ...]:
    if len(devices) < count:
        platform = devices[0].platform if devices else "none"
        raise ValueError(
            f"{name}: compiling computation that requires {count} logical devices, but only {len(devices)} devices are "
            f"available on {platform}. Map over an axis of at most {len(devices)}, or, on virtual devices of the host, "
            f"set POLYAX_NUM_CPU_DEVICES={count} before the first computation."
        )
    chosen = tuple(devices[:count])
    if len(set(chosen)) < count:
        raise ValueError(f"{name}: each device can have one part, got devices={list(map(str, chosen))}")
    return chosen


def _check_effects(jaxpr: ClosedJaxpr, count: int, name: str) -> None:
    ordered = [e for e in jaxpr.effects if e.ordered]
    if ordered and count > 1:
        raise ValueError(
            f"{name}: The following ordered effects are not supported for more than 1 device: {ordered}. Call with "
            "ordered=False."
        )


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
