"""Arrays that lie on several devices: used where they lie, put there, and their life. Run by ``test_sharded.py``."""

from __future__ import annotations

import contextlib
import copy
import pickle
import time

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.meshes.sharding import BlockSharding
from polyax.runtime.arrays.array import Array
from support.parts import close_everywhere

N = len(polyax.devices())
X = np.arange(N * 6, dtype=np.float32).reshape(N, 2, 3) / 7

pytestmark = pytest.mark.skipif(N < 2, reason="run by test_sharded.py, with several devices")


def same(got, expected):
    close_everywhere(got, expected, 1e-5, 1e-6)


def rows():
    """An array of which each device has a row."""
    return polyax.pmap(lambda x: x * 1)(X)


def everywhere():
    """An array that each device has."""
    return polyax.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None)(X)


@contextlib.contextmanager
def counting(*names):
    """How often methods of the backend are called inside the block."""
    backend, calls = polyax.devices()[0].backend, []

    def counted(name, method):
        return lambda *args: calls.append(name) or method(*args)

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(backend, name, counted(name, getattr(backend, name)))
        yield calls


# --- used where they lie


@pytest.mark.sample
def test_one_class():
    for x in (rows(), everywhere(), jnp.ones(3)):
        assert type(x) is Array
    y = rows()
    assert y.device is y.sharding and y.committed and y.platform() == polyax.devices()[0].platform
    assert y.addressable_data(1).shape == (1, 2, 3) and y.on_device_size_in_bytes() == X.nbytes
    assert [s.replica_id for s in everywhere().addressable_shards] == list(range(N))
    assert everywhere().on_device_size_in_bytes() == X[0].nbytes * N


@pytest.mark.sample
def test_programs_put_blocks_together_without_the_host():
    y = rows().block_until_ready()
    with counting("to_host") as calls:
        outs = [polyax.jit(lambda a: a.sum(0))(y), jnp.sort(y, axis=0), polyax.jit(lambda a, b: a @ b)(y, y[0].T)]
        polyax.block_until_ready(outs)
    assert not calls
    for got, expected in zip(outs, [X.sum(0), np.sort(X, 0), X @ X[0].T], strict=True):
        same(got, expected)


def test_a_replica_is_used_as_it_is():
    y = everywhere().block_until_ready()
    with counting("to_host", "to_device", "copy") as calls:
        outs = [polyax.jit(lambda a: a + 1, device=d)(y) for d in polyax.devices()]
        polyax.block_until_ready(outs)
    assert not calls
    for out, device in zip(outs, polyax.devices(), strict=True):
        assert out.devices() == {device}
        same(out, X.sum(0) + 1)


@pytest.mark.sample
def test_elementwise_operations_stay_where_the_blocks_are():
    y = rows()
    with counting("to_host") as calls:
        outs = [y + 1, y * y, jnp.exp(y), 2 - y, y.astype(np.int32), y + X, lax.select(y < 1, y, -y)]
        polyax.block_until_ready(outs)
    assert not calls
    wanted = [X + 1, X * X, np.exp(X), 2 - X, X.astype(np.int32), 2 * X, np.where(X < 1, X, -X)]
    for got, expected in zip(outs, wanted, strict=True):
        assert got.sharding == y.sharding
        same(got, expected)
    same(polyax.pmap(lambda x: x - 1)(outs[0]), X)
    for got in (y + jnp.asarray(X), jnp.asarray(X) + y):  # cut where it lies
        assert got.sharding == y.sharding
        same(got, 2 * X)


def test_operations_with_arrays_that_lie_elsewhere():
    y, w = rows(), polyax.device_put(X, polyax.devices()[1])
    z = polyax.pmap(lambda x: x * 1, devices=polyax.devices()[::-1])(X)
    for one, other in ((y, w), (w, y), (y, z), (z, y)):
        with pytest.raises(ValueError, match=r"(?s)incompatible devices.*device ids \[.* and .*device ids \["):
            one + other
    s = polyax.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None)(np.ones(N, np.float32))
    assert (s + y).sharding == y.sharding and (s + jnp.ones(3)).shape == (3,)
    same(s * y, N * X)


