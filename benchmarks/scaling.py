"""Steps of ``examples/parallel.py`` as the simulator predicts them, beside what they take here.

    POLYAX_NUM_CPU_DEVICES=8 python benchmarks/scaling.py
    mpiexec -n 4 python benchmarks/scaling.py

Devices of one machine share its cores: the machine is described so, and ideal is that more devices take no longer. How
fast it computes comes from the measured step on one device, links from all-reduces of two sizes on each mesh; so the
figures say how well the parts of a divided program and its exchanges are modelled.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import polyax as jax
from polyax.sharding import AbstractMesh, Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P
from polyax_inspect.scale.machine import Connection, Machine, measured
from polyax_inspect.scale.prediction import predict

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import parallel

BATCH = 64
SMALL, LARGE = 1 << 10, 1 << 18
"""Numbers in the two all-reduces."""


def seconds(call: Callable[[], Any], repeats: int = 15) -> float:
    """The median of some calls, after two that prepare."""
    times: list[float] = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def mesh_of(n: int) -> Mesh:
    return Mesh(np.array(jax.devices()[:n]), ("devices",))


def link(n: int) -> Connection:
    """What an all-reduce takes is ``log n (a + m b)`` or ``2 log n a + 2 (n - 1)/n m b``; two sizes give both."""
    mesh = mesh_of(n)
    total = jax.jit(
        jax.shard_map(lambda x: jax.lax.psum(x, "devices"), mesh=mesh, in_specs=P("devices"), out_specs=P())
    )
    xs = [jax.device_put(np.ones(n * k, np.float32), NamedSharding(mesh, P("devices"))) for k in (SMALL, LARGE)]
    short, long = (seconds(lambda x=x: total(x)) for x in xs)
    steps = (n - 1).bit_length()
    latency = short / steps
    return Connection(2 * (n - 1) / n * 4 * LARGE / max(long - 2 * short, 0.1 * long), latency)


def step_seconds(way: Any, n: int) -> float:
    step, state_at, batch_at = parallel.divided(way, mesh_of(n))
    step = jax.jit(step, out_shardings=(state_at, None))
    state = jax.device_put(parallel.start(), state_at)
    batch = jax.device_put(np.zeros((BATCH, parallel.LENGTH), np.int32), batch_at)
    return seconds(lambda: step(state, batch))


def main() -> None:
    jax.distributed.initialize()
    sizes, first = [n for n in (1, 2, 4, 8) if n <= len(jax.devices())], jax.process_index() == 0
    if jax.process_count() > 1:
        sizes = [1, jax.process_count()]  # all take part in each
    here = replace(measured(), shared=True)
    if first:
        print(f"{'way':8} devices  measured ms  predicted ms  predicted / measured")
    for way, setup in ((parallel.data, parallel.data_step), (parallel.tensor, parallel.tensor_step)):
        machine: Machine = here
        for n in sizes:
            took = alone() if n == 1 else step_seconds(way, n)
            machine = replace(machine, link=link(n)) if n > 1 else machine
            expected = predict(lambda mesh, f=setup: f(mesh, BATCH), AbstractMesh((n,), ("devices",)), machine)
            if n == 1:  # only what dividing costs is to be predicted
                scale = expected.compute / took
                machine = replace(
                    machine, flops=here.flops * scale, bandwidth=here.bandwidth * scale, launch=here.launch / scale
                )
                expected = replace(expected, compute=took)
            if first:
                step = 1e3 * expected.step
                print(f"{way.__name__:8} {n:7}  {1e3 * took:11.1f}  {step:12.1f}  {step / 1e3 / took:20.2f}")


def alone() -> float:
    """On this process's own device."""
    step = jax.jit(parallel.update)
    state, batch = parallel.start(), np.zeros((BATCH, parallel.LENGTH), np.int32)
    return seconds(lambda: step(state, batch))


if __name__ == "__main__":
    main()
