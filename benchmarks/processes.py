"""Times what several processes do together beside MPI's own: ``mpiexec -n 4 python benchmarks/processes.py``.

Two comparisons, each taken by turns in one run: an all-reduce of 64 MB, and a data-parallel step of the demo's network
beside a loop that calls mpi4py on NumPy arrays between two jitted functions.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.sharding import Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P

LAYERS = 64, 256, 256, 10
BATCH = 4096
"""Examples in each process."""
COMM = MPI.COMM_WORLD.Dup()


def by_turns(repeats: int, **functions: Callable[[], Any]) -> dict[str, list[float]]:
    """Seconds of each call; all processes begin each together."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            COMM.Barrier()
            start = time.perf_counter()
            function()
            times[name].append(COMM.allreduce(time.perf_counter() - start, MPI.MAX))
    return {name: found[2:] for name, found in times.items()}


def all_reduce(megabytes: int = 64) -> dict[str, list[float]]:
    mine = np.ones(megabytes << 18, np.float32)
    result = np.empty_like(mine)
    mesh = Mesh(np.array(polyax.devices()), ("i",))
    total = polyax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    x = polyax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine)
    return by_turns(12, mpi=lambda: COMM.Allreduce(mine, result), polyax=lambda: total(x).block_until_ready())


def network(w: Any, x: Any) -> Any:
    for a, b in w[:-1]:
        x = jnp.tanh(x @ a + b)
    return x @ w[-1][0] + w[-1][1]


def loss(w: Any, x: Any, y: Any) -> Any:
    return jnp.mean((network(w, x) - y) ** 2)


def updated(w: Any, g: Any) -> Any:
    return polyax.tree.map(lambda p, d: p - 0.1 * d, w, g)


def step(w: Any, x: Any, y: Any) -> Any:
    return updated(w, lax.pmean(polyax.grad(loss)(w, x, y), "i"))


def training() -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    sizes = list(itertools.pairwise(LAYERS))
    first = [(rng.normal(0, 0.1, s).astype(np.float32), np.zeros(s[1], np.float32)) for s in sizes]
    x, y = (rng.normal(0, 1, (BATCH, n)).astype(np.float32) for n in (LAYERS[0], LAYERS[-1]))
    mapped = polyax.pmap(step, "i")
    gradient, update = polyax.jit(polyax.grad(loss)), polyax.jit(updated)
    here, own = polyax.device_put((x, y)), polyax.pmap(lambda x: x * 1)
    ours = {"w": polyax.tree.map(lambda p: own(p[None]), first), "data": (own(x[None]), own(y[None]))}
    bare = {"w": polyax.device_put(first)}

    def in_processes() -> None:
        ours["w"] = mapped(ours["w"], *ours["data"])
        polyax.block_until_ready(ours["w"])

    def by_hand() -> None:
        leaves, tree = polyax.tree.flatten(gradient(bare["w"], *here))
        sums = [np.empty(g.shape, g.dtype) for g in leaves]
        for g, total in zip(leaves, sums, strict=True):
            COMM.Allreduce(np.asarray(g), total)
        means = [s / np.float32(COMM.size) for s in sums]
        bare["w"] = update(bare["w"], polyax.tree.unflatten(tree, means))
        polyax.block_until_ready(bare["w"])

    def alone() -> None:
        polyax.block_until_ready(update(bare["w"], gradient(bare["w"], *here)))

    return by_turns(32, compute=alone, by_hand=by_hand, polyax=in_processes)


def show(what: str, times: dict[str, list[float]], beside: str) -> None:
    middle = {name: statistics.median(found) for name, found in times.items()}
    if COMM.rank == 0:
        listed = ", ".join(f"{name} {1e3 * t:.1f} ms" for name, t in middle.items())
        print(f"{what}, {COMM.size} processes: {listed}; polyax / {beside} {middle['polyax'] / middle[beside]:.2f}")


if __name__ == "__main__":
    polyax.distributed.initialize()
    show("all-reduce of 64 MB", all_reduce(), "mpi")
    show("data-parallel step", training(), "by_hand")