def test_programs_run_on_the_devices_of_their_arguments():
    y = polyax.pmap(lambda x: x * 1, devices=polyax.devices()[1:])(X[1:])
    f = polyax.jit(lambda a, b: a + b.sum())
    ones = jnp.ones((N - 1, 2, 3))
    for out in (f(y, ones), f(ones, y)):
        assert out.devices() == set(polyax.devices()[1:])
    with pytest.raises(ValueError, match=r"(?s)incompatible devices.*device ids \[0\].*device ids \[1\]"):
        polyax.jit(lambda *xs: xs)(*(polyax.device_put(1.0, d) for d in polyax.devices()[:2]))


@pytest.mark.sample
def test_rows_are_read_from_the_parts_that_hold_them():
    y = rows().block_until_ready()
    cases = [0, N - 1, -1, (1,), (1, 0), (-1, slice(None), 2), (0, ...)]
    with counting("to_host") as calls:
        outs = [y[i] for i in cases]
        together = outs[0] + outs[1]
        polyax.block_until_ready((outs, together))
    assert not calls
    for out, i in zip(outs, cases, strict=True):
        assert out.devices() == set(polyax.devices()) and out.is_fully_replicated and out.committed
        same(out, X[i])
    same(together, X[0] + X[-1])
    same(y * y[1], X * X[1])
    for i in (slice(1, 3), (slice(None), 1), np.array([1, 0]), ..., (None, 1), True, N + 5):
        same(y[i], jnp.asarray(X)[i])
    same(list(y)[1], X[1])


def test_blocks_along_other_axes():
    y = polyax.pmap(lambda x: x * 1, out_axes=1)(X)
    same(y[1], X[:, 1])
    same(polyax.jit(lambda a: a * 2)(y), 2 * np.moveaxis(X, 0, 1))


def test_a_grid_of_blocks():
    x = np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    cuts = [(slice(3 * i, 3 * i + 3), slice(4 * j, 4 * j + 4)) for j in range(2) for i in range(2)]
    grid = BlockSharding(tuple(polyax.devices()[:4]), tuple(cuts))
    y = polyax.device_put(x, grid)
    assert [s.data.tolist() for s in y.addressable_shards] == [x[i].tolist() for i in cuts]
    twice = BlockSharding(tuple(polyax.devices()[:8]), tuple(cuts) * 2)
    for z in (y, polyax.device_put(y, twice), polyax.device_put(jnp.asarray(x), twice)):
        assert np.asarray(z).tolist() == polyax.jit(lambda a: a + 0)(z).tolist() == (z * 1).tolist() == x.tolist()
    assert [s.replica_id for s in z.addressable_shards] == [0] * 4 + [1] * 4


def test_compiled_programs_take_the_arrays_they_were_compiled_for():
    y = rows()
    compiled = polyax.jit(lambda a: a + 1).lower(y).compile()
    same(compiled(y), X + 1)
    away = polyax.pmap(lambda x: x * 1, devices=polyax.devices()[1:])(X[1:])
    other = polyax.jit(lambda a: a + 1).lower(jnp.asarray(X[1:])).compile()
    with pytest.raises(ValueError, match="(?s)input shardings that disagree.*NamedSharding"):
        other(away)


# --- put there


@pytest.mark.sample
def test_device_put_in_the_same_way_as_another_array():
    y = rows()
    assert polyax.device_put(y, y.sharding) is y
    sources = [X + 1, jnp.asarray(X + 1), rows()[::-1] * 0 + X + 1, polyax.device_put(X + 1, polyax.devices()[-1])]
    for source in sources:
        z = polyax.device_put({"a": source}, y.sharding)["a"]
        assert z.sharding == y.sharding and z.committed and z.devices() == set(polyax.devices())
        same(z, X + 1)
        same(polyax.pmap(lambda x: x * 2)(z), 2 * X + 2)


def test_device_put_to_all():
    copies = everywhere().sharding
    x = jnp.asarray(X[0])
    y = polyax.device_put(x, copies)
    assert y.is_fully_replicated and not x.is_deleted()
    y.delete()
    same(x, X[0])  # it was no part of y
    z = polyax.device_put(rows(), BlockSharding(copies.device_list, ((slice(None),) * 3,) * N))
    for shard in z.addressable_shards:
        same(shard.data, X)


