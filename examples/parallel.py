"""Trains a small transformer to sort, on one device or divided among many in three ways; the losses are the same.

    POLYAX_NUM_CPU_DEVICES=8 python examples/parallel.py data tensor pipeline --compare
    mpiexec -n 4 python examples/parallel.py data

one       everything on one device
data      each device has all weights and a part of the batch
tensor    each device has some heads, and some of the hidden features, of every layer
pipeline  each device has some of the layers; parts of the batch go from one to the next
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from tqdm import tqdm

import polyax as jax
import polyax.numpy as jnp
from polyax.sharding import Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, HIDDEN = 8, 64, 8, 256
SYMBOLS, LENGTH = 16, 16
TOLERANCE = 1e-2
"""How far losses of long trainings may differ, as a part of them: rounding differs, and grows with each step."""

# --- the network and one step of training: nothing here knows of devices ---


def init(key):
    def weights(key, *shape, inputs):
        return jax.random.normal(key, shape) / math.sqrt(inputs)

    k = jax.random.split(key, 9)
    head = (WIDTH, HEADS, WIDTH // HEADS)
    return {
        "symbols": weights(k[0], SYMBOLS, WIDTH, inputs=1),
        "places": weights(k[1], LENGTH, WIDTH, inputs=1),
        "layers": {
            "query": weights(k[2], LAYERS, *head, inputs=WIDTH),
            "key": weights(k[3], LAYERS, *head, inputs=WIDTH),
            "value": weights(k[4], LAYERS, *head, inputs=WIDTH),
            "join": weights(k[5], LAYERS, *head[1:], WIDTH, inputs=WIDTH * LAYERS),
            "up": weights(k[6], LAYERS, WIDTH, HIDDEN, inputs=WIDTH),
            "down": weights(k[7], LAYERS, HIDDEN, WIDTH, inputs=HIDDEN * LAYERS),
        },
        "logits": weights(k[8], WIDTH, SYMBOLS, inputs=WIDTH),
    }


def layer(x, w):
    y = jax.nn.standardize(x)
    query, key, value = (jnp.einsum("btw,whd->bhtd", y, w[name]) for name in ("query", "key", "value"))
    looks = jax.nn.softmax(jnp.einsum("bhtd,bhsd->bhts", query, key) / math.sqrt(WIDTH // HEADS))
    x = x + jnp.einsum("bthd,hdw->btw", jnp.einsum("bhts,bhsd->bthd", looks, value), w["join"])
    return x + jax.nn.gelu(jax.nn.standardize(x) @ w["up"]) @ w["down"]


def in_turn(layers, x):
    return jax.lax.scan(lambda x, w: (layer(x, w), None), x, layers)[0]


def loss(w, batch, run):
    x = run(w["layers"], w["symbols"][batch] + w["places"])
    guess = jax.nn.log_softmax(jax.nn.standardize(x) @ w["logits"])
    return -jnp.mean(jnp.sum(guess * jax.nn.one_hot(jnp.sort(batch), SYMBOLS), -1))


def update(state, batch, run=in_turn, rate=0.1, momentum=0.9):
    w, speed = state
    value, slope = jax.value_and_grad(loss)(w, batch, run)
    speed = jax.tree.map(lambda s, g: momentum * s - rate * g, speed, slope)
    return (jax.tree.map(jnp.add, w, speed), speed), value


# --- ways to divide it: how weights and batch are cut along an axis of a mesh, and how the layers are run ---


def one(mesh, axis):
    return P(), P(), in_turn


def data(mesh, axis):
    return P(), P(axis), in_turn


def tensor(mesh, axis):
    second, third = P(None, axis), P(None, None, axis)
    layers = {"query": third, "key": third, "value": third, "join": second, "up": third, "down": second}
    return {"symbols": P(), "places": P(), "layers": layers, "logits": P()}, P(), in_turn


def pipeline(mesh, axis):
    weights = {"symbols": P(), "places": P(), "layers": P(axis), "logits": P()}
    return weights, P(), partial(in_stages, mesh, axis)


def in_stages(mesh, axis, layers, x):
    """Each device runs its layers on a part of the batch, hands that on and takes the next; the last one keeps it."""
    stages = mesh.shape[axis]

    @jax.shard_map(mesh=mesh, in_specs=(P(axis), P()), out_specs=P(axis))
    def stage(layers, parts):
        def turn(handed, part):
            done = in_turn(layers, jnp.where(jax.lax.axis_index(axis) == 0, part, handed))
            return jax.lax.ppermute(done, axis, [(n, n + 1) for n in range(stages - 1)]), done

        nothing = jax.lax.pcast(jnp.zeros_like(parts[0]), axis, to="varying")
        return jax.lax.scan(turn, nothing, parts)[1][None]

    parts = x.reshape(stages, -1, *x.shape[1:])
    while_emptying = jnp.zeros_like(parts[1:])
    return stage(layers, jnp.concatenate([parts, while_emptying]))[-1, stages - 1 :].reshape(x.shape)


WAYS = {way.__name__: way for way in (one, data, tensor, pipeline)}


def divided(way, mesh):
    """The step of training, and how its state and its batch lie on ``mesh``."""
    specs = *cut, _ = way(mesh, mesh.axis_names[-1])
    weights, batch = jax.tree.map(lambda spec: NamedSharding(mesh, spec), cut)
    return partial(update, run=specs[-1]), (weights, weights), batch


# --- training ---


def start():
    weights = init(jax.random.PRNGKey(0))
    return weights, jax.tree.map(jnp.zeros_like, weights)


@dataclass(frozen=True)
class Run:
    """What one training run leaves: a number per step."""

    name: str
    devices: int
    losses: list[float]
    seconds: list[float]

    def __str__(self) -> str:
        shown = np.unique(np.linspace(0, len(self.losses) - 1, 6).astype(int))
        losses = "  ".join(f"{n + 1}: {self.losses[n]:.4f}" for n in shown)
        step = 1e3 * np.median(self.seconds)
        return f"{self.name:8} on {self.devices} devices, {step:6.1f} ms a step; loss in step {losses}"

    def difference(self, other: Run) -> float:
        """The largest, as a part of the loss."""
        return float(np.max(np.abs(np.array(self.losses) / np.array(other.losses) - 1)))


def train(way, steps, batch_size):
    alone = way is one
    devices = jax.local_devices()[:1] if alone else jax.devices()
    step, state_at, batch_at = divided(way, Mesh(np.array(devices), ("devices",)))
    step = jax.jit(step, out_shardings=(state_at, None), donate_argnums=0)
    state, rng = jax.device_put(start(), state_at), np.random.default_rng(0)
    run = Run(way.__name__, len(devices), [], [])
    with tqdm(total=steps, desc=f"{run.name:8}", unit="step", disable=jax.process_index() > 0) as bar:
        for _ in range(steps):
            batch = jax.device_put(rng.integers(0, SYMBOLS, (batch_size, LENGTH), np.int32), batch_at)
            began = time.perf_counter()
            state, value = step(state, batch)
            run.losses.append(float(value))
            run.seconds.append(time.perf_counter() - began)
            bar.set_postfix_str(f"loss {run.losses[-1]:.4f}", refresh=False)
            bar.update()
    return run


# --- for `python -m polyax scale examples/parallel.py:data_step --mesh 1x256` ---


def data_step(mesh, batch_size=4096):
    return described(data, mesh, batch_size)


def tensor_step(mesh, batch_size=4096):
    return described(tensor, mesh, batch_size)


def described(way, mesh, batch_size):
    """The step on a mesh whose devices needn't be there, and its arguments without their values."""
    step, state_at, batch_at = divided(way, mesh)
    state = jax.eval_shape(start)
    cuts = jax.tree.broadcast(state_at, state)
    state = jax.tree.map(lambda x, at: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=at), state, cuts)
    return step, [state, jax.ShapeDtypeStruct((batch_size, LENGTH), np.int32, sharding=batch_at)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", choices=WAYS, default=["one"], metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=64, help="a multiple of the number of devices")
    parser.add_argument("--compare", action="store_true", help="train on one device too, and compare the losses")
    options = parser.parse_args()
    jax.distributed.initialize()
    names = dict.fromkeys([*["one"] * options.compare, *options.ways])
    runs = [train(WAYS[name], options.steps, options.batch) for name in names]
    largest = max(run.difference(runs[0]) for run in runs)
    if jax.process_index() == 0:  # all have the same
        print(*runs, sep="\n")
        if options.compare:
            print(f"largest difference to the losses on one device: {largest:.1e} of the loss")
    sys.exit(options.compare and largest > TOLERANCE)


if __name__ == "__main__":
    main()
