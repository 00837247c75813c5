"""Arrays in parts on several devices, programs that are cut for them, and programs of one part each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import P, lax
from polyax.sharding import AxisType, Mesh, NamedSharding

W = np.arange(12, dtype=np.float32).reshape(4, 3) / 5


@pytest.fixture
def line(platform: str) -> Mesh:
    """All devices of the platform in one row."""
    found = polyax.devices(platform)
    if len(found) < 2:
        pytest.skip(f"{platform} has one device")
    return Mesh(np.array(found), ("i",), axis_types=(AxisType.Auto,))


def rows(line: Mesh) -> np.ndarray:
    return np.arange(line.size * 8, dtype=np.float32).reshape(-1, 4) / 9


def test_each_device_has_its_part(line: Mesh) -> None:
    x = rows(line)
    there = polyax.device_put(x, NamedSharding(line, P("i")))
    assert [s.device for s in there.addressable_shards] == list(line.devices.flat)
    for shard in there.addressable_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(shard.data, x[shard.index])
    np.testing.assert_array_equal(there, x)
    whole = polyax.device_put(there, NamedSharding(line, P()))
    assert whole.is_fully_replicated
    for shard in whole.addressable_shards:
        np.testing.assert_array_equal(shard.data, x)


def test_programs_are_cut(line: Mesh) -> None:
    def f(x: Any, w: Any) -> Any:
        y = jnp.tanh(x @ w)
        return y - y.mean(0), jnp.sort(y, 0)[0], jnp.cumsum(y, 0)

    x = rows(line)
    want = polyax.jit(f)(x, W)
    got = polyax.jit(f)(polyax.device_put(x, NamedSharding(line, P("i"))), W)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


def test_gradients_are_summed_over_devices(line: Mesh) -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    x = rows(line)
    want = polyax.grad(loss)(W, x)
    got = polyax.jit(polyax.grad(loss))(W, polyax.device_put(x, NamedSharding(line, P("i"))))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_collectives_of_shard_map(line: Mesh) -> None:
    n, x = line.size, rows(line)
    mapped = lambda f, outs: polyax.jit(polyax.shard_map(f, mesh=line, in_specs=P("i"), out_specs=outs))
    round_ = [(k, (k + 1) % n) for k in range(n)]
    blocks = x.reshape(n, 2, 4)
    np.testing.assert_allclose(mapped(lambda v: lax.psum(v, "i"), P())(x), blocks.sum(0), rtol=1e-5)
    np.testing.assert_array_equal(mapped(lambda v: lax.pmax(v, "i"), P())(x), blocks.max(0))
    np.testing.assert_array_equal(mapped(lambda v: lax.ppermute(v, "i", round_), P("i"))(x), np.roll(x, 2, 0))
    gathered = mapped(lambda v: lax.all_gather(v, "i", tiled=True)[None], P("i"))(x)
    np.testing.assert_array_equal(gathered, np.stack([x] * n))
    places = mapped(lambda v: v * 0 + lax.axis_index("i"), P("i"))(x)
    np.testing.assert_array_equal(places, np.repeat(np.arange(n), 2)[:, None] * np.ones(4))


def test_loops_around_collectives(line: Mesh) -> None:
    def f(v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: c + lax.psum(jnp.sin(c), "i") * 0.1, v)

    n, x = line.size, rows(line)
    got = polyax.jit(polyax.shard_map(f, mesh=line, in_specs=P("i"), out_specs=P("i")))(x)
    want = x.reshape(n, 2, 4).astype(np.float64)
    for _ in range(3):
        want = want + 0.1 * np.sin(want).sum(0)
    np.testing.assert_allclose(got, want.reshape(x.shape), rtol=1e-5, atol=1e-5)


def test_arrays_go_from_device_to_device(platform: str, line: Mesh) -> None:
    x = jnp.asarray(W)
    for device in (*line.devices.flat, line.devices.flat[0]):
        x = polyax.device_put(x + 1, device)
        assert x.devices() == {device}
    np.testing.assert_allclose(x, W + line.size + 1)
