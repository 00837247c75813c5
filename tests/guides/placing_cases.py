"""Where data lies: meshes over some of the devices, commitment, moves between meshes, arrays made of parts."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.sharding import Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P

DEVICES = jax.devices()
if len(DEVICES) < 8:
    pytest.skip("run by test_guides.py, with eight devices", allow_module_level=True)
LINE = jax.make_mesh((8,), ("n",))
LEFT, RIGHT = (jax.make_mesh((4,), ("n",), devices=half) for half in (DEVICES[:4], DEVICES[4:]))
X = np.arange(16, dtype=np.float32)


def held(x):
    """What each device has, in the order of the devices."""
    return [np.asarray(s.data).tolist() for s in sorted(x.addressable_shards, key=lambda s: s.device.id)]


def test_who_puts_nothing_anywhere_is_not_committed():
    x = jnp.arange(3.0)
    assert not x.committed and not jax.device_put(x).committed
    assert str(x.sharding) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
    assert x.devices() == {DEVICES[0]} and repr(DEVICES[1]) == "CpuDevice(id=1)" and str(DEVICES[1]) == "cpu:1"


def test_computations_run_where_committed_data_is():
    x = jax.device_put(X, NamedSharding(RIGHT, P("n")))
    y = x * 2 + jnp.ones(16)
    assert x.committed and x.sharding.mesh == RIGHT and y.devices() == set(DEVICES[4:])
    np.testing.assert_array_equal(y, X * 2 + 1)


def test_data_on_different_meshes_does_not_meet():
    x, y = (jax.device_put(X, NamedSharding(m, P("n"))) for m in (LEFT, RIGHT))
    with pytest.raises(
        ValueError, match=r"argument x of add with shape float32\[16@n\] and with device ids \[0, 1, 2, 3]"
    ):
        x + y
    with pytest.raises(
        ValueError, match=r"argument v of f .* device ids \[0, 1, 2, 3] .* inside jit with device ids \[4,"
    ):

        @jax.jit
        def f(v):
            return jax.device_put(v, NamedSharding(RIGHT, P("n")))

        f(x)


def test_moves_between_meshes_and_orders_of_devices():
    x = jax.device_put(X, NamedSharding(LEFT, P("n")))
    y = jax.device_put(x, NamedSharding(RIGHT, P("n")))
    assert held(x) == held(y) == X.reshape(4, 4).tolist() and y.sharding.mesh == RIGHT
    back = jax.make_mesh((8,), ("n",), devices=DEVICES[::-1])
    z = jax.device_put(jax.device_put(X, NamedSharding(LINE, P("n"))), NamedSharding(back, P("n")))
    assert held(z) == X.reshape(8, 2)[::-1].tolist()
    np.testing.assert_array_equal(z, X)


def test_stages_on_meshes_of_their_own():
    stages = [jax.make_mesh((2,), ("n",), devices=DEVICES[2 * i : 2 * i + 2]) for i in range(4)]
    step = jax.jit(lambda x: jnp.cos(x) + 1)
    results, expected = [], []
    for k in range(3):
        batch = value = np.full((4, 4), k, np.float32)
        for mesh in stages:
            batch = step(jax.device_put(batch, NamedSharding(mesh, P("n"))))
            value = np.cos(value) + 1
        results.append(batch)
        expected.append(value)
    assert all(r.sharding.mesh == stages[-1] for r in results)
    np.testing.assert_allclose(results, expected, 1e-5)


def test_a_batch_made_of_one_array_for_each_device():
    sharding = NamedSharding(LINE, P("n"))
    pieces = [np.full((2, 3), d, np.float32) for d in range(8)]
    placed = [jax.device_put(p, d) for p, d in zip(pieces, DEVICES, strict=True)]
    whole = jax.make_array_from_single_device_arrays((16, 3), sharding, placed[::-1])
    np.testing.assert_array_equal(whole, np.concatenate(pieces))
    with pytest.raises(ValueError, match=r"shard shape \(1, 3\) doesn't match the single device array shape \(2, 3\)"):
        jax.make_array_from_single_device_arrays((8, 3), sharding, placed)


def test_a_batch_for_replicas_of_several_devices():
    mesh = Mesh(np.array(DEVICES).reshape(4, 2), ["replica", "inside"])
    asked = []

    def rows(index):
        asked.append(index)
        return X.reshape(8, 2)[index]

    whole = jax.make_array_from_callback((8, 2), NamedSharding(mesh, P("replica")), rows)
    assert len(asked) == 4 and held(whole)[2] == held(whole)[3] == X.reshape(8, 2)[2:4].tolist()
    with jax.set_mesh(LINE):
        local = jax.make_array_from_process_local_data(P("n"), X)
    assert held(local) == X.reshape(8, 2).tolist() and local.sharding == NamedSharding(LINE, P("n"))


def test_pmap_and_what_takes_its_place():
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    stacked = jax.pmap(lambda v: v * 2)(x)
    assert stacked.sharding.spec == P("_internal_pmap_axis_name") or stacked.addressable_shards[0].data.shape == (1, 3)
    total = jax.pmap(lambda v: jax.lax.psum(v, "i"), "i", out_axes=None)(x)
    mesh = Mesh(np.array(DEVICES), "i")
    mapped = jax.shard_map(lambda v: jax.lax.psum(v[0], "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    for got in (total, jax.jit(mapped)(x)):
        assert got.is_fully_replicated
        np.testing.assert_array_equal(got, x.sum(0))
    with jax.set_mesh(mesh):
        double = jax.smap(lambda v: v * 2, in_axes=0, out_axes=0, axis_name="i")
        np.testing.assert_array_equal(double(x), stacked)
    with pytest.raises(
        ValueError, match=r"argument a of apart with shape float32\[8] and with device ids \[0] .*\[0, 1]"
    ):

        @jax.jit
        def apart(a, b):
            return a + b

        apart(
            jax.device_put(np.ones(8, "float32"), DEVICES[0]),
            jax.device_put(X[:8], NamedSharding(Mesh(DEVICES[:2], "i"), P("i"))),
        )
