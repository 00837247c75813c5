"""The memories of devices: what shardings say of them, and how arrays come into them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import polyax as px
import polyax.numpy as jnp
from polyax import lax, memory
from polyax.experimental.layout import Format, Layout
from polyax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding
from polyax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
HOST, DEVICE = memory.Space.Host, memory.Space.Device


@pytest.fixture(params=["cpu", "reference"], autouse=True)
def chip(request: pytest.FixtureRequest):
    (device, *_) = px.devices(request.param)
    with px.default_device(device):
        yield device


@pytest.fixture(params=["device", "mesh"])
def where(chip, request: pytest.FixtureRequest):
    """On the device alone, or on a mesh of it."""
    mesh = Mesh([chip], ("x",), (AxisType.Auto,))
    return SingleDeviceSharding(chip) if request.param == "device" else NamedSharding(mesh, P("x"))


def kinds(tree):
    return px.tree.map(lambda x: x.sharding.memory_kind, tree)


def test_memories_of_a_device(chip) -> None:
    own, pinned, unpinned = chip.addressable_memories()
    assert [repr(m) for m in (own, pinned, unpinned)] == [
        f"{chip.platform.upper()}_DEVICE_0", "PINNED_HOST_1", "UNPINNED_HOST_2",
    ]  # fmt: skip
    assert chip.default_memory() == own == chip.memory("device") != pinned and len({own, chip.default_memory()}) == 1
    assert (pinned.kind, pinned.platform, pinned.process_index) == ("pinned_host", chip.platform, 0)
    assert pinned.addressable_by_devices() == [chip] and chip.memory("pinned_host") == pinned
    with pytest.raises(ValueError, match=r"Could not find memory addressable by device \w+\..*memory kind: foo"):
        chip.memory("foo")
    assert [repr(s) for s in memory.Space] == ["MemorySpace.Device", "MemorySpace.Host", "MemorySpace.Any"]


def test_shardings_say_which(where) -> None:
    s = where
    host = s.with_memory_kind("pinned_host")
    assert s.memory_kind == "device" and host.memory_kind == "pinned_host"
    assert repr(host) == repr(s).replace("memory_kind=device", "memory_kind=pinned_host")
    assert host != s and host.with_memory_kind(None) == s == s.with_memory_kind("device")
    assert not host.is_equivalent_to(s, 1) and host.is_equivalent_to(s.with_memory_kind("pinned_host"), 1)
    with pytest.raises(ValueError, match="Got memory kind: foo"):
        s.with_memory_kind("foo")
    if isinstance(s, NamedSharding):
        assert s.update(memory_kind="pinned_host").update(spec=P()).memory_kind == "pinned_host"
    abstract = NamedSharding(AbstractMesh((1,), ("x",)), P(), memory_kind="pinned_host")
    assert pickle.loads(pickle.dumps(abstract)) == abstract and "memory_kind=pinned_host" in repr(abstract)
    with pytest.raises(ValueError, match="Got invalid memory kind: foo. Valid memory kinds are: device, pinned_host"):
        NamedSharding(AbstractMesh((1,), ("x",)), P(), memory_kind="foo")


def test_arrays_come_and_go(where) -> None:
    s = where
    x = px.device_put(X, s)
    for target in (HOST, s.with_memory_kind("pinned_host")):
        away = px.device_put(x, target)
        assert away.sharding == s.with_memory_kind("pinned_host") and kinds(x) == "device"
        np.testing.assert_array_equal(away, X)
        for part in (away.addressable_data(0), *[shard.data for shard in away.addressable_shards]):
            assert kinds(part) == "pinned_host" and part.committed
            np.testing.assert_array_equal(part, X)
        for back in (DEVICE, s):
            assert px.device_put(away, back).sharding == s
    away.delete()
    np.testing.assert_array_equal(x, X)
    assert kinds(px.device_put(X, HOST)) == "pinned_host"
    assert kinds(px.device_put(px.device_put(X, HOST), s.device_list[0])) == "device"
    with pytest.raises(ValueError, match="can't put arrays into MemorySpace.Any"):
        px.device_put(X, memory.Space.Any)


def test_programs_compute_with_them_and_put_results_there(where) -> None:
    s = where
    host = s.with_memory_kind("pinned_host")
    x, away = px.device_put(X, s), px.device_put(X, host)
    np.testing.assert_array_equal(away + 1, X + 1)
    np.testing.assert_array_equal(px.jit(lambda v, w: v * w)(x, away), X * X)
    for f, wanted in {
        (lambda v: px.device_put(v * 2, HOST)): "pinned_host",
        (lambda v: px.device_put(v * 2, host)): "pinned_host",
        (lambda v: px.device_put(px.device_put(v, HOST) * 2, DEVICE)): "device",
        (lambda v: px.jit(lambda w: px.device_put(w * 2, HOST))(v)): "pinned_host",
        px.vmap(lambda v: px.device_put(v * 2, HOST)): "pinned_host",
    }.items():
        got = px.jit(f)(x)
        assert kinds(got) == wanted
        np.testing.assert_array_equal(got, 2 * X)
    both = px.jit(lambda v: (v * 2, v), out_shardings=(host, s))
    assert kinds(both(x)) == kinds(both(x)) == ("pinned_host", "device")
    assert kinds(px.jit(lambda v: (v, px.device_put(v, HOST)))(x)) == ("device", "pinned_host")
    assert both.lower(x).compile().output_shardings == (host, s)
    moved = px.jit(lambda v: px.device_put(v, s) * 2, in_shardings=host, out_shardings=s)
    np.testing.assert_array_equal(moved(away), 2 * X)
    with pytest.raises(ValueError, match="Got jit memory kind: pinned_host, arg memory kind: device for arg type"):
        px.jit(lambda v: v * 2, in_shardings=host)(x)


def test_derivatives_go_through() -> None:
    f = lambda v: (px.device_put(px.device_put(v, HOST) ** 2, DEVICE)).sum()
    np.testing.assert_array_equal(px.grad(f)(X), 2 * X)
    loop = lambda v: lax.scan(lambda c, _: (px.device_put(c * 2, HOST), None), v, None, length=3)[0]
    np.testing.assert_array_equal(px.jit(px.grad(lambda v: loop(v).sum()))(X), np.full(8, 8))


def test_formats(where) -> None:
    s = where
    x = px.device_put(np.ones((4, 2), np.float32), s)
    assert x.format == Format(Layout((0, 1), ()), s) and px.device_put(x, x.format).format == x.format
    compiled = px.jit(lambda v: v.sum(1), out_shardings=Format(Layout.AUTO, s)).lower(x).compile()
    assert compiled.input_formats == ((x.format,), {}) and compiled.output_formats.layout == Layout((0,), ())
    with pytest.raises(NotImplementedError, match=r"arrays lie row by row, so major_to_minor is \(0, 1\)"):
        px.device_put(x, Format(Layout((1, 0)), s))
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"
    with pytest.raises(ValueError, match="Sharding has to be concrete when layout is of type .*Got sharding None"):
        Format(Layout((0, 1)))
    with pytest.raises(TypeError, match="Invalid value received for the layout argument.*Got 3 of type"):
        Format(3)
    assert isinstance(jnp.ones(()).format.layout, Layout)
