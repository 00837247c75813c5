"""Arrays on a mesh: put there, assembled, looked at. Run by ``test_sharded.py``."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental import mesh_utils
from polyax.meshes.sharding import IndivisibleError
from polyax.sharding import Mesh, NamedSharding, PositionalSharding
from polyax.sharding import PartitionSpec as P

N = len(polyax.devices())
pytestmark = pytest.mark.skipif(N < 2, reason="run by test_sharded.py, with several devices")
MESH = polyax.make_mesh((N // 2, 2), ("x", "y"), (polyax.sharding.AxisType.Auto,) * 2) if N > 1 else None
X = np.arange(N * 4, dtype=np.float32).reshape(N, 4)
COLUMN = PositionalSharding(polyax.devices()).reshape(N, 1)
ROWS = NamedSharding(MESH, P("x", None)) if N > 1 else None


@pytest.mark.sample
@pytest.mark.parametrize(
    "spec", [P(), P("x"), P(None, "y"), P("x", "y"), P(("x", "y")), P("y", "x"), P(("y", "x"), None)]
)
def test_put_and_get(spec):
    where = NamedSharding(MESH, spec)
    x = polyax.device_put(X, where)
    assert x.sharding == where and x.committed and x.is_fully_addressable
    np.testing.assert_array_equal(polyax.device_get(x), X)
    for shard in x.addressable_shards:
        assert shard.data.shape == where.shard_shape(X.shape) and shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(shard.data, X[shard.index])
    np.testing.assert_array_equal(polyax.device_put(x, NamedSharding(MESH, P("y"))), X)


def test_replicas_are_numbered():
    shards = polyax.device_put(X, ROWS).global_shards
    assert [s.replica_id for s in shards] == [0, 1] * (N // 2)


def test_replicas_that_come_from_the_host_are_one_memory():
    """Which no program writes to: each device would, if it is donated."""
    x = polyax.device_put(X, ROWS)
    where = {}
    for shard in x.addressable_shards:
        where.setdefault(str(shard.index), set()).add(shard.data.unsafe_buffer_pointer())
    assert len(where) == N // 2 and all(len(pointers) == 1 for pointers in where.values())
    double = polyax.jit(lambda v: v * 2, donate_argnums=0)
    for shard in double(x).addressable_shards:
        np.testing.assert_array_equal(shard.data, 2 * X[shard.index])


def test_trees_of_places():
    tree = {"a": X, "b": [X, X]}
    put = polyax.device_put(tree, {"a": ROWS, "b": None})
    assert put["a"].sharding == ROWS and len(put["b"][0].devices()) == 1
    put = polyax.device_put(
        tree, {"a": polyax.devices()[1], "b": [ROWS, PositionalSharding(polyax.devices()).reshape(N, 1)]}
    )
    assert put["a"].devices() == {polyax.devices()[1]} and put["b"][1].addressable_data(0).shape == (1, 4)


def test_trees_of_what_is_donated_and_shared(monkeypatch):
    monkeypatch.setattr(polyax.devices()[0].backend, "in_host_memory", False)

    def pair():
        return polyax.device_put((X, X), polyax.devices()[0])

    there = polyax.devices()[1]
    for donate, wanted in (((True, False), [True, False]), (True, [True, True]), ((False, None), [False, False])):
        xs = pair()
        polyax.device_put(xs, there, donate=donate)
        assert [x.is_deleted() for x in xs] == wanted
    xs = pair()
    own, same = polyax.device_put(xs, polyax.devices()[0], may_alias=(False, None))
    assert own.unsafe_buffer_pointer() != xs[0].unsafe_buffer_pointer()
    assert same.unsafe_buffer_pointer() == xs[1].unsafe_buffer_pointer()
    polyax.device_put(xs, there, donate=(True, False), may_alias=(False, True))
    with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
        polyax.device_put(pair(), there, donate=(True, False), may_alias=True)
    with pytest.raises(ValueError, match="device_put donate specification must be a tree prefix"):
        polyax.device_put(pair(), there, donate=(True,))


@pytest.mark.parametrize("f", [jnp.array, jnp.asarray, lambda x, device: jnp.astype(x, np.int32, device=device)])
def test_only_device_put_moves_what_was_put_somewhere(f):
    first, second = polyax.devices()[:2]
    pair = NamedSharding(Mesh(np.array([first, second]), ("a",)), P())
    for x, device in ((X, first), (jnp.asarray(X), second)):
        assert f(x, device=device).devices() == {device}
    for x, device in ((first, second), (first, pair), (pair, first), (pair, Mesh(np.array([second, first]), ("a",)))):
        device = NamedSharding(device, P()) if isinstance(device, Mesh) else device
        with pytest.raises(ValueError, match="Received incompatible devices for jitted computation"):
            f(polyax.device_put(X, x), device=device)
    assert f(polyax.device_put(X, pair), device=NamedSharding(pair.mesh, P("a"))).sharding.spec == P("a")


def test_specs_mean_the_mesh_in_force():
    with pytest.raises(ValueError, match="Please set a mesh via `polyax.set_mesh`"):
        polyax.device_put(X, P("y"))
    with polyax.set_mesh(MESH):
        assert polyax.device_put(X, P("y")).sharding == NamedSharding(MESH, P("y"))


def test_what_does_not_divide_is_refused():
    text = f"array axis 0 is partitioned {N} times, but the dimension size is {N + 1}"
    with pytest.raises(IndivisibleError, match=text):
        polyax.device_put(np.zeros((N + 1, 2)), NamedSharding(MESH, P(("x", "y"))))


def test_parts_of_python_numbers_are_typed_as_others():
    x = polyax.make_array_from_callback((), NamedSharding(MESH, P()), lambda index: 3.0)
    assert x.dtype == np.float32 and not x.weak_type and not (x + np.float16(1)).weak_type


def test_an_array_in_parts_has_no_device_for_other_libraries():
    with pytest.raises(BufferError, match="only supported for unsharded arrays"):
        polyax.device_put(X, ROWS).__dlpack_device__()
    alone = polyax.device_put(X, NamedSharding(Mesh(polyax.devices()[:1], "x"), P("x")))
    assert alone.__dlpack_device__() == (1, 0)


def test_from_a_callback():
    asked = []

    def part(index):
        asked.append(index)
        return X[index]

    x = polyax.make_array_from_callback(X.shape, ROWS, part)
    np.testing.assert_array_equal(x, X)
    assert len(asked) == N // 2, "each part is made once"
    with pytest.raises(
        ValueError, match=r"Expected shard shape .* doesn't match the single device array shape \(3, 3\)"
    ):
        polyax.make_array_from_callback(X.shape, ROWS, lambda index: np.zeros((3, 3)))
    with pytest.raises(ValueError, match="must match the dtype of the addressable shards. Got dtype=int32 and shard"):
        polyax.make_array_from_callback(X.shape, ROWS, part, dtype=np.int32)
    with pytest.raises(TypeError, match="sharding should be an instance of `polyax.sharding`. Got P"):
        polyax.make_array_from_callback(X.shape, ROWS.spec, part)
    with pytest.raises(polyax.errors.UnexpectedTracerError, match="cannot be called within a traced context"):
        polyax.jit(lambda x: polyax.make_array_from_callback(X.shape, ROWS, lambda index: x[index]))(X)


def test_from_several_devices_to_one():
    for where in (polyax.devices()[-1], polyax.sharding.SingleDeviceSharding(polyax.devices()[-1])):
        whole = polyax.device_put(polyax.device_put(X, ROWS), where)
        assert whole.devices() == {polyax.devices()[-1]} and whole.committed
        np.testing.assert_array_equal(whole, X)


def test_from_arrays_on_each_device():
    parts = [s.data for s in polyax.device_put(X, ROWS).addressable_shards]
    np.testing.assert_array_equal(polyax.make_array_from_single_device_arrays(X.shape, ROWS, parts[::-1]), X)
    with pytest.raises(ValueError, match=f"Expected {N} per-device arrays .* but got 1"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, parts[:1])
    with pytest.raises(TypeError, match="Unsupported type for elements in `arrays`"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, [X] * N)
    with pytest.raises(ValueError, match="requires a list of concrete arrays as input, but got types"):
        polyax.jit(lambda x: polyax.make_array_from_single_device_arrays(X.shape, ROWS, [x] * N))(X)
    with pytest.raises(ValueError, match="it must match the dtype of the addressable shards. Got dtype=int32"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, parts, dtype=np.int32)
    with pytest.raises(ValueError, match="the input arrays must be from distinct devices, but got device IDs .0, 0"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, parts[:1] * N)
    half = NamedSharding(polyax.sharding.Mesh(polyax.devices()[: N // 2], ("x",)), P("x"))
    told = (
        "Sharding contains devices {0, .*} that are not present in per-device arrays. Per-device arrays contain dev.* {"
    )
    with pytest.raises(ValueError, match=told):
        polyax.make_array_from_single_device_arrays(X.shape, half, parts[N // 2 :])
    with pytest.raises(ValueError, match=rf"must have one shard each. An argument array had {N} shard\(s\)"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, [polyax.device_put(X, ROWS)] * N)
    with pytest.raises(TypeError, match="`arrays` argument must be a list or tuple, but got"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, jnp.asarray(X))
    with pytest.raises(ValueError, match="must have matching dtypes. Got int32, expected float32 for buffer"):
        polyax.make_array_from_single_device_arrays(X.shape, ROWS, [parts[0], *(p.astype(int) for p in parts[1:])])


def test_from_the_data_of_a_process():
    np.testing.assert_array_equal(polyax.make_array_from_process_local_data(ROWS, X), X)
    with polyax.set_mesh(ROWS.mesh):
        assert polyax.make_array_from_process_local_data(ROWS.spec, X).sharding == ROWS
    with pytest.raises(ValueError, match="make_array_from_process_local_data"):
        polyax.make_array_from_process_local_data(ROWS.spec, X)
    both = polyax.make_array_from_process_local_data({"a": ROWS, "b": ROWS}, {"a": X, "b": X})
    assert both["b"].sharding == ROWS
    with pytest.raises(ValueError, match="on a single process, global_shape should be None"):
        polyax.make_array_from_process_local_data(ROWS, X, (N * 2, 4))


def test_rows_of_what_is_everywhere_are_everywhere():
    whole = NamedSharding(MESH, P())
    rows = list(polyax.device_put(X, whole))
    assert all(x.sharding == whole and x.committed for x in rows)
    np.testing.assert_array_equal(rows[1], X[1])
    assert not next(iter(polyax.device_put(X, ROWS))).committed


def test_what_was_deleted_has_no_parts():
    x = polyax.device_put(X, ROWS)
    x.delete()
    for part in (lambda: x.addressable_shards, lambda: x.addressable_data(0), lambda: x[0]):
        with pytest.raises(RuntimeError, match=rf"Array has been deleted with shape=float32\[{len(X)},"):
            part()


def test_compiled_programs_want_arguments_where_they_were_compiled_for():
    compiled = polyax.jit(lambda x: x + 1).lower(polyax.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    told = "compiled for input shardings that disagree.*Here are the 1 mismatches:\nArgument x with shape float32"
    for where in (ROWS, polyax.devices()[1]):
        with pytest.raises(ValueError, match=told):
            compiled(polyax.device_put(X, where))


def test_created_in_place():
    x = jnp.zeros((N, 2), device=ROWS)
    assert x.sharding == ROWS and jnp.asarray(X, device=ROWS).sharding == ROWS


def test_pictures(capsys):
    polyax.debug.visualize_array_sharding(polyax.device_put(X, ROWS))
    name = polyax.devices()[0].platform.upper()
    text = capsys.readouterr().out
    assert f"{name} 0,1" in text and f"{name} {N - 2},{N - 1}" in text and text.count("├") == N // 2 - 1
    polyax.debug.visualize_sharding((N,), NamedSharding(MESH, P(("x", "y"))))
    assert capsys.readouterr().out.count(name) == N
    polyax.debug.visualize_sharding((20000, 20), NamedSharding(MESH, P("x")))
    narrow = capsys.readouterr().out
    polyax.debug.visualize_sharding((20, 20000), NamedSharding(MESH, P("x")))
    wide = capsys.readouterr().out.splitlines()
    assert len(narrow.splitlines()[0]) < 80 and {len(line) for line in wide} == {80}
    with pytest.raises(ValueError, match="only works for shapes with 1 and 2 dimensions"):
        polyax.debug.visualize_sharding((2, 2, 2), ROWS)


def test_devices_in_order():
    assert mesh_utils.create_device_mesh((N // 2, 2)).shape == (N // 2, 2)
    assert mesh_utils.create_hybrid_device_mesh((N // 2, 2), (1, 1))[0, 1] is polyax.devices()[1]
    with pytest.raises(ValueError, match="must equal the product of mesh_shape"):
        mesh_utils.create_device_mesh((N + 1,))
    with pytest.raises(ValueError, match="Number of slices/granules 1 must equal"):
        mesh_utils.create_hybrid_device_mesh((N,), (2,))


def test_kinds_of_devices_may_have_an_order_of_their_own(monkeypatch):
    def backwards(shape, devices, contiguous_submeshes):
        assert not contiguous_submeshes
        return np.array(devices[::-1]).reshape(shape) if len(shape) == 1 else None

    kind = polyax.devices()[0].device_kind
    monkeypatch.setitem(mesh_utils.device_kind_handler_dict, kind, backwards)
    assert list(mesh_utils.create_device_mesh((N,))) == polyax.devices()[::-1]
    assert mesh_utils.create_device_mesh((N, 1))[0, 0] is polyax.devices()[0]


def test_references_hold_arrays_on_meshes():
    """What is written stays cut as it was."""
    mesh = polyax.make_mesh((N,), ("x",), (polyax.sharding.AxisType.Auto,))
    sharding = NamedSharding(mesh, P("x"))
    x = np.arange(4.0 * N, dtype=np.float32).reshape(2 * N, 2)
    ref = polyax.new_ref(polyax.device_put(x, sharding))

    @polyax.jit
    def step(ref, v):
        ref[0] = v
        polyax.lax.fori_loop(1, 3, lambda i, _: ref.__setitem__(i, ref[i - 1] * 2), None)
        return ref[:, 1].sum()

    total = step(ref, jnp.ones(2))
    x[:3] = [[1, 1], [2, 2], [4, 4]]
    assert float(total) == x[:, 1].sum()
    assert ref.sharding == sharding == ref[...].sharding == polyax.jit(lambda: ref[...])().sharding
    ref[1] = jnp.zeros(2)
    x[1] = 0
    assert ref.sharding.is_equivalent_to(sharding, 2)
    np.testing.assert_array_equal(ref[...], x)


@pytest.mark.parametrize("jitted", [False, True])
def test_devices_write_to_their_parts_of_references(jitted):
    mesh = polyax.make_mesh((N,), ("x",), (polyax.sharding.AxisType.Auto,))
    rows, scale = polyax.new_ref(jnp.zeros((N, 2))), polyax.new_ref(3.0)

    def body(x, part):
        own = polyax.new_ref(x)
        polyax.lax.fori_loop(0, 2, lambda i, _: own.__setitem__(..., own[...] * 2), None)
        part[0, 1] += polyax.lax.psum(own[0], "x") * scale[...]
        return own[...]

    f = polyax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
    out = (polyax.jit(f) if jitted else f)(jnp.arange(float(N)), rows)
    np.testing.assert_array_equal(out, 4 * np.arange(N))
    np.testing.assert_array_equal(rows[...], [[0, 6.0 * N * (N - 1)]] * N)
    mapped = polyax.pmap(lambda x: body(x[None], polyax.new_ref(jnp.zeros((1, 2)))), "x")
    np.testing.assert_array_equal(mapped(jnp.arange(float(N)))[:, 0], 4 * np.arange(N))
