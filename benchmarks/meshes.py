"""Programs on the devices of a mesh, for any module of JAX's shape: ``CASES[name](module) -> function, arguments``.

Run beside another module in turns, each with eight virtual devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def _put(m: Any, x: np.ndarray, *spec: Any) -> Any:
    mesh = m.sharding.Mesh(np.array(m.devices()), ("i",))
    return m.device_put(x, m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec(*spec)))


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _elementwise(m: Any, rows: int) -> Case:
    f = m.jit(lambda x: m.numpy.sin(x) * 2 + m.numpy.tanh(x))
    return f, (_put(m, _random(rows, 128), "i"),)


def elementwise_small(m: Any) -> Case:
    return _elementwise(m, 64)


def elementwise_large(m: Any) -> Case:
    return _elementwise(m, 16384)


def product(m: Any) -> Case:
    """Rows of one factor are cut: nothing is exchanged."""
    return m.jit(lambda x, w: x @ w), (_put(m, _random(1024, 512), "i"), _put(m, _random(512, 512)))


def product_summed(m: Any) -> Case:
    """What is summed over is cut: the partial products are added up."""
    return m.jit(lambda x, w: x @ w), (_put(m, _random(512, 1024), None, "i"), _put(m, _random(1024, 256), "i"))


def mean(m: Any) -> Case:
    return m.jit(lambda x: (x - x.mean(0)) / x.std(0)), (_put(m, _random(4096, 64), "i"),)


def step(m: Any) -> Case:
    """Data-parallel training: examples are cut, parameters are everywhere."""
    jnp = m.numpy

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, w2 = params
        return ((jnp.tanh(x @ w1) @ w2 - y) ** 2).mean()

    @m.jit
    def train(params: Any, x: Any, y: Any) -> Any:
        return m.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, m.grad(loss)(params, x, y))

    params = (_put(m, _random(256, 256) / 16), _put(m, _random(256, 16) / 16))
    return train, (params, _put(m, _random(1024, 256), "i"), _put(m, _random(1024, 16), "i"))


def _turns(m: Any, body: Callable[[Any], Any]) -> Case:
    """A thousand turns of a loop in each of which the devices meet."""
    spec = m.sharding.PartitionSpec("i")
    x = _put(m, _random(8, 16), "i")

    def loop(x: Any) -> Any:
        return m.lax.scan(lambda c, _: (body(c), None), x, None, length=1000)[0]

    return m.jit(m.shard_map(loop, mesh=x.sharding.mesh, in_specs=spec, out_specs=spec)), (x,)


def sums_in_a_loop(m: Any) -> Case:
    return _turns(m, lambda c: c * 0.5 + m.lax.psum(c, "i") * 0.01)


def shifts_in_a_loop(m: Any) -> Case:
    return _turns(m, lambda c: m.lax.ppermute(c, "i", [(n, (n + 1) % 8) for n in range(8)]) * 0.9)


CASES = {
    f.__name__: f
    for f in (
        elementwise_small,
        elementwise_large,
        product,
        product_summed,
        mean,
        step,
        sums_in_a_loop,
        shifts_in_a_loop,
    )
}