def test_device_put_to_one():
    y, last = rows(), polyax.devices()[-1]
    with counting("to_host") as calls:
        outs = [polyax.device_put(y, where) for where in (last, jnp.asarray(polyax.device_put(1, last)).sharding)]
        polyax.block_until_ready(outs)
    assert not calls
    for z in outs:
        assert z.devices() == {last} and z.committed
        same(z, X)
    assert polyax.device_put(y) is y
    one = BlockSharding((last,), ((slice(None),) * 3,))
    assert polyax.device_put(y, one).device is last


def test_donated_arrays_are_deleted():
    x, y = jnp.asarray(X), rows()
    z = polyax.device_put(x, y.sharding, donate=True)
    assert not x.is_deleted()  # it lies in the host's memory
    same(z, X)
    w = everywhere()
    part = w.addressable_data(0)
    out = polyax.jit(lambda a: a + 1, donate_argnums=0)(w)
    assert w.is_deleted() and part.is_deleted()
    same(out, X.sum(0) + 1)


def test_what_can_not_be_put():
    layout = rows().sharding
    with pytest.raises(ValueError, match="should evenly divide the shape"):
        polyax.device_put(np.ones((N + 1, 2, 3)), layout)
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        polyax.device_put("x", layout)
    with pytest.raises(NotImplementedError, match="inside a transformed function"):
        polyax.jit(lambda x: polyax.device_put(x, polyax.sharding.SingleDeviceSharding(polyax.devices()[1])))(X)


def test_constants_of_traced_functions():
    y = rows()
    same(polyax.jit(lambda x: x + y)(X), 2 * X)
    same(polyax.jit(lambda x: x + polyax.device_put(y, polyax.devices()[0]))(X), 2 * X)
    same(polyax.vmap(lambda x: x + y.sum(0))(X), X + X.sum(0))


# --- their life


@pytest.mark.sample
def test_copies_and_pickles():
    y = rows()
    for z in (copy.copy(y), copy.deepcopy(y)):
        assert z is not y and z.sharding == y.sharding and repr(z) == repr(y)
    z = pickle.loads(pickle.dumps(y))
    assert z.devices() == {polyax.devices()[0]} and repr(z) == repr(y) == repr(jnp.asarray(X))
    assert f"{y}" == f"{jnp.asarray(X)}" and y.tolist() == X.tolist()
    got = polyax.device_get({"a": y})["a"]
    assert isinstance(got, np.ndarray) and not got.flags.writeable
    same(got, X)


@pytest.mark.sample
def test_deletion():
    y = rows()
    first, part = y.addressable_data(0), y.addressable_data(1)
    assert not y.is_deleted()
    part.delete()  # without it the array is nothing
    assert y.is_deleted() and not first.is_deleted()
    uses = (
        np.asarray,
        repr,
        copy.copy,
        polyax.block_until_ready,
        lambda x: x.is_ready(),
        lambda x: x[1],
        lambda x: x + x,
    )
    for use in uses:
        with pytest.raises(RuntimeError, match="deleted"):
            use(y)
    z = rows()
    parts = [s.data for s in z.addressable_shards]
    z.delete()
    assert z.is_deleted() and all(p.is_deleted() for p in parts)


def test_live_arrays_are_listed_once():
    polyax.clear_caches()
    before = [x for x in polyax.live_arrays() if x.shape in ((N, 2, 3), (1, 2, 3))]
    y = rows()
    after = [x for x in polyax.live_arrays() if x.shape in ((N, 2, 3), (1, 2, 3))]
    assert [x is y for x in after if all(x is not b for b in before)] == [True]


# --- errors


def test_nans_are_found_on_all_devices():
    x = np.ones((N, 2), np.float32)
    x[-1] = -1
    with polyax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="encountered in log"):
            polyax.pmap(lambda v: jnp.log(v) * np.float32([1, 2]) + 1)(x)
        with pytest.raises(FloatingPointError, match="encountered in log"):
            polyax.jit(lambda v: jnp.log(v) * 2 + 1)(polyax.device_put(x, rows().sharding))
        y = polyax.pmap(lambda v: v * 1)(x)
        with pytest.raises(FloatingPointError, match="log"):
            jnp.log(y)


def test_effects_on_all_devices_are_waited_for():
    seen = []

    def late(n):
        time.sleep(0.02)
        seen.append(int(n))

    polyax.pmap(lambda x: polyax.debug.callback(late, x))(np.arange(N))
    polyax.effects_barrier()
    assert sorted(seen) == list(range(N))
