"""Times what several processes do together beside MPI's own: ``mpiexec -n 4 python benchmarks/processes.py``.

Two comparisons, each taken by turns in one run: an all-reduce of 64 MB, and a data-parallel step of the network of
examples/digits.py beside a loop that calls mpi4py on NumPy arrays between two jitted functions, and beside a process
that trains for itself (compute). In brackets: as multiples of MPI's, and of the loop's.
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

LAYERS = 64, 512, 512, 10
BATCH = 128
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
    mapped, own = polyax.pmap(lambda x: lax.psum(x, "i"), "i"), polyax.pmap(lambda x: x * 1)
    x, row = polyax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine), own(mine[None])
    return by_turns(
        12,
        mpi=lambda: COMM.Allreduce(mine, result),
        shard_map=lambda: total(x).block_until_ready(),
        pmap=lambda: mapped(row).block_until_ready(),
    )


# --- the network of examples/digits.py


def predict(params: Any, image: Any) -> Any:
    *hidden, (w_last, b_last) = params
    for w, b in hidden:
        image = polyax.nn.relu(jnp.dot(w, image) + b)
    logits = jnp.dot(w_last, image) + b_last
    return logits - polyax.nn.logsumexp(logits)


def loss(params: Any, images: Any, targets: Any) -> Any:
    return -jnp.mean(polyax.vmap(predict, in_axes=(None, 0))(params, images) * targets)


def updated(w: Any, g: Any) -> Any:
    return polyax.tree.map(lambda p, d: p - 0.5 * d, w, g)


def step(w: Any, x: Any, y: Any) -> Any:
    return updated(w, polyax.grad(loss)(w, x, y))


def mapped_step(w: Any, x: Any, y: Any) -> Any:
    return updated(w, lax.pmean(polyax.grad(loss)(w, x, y), "i"))


class Training:
    """``step``, again and again, on weights that lie as it wants them."""

    def __init__(self, step: Callable[..., Any], weights: Any, *batch: Any) -> None:
        self.step, self.weights, self.batch = step, weights, batch

    def __call__(self) -> None:
        self.weights = self.step(self.weights, *self.batch)
        polyax.block_until_ready(self.weights)


def training() -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    sizes = list(itertools.pairwise(LAYERS))
    first = [(rng.normal(0, 0.1, (n, m)).astype(np.float32), np.zeros(n, np.float32)) for m, n in sizes]
    x, y = (rng.normal(0, 1, (BATCH, n)).astype(np.float32) for n in (LAYERS[0], LAYERS[-1]))
    mesh = Mesh(np.array(polyax.devices()), ("i",))
    rows, own = NamedSharding(mesh, P("i")), polyax.pmap(lambda x: x * 1)
    cut = polyax.make_array_from_process_local_data((rows, rows), (x, y))
    row = polyax.tree.map(lambda p: own(p[None]), (first, x, y))
    here = polyax.device_put((x, y))
    return by_turns(
        32,
        compute=Training(polyax.jit(step), polyax.device_put(first), *here),
        by_hand=Training(by_hand(), polyax.device_put(first), *here),
        pmap=Training(polyax.pmap(mapped_step, "i"), *row),
        jit=Training(polyax.jit(step), polyax.device_put(first, NamedSharding(mesh, P())), *cut),
    )


def by_hand() -> Callable[..., Any]:
    """A step that calls MPI between two programs."""
    gradient, update = polyax.jit(polyax.grad(loss)), polyax.jit(updated)

    def run(w: Any, x: Any, y: Any) -> Any:
        leaves, tree = polyax.tree.flatten(gradient(w, x, y))
        sums = [np.empty(g.shape, g.dtype) for g in leaves]
        for g, total in zip(leaves, sums, strict=True):
            COMM.Allreduce(np.asarray(g), total)
        return update(w, polyax.tree.unflatten(tree, [s / np.float32(COMM.size) for s in sums]))

    return run


def show(what: str, times: dict[str, list[float]], beside: str) -> None:
    middle = {name: statistics.median(found) for name, found in times.items()}
    if COMM.rank == 0:
        listed = ", ".join(f"{name} {1e3 * t:.1f} ms ({t / middle[beside]:.2f})" for name, t in middle.items())
        print(f"{what}, {COMM.size} processes: {listed}")


if __name__ == "__main__":
    polyax.distributed.initialize()
    show("all-reduce of 64 MB", all_reduce(), "mpi")
    show("data-parallel step", training(), "by_hand")
