"""What several processes compute together. Run by ``test_processes.py``: all of them run all tests, in one order."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from mpi.together import HERE, OWN, PROCESSES, RANK, N, data, same

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.experimental import multihost_utils as utils
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding, bounds
from polyax.meshes.spec import PartitionSpec as P

pytestmark = pytest.mark.skipif("PMI_RANK" not in os.environ, reason="run by test_processes.py, under mpiexec")

REDUCTIONS = [(lax.psum, np.add), (lax.pmax, np.maximum), (lax.pmin, np.minimum)]
DTYPES = ["float32", "bfloat16", "float16", "int32", "int8", "uint32", "bool", "complex64"]


def mapped(f, *args):
    """``pmap`` on this process's part of the arguments."""
    return polyax.pmap(f, "i")(*[x[HERE] for x in args])


@pytest.mark.sample
def test_threads_of_mpi():
    """What ``test_processes.py`` asked for is what these cases run with."""
    from mpi4py import MPI

    wanted = MPI.THREAD_SERIALIZED if "MPI4PY_RC_THREAD_LEVEL" in os.environ else MPI.THREAD_MULTIPLE
    assert MPI.Query_thread() == wanted


# --- devices


@pytest.mark.sample
def test_devices():
    assert N == PROCESSES * OWN and [d.id for d in polyax.devices()] == list(range(N))
    assert [d.process_index for d in polyax.devices()] == [n // OWN for n in range(N)]
    assert polyax.local_devices() == polyax.devices()[HERE]
    assert polyax.local_devices(process_index=0) == polyax.devices()[:OWN]
    assert polyax.process_indices() == list(range(PROCESSES)) and polyax.host_id() == RANK
    assert [d.local_hardware_id for d in polyax.local_devices()] == list(range(OWN))
    assert jnp.ones(2).device in polyax.local_devices()
    with pytest.raises(ValueError, match="Unknown process_index"):
        polyax.local_devices(PROCESSES)


def test_other_processes_devices_take_nothing():
    other = polyax.local_devices((RANK + 1) % PROCESSES)[0]
    for put in (lambda: polyax.device_put(np.ones(3), other), lambda: polyax.device_put(jnp.ones(3), other)):
        with pytest.raises(ValueError, match=r"Cannot copy an array .* to the non-addressable device"):
            put()


# --- collectives


@pytest.mark.sample
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [3, 50_000])
def test_reductions(dtype, length):
    x = data(N, length, dtype=dtype, seed=length)
    for reduce, ufunc in REDUCTIONS:
        if dtype == "complex64" and reduce is not lax.psum:
            continue
        counted = x.astype(np.int32) if dtype == "bool" and reduce is lax.psum else x  # truth values are counted
        expected = ufunc.reduce(counted, 0).astype(counted.dtype)
        got = mapped(lambda v, reduce=reduce: reduce(v, "i"), x)
        assert got.shape == (OWN, length) and got.dtype == expected.dtype
        same(got, np.stack([expected] * OWN), 1e-2 if dtype in ("bfloat16", "float16") else 1e-5)


def test_extrema_keep_nan():
    x = np.where(np.arange(N) == N - 1, np.nan, np.arange(N)).astype(np.float32)
    for reduce in (lax.pmax, lax.pmin):
        assert np.isnan(np.asarray(mapped(lambda v, reduce=reduce: reduce(v, "i"), x))).all()


def test_many_sizes_in_one_collective():
    sizes = [0, 1, 5, 40_000, 3, 20_000]
    xs = [data(N, n, seed=n) for n in sizes] + [data(N, 7, dtype="int32")]
    outs = polyax.pmap(lambda *vs: lax.psum(vs, "i"), "i")(*[x[HERE] for x in xs])
    for x, out in zip(xs, outs, strict=True):
        same(out, np.stack([x.sum(0)] * OWN))


@pytest.mark.sample
def test_exchanges():
    x = data(N, N, 6)
    same(mapped(lambda v: lax.all_gather(v, "i"), x), np.stack([x] * OWN))
    same(mapped(lambda v: lax.all_gather(v, "i", axis=1, tiled=True), x), np.stack([np.concatenate(x, 1)] * OWN))
    same(mapped(lambda v: lax.psum_scatter(v, "i"), x), x.sum(0)[HERE])
    same(mapped(lambda v: lax.all_to_all(v, "i", 0, 0), x), x.transpose(1, 0, 2)[HERE])
    same(mapped(lambda v: lax.ppermute(v, "i", [(n, (n + 1) % N) for n in range(N)]), x), np.roll(x, 1, 0)[HERE])
    only_first = np.concatenate([x[-1:], np.zeros_like(x[1:])])
    same(mapped(lambda v: lax.ppermute(v, "i", [(N - 1, 0)]), x), only_first[HERE])
    same(mapped(lambda v: v + lax.axis_index("i"), x), (x + np.arange(N)[:, None, None])[HERE])


@pytest.mark.sample
def test_large_exchanges():
    x = data(N, N, 20_000)
    same(mapped(lambda v: lax.all_gather(v, "i"), x), np.stack([x] * OWN))
    same(mapped(lambda v: lax.all_to_all(v, "i", 0, 0), x), x.transpose(1, 0, 2)[HERE])
    same(mapped(lambda v: lax.psum_scatter(v, "i"), x), x.sum(0)[HERE])


@pytest.mark.sample
@pytest.mark.parametrize("groups", [[[0, 3], [1, 2]], [[0, 1], [2, 3]], [[3, 0, 2, 1]], [[0], [1, 2, 3]]])
def test_groups(groups):
    """Within one process, across, and both at once."""
    x = data(N, 5_000)
    expected = np.empty_like(x)
    for group in groups:
        expected[group] = x[group].sum(0)
    same(mapped(lambda v: lax.psum(v, "i", axis_index_groups=groups), x), expected[HERE])
    if len({len(g) for g in groups}) == 1:
        gathered = np.stack([x[next(g for g in groups if n in g)] for n in range(N)])
        same(mapped(lambda v: lax.all_gather(v, "i", axis_index_groups=groups), x), gathered[HERE])


@pytest.mark.sample
def test_loops_of_collectives():
    x = data(N, 10)

    def body(v, _):
        v = lax.psum(v, "i") / N
        return v, v

    got, _ = polyax.pmap(lambda v: lax.scan(body, v, None, length=20), "i")(x[HERE])
    same(got, np.stack([x.mean(0)] * OWN))


@pytest.mark.sample
def test_programs_in_flight():
    """Results are asked for in another order than they were started in."""
    f = polyax.pmap(lambda v: lax.psum(v, "i"), "i")
    xs = [data(N, 3_000, seed=n) for n in range(12)]
    outs = [f(x[HERE]) for x in xs]
    for n in range(11, -1, -1):
        same(outs[n], np.stack([xs[n].sum(0)] * OWN))


@pytest.mark.sample
def test_programs_of_some_processes():
    """Only the first two take part, the others go on; both pairs compute at once on connections of their own."""
    pair = [d for d in polyax.devices() if d.process_index // 2 == RANK // 2]
    if len({d.process_index for d in pair}) < 2:
        return
    x = data(len(pair), 4)
    at = pair.index(polyax.local_devices()[0])
    f = polyax.pmap(lambda v: lax.psum(v, "i"), "i", devices=pair)
    same(f(x[at : at + OWN]), np.stack([x.sum(0)] * OWN))


def test_programs_of_this_process_alone():
    x = data(OWN, 4, seed=RANK)
    f = polyax.pmap(lambda v: lax.psum(v, "i"), "i", devices=polyax.local_devices())
    same(f(x), np.stack([x.sum(0)] * OWN))
    assert f(x).is_fully_addressable


def test_programs_of_other_processes_alone():
    there = NamedSharding(Mesh(np.array(polyax.local_devices((RANK + 1) % PROCESSES)), ("x",)), P("x"))
    got = polyax.jit(lambda v: v.sum(), in_shardings=there)(data(OWN * 2, 4))
    x = polyax.device_put(data(OWN * 2, 4), there)
    for y in (got, (polyax.numpy.sin(x) + x).sum()):
        assert y.shape == () and not y.addressable_shards and repr(y) == "Array(shape=(), dtype=float32)"
    with pytest.raises(ValueError, match=rf"none of its devices .* is in this process, number {RANK}"):
        polyax.shard_map(lambda v: v, mesh=there.mesh, in_specs=P("x"), out_specs=P("x"))(data(OWN * 2, 4))


@pytest.mark.sample
def test_gradients_of_a_step():
    """Data-parallel training: each process has its part of the batch, all get the same weights."""
    w, x, y = data(3, 2) / 9, data(N, 5, 3) / 9, data(N, 5, 2) / 9

    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    def step(w, x, y):
        g = lax.pmean(polyax.grad(loss)(w, x, y), "i")
        return w - 0.1 * g

    stepped = polyax.pmap(step, "i", in_axes=(None, 0, 0))(w, x[HERE], y[HERE])
    expected = w - 0.1 * np.asarray(polyax.jit(polyax.grad(loss))(w, x.reshape(-1, 3), y.reshape(-1, 2)))
    same(stepped, np.stack([expected] * OWN))
    again = polyax.pmap(step, "i", in_axes=(0, 0, 0))(stepped, x[HERE], y[HERE])
    assert again.shape == stepped.shape


def test_gradients_through_pmap():
    """Each process has the cotangents of its own results; what all have alike gets those of all."""
    w, x = data(3), data(N, 3, seed=1)
    f = polyax.pmap(lambda w, v: lax.psum(w * v**2, "i"), "i", in_axes=(None, 0))

    def loss(w, x):
        return jnp.sum(f(w, x))

    same(f(w, x[HERE]), np.stack([(w * x**2).sum(0)] * OWN))
    of_w, of_x = polyax.grad(loss, (0, 1))(w, x[HERE])
    same(of_w, N * (x**2).sum(0))
    same(of_x, (2 * N * w * x)[HERE])
    assert of_w.is_fully_addressable and of_x.is_fully_addressable
    value, pull = polyax.vjp(lambda x: f(w, x), x[HERE])
    same(pull(jnp.full(value.shape, RANK, jnp.float32))[0], (2 * w * x)[HERE] * sum(range(PROCESSES)) * OWN)
    twice = polyax.grad(lambda w: jnp.sum(polyax.grad(loss, 1)(w, x[HERE])))(w)
    same(twice, 2 * N * x.sum(0))


def test_pmap_in_programs_of_one_process():
    f, x = polyax.pmap(lambda v: lax.psum(v, "i"), "i"), data(N, 3)[HERE]
    for ask in (polyax.jit(f), polyax.vmap(f), lambda x: lax.map(lambda _: f(x), jnp.arange(2))):
        with pytest.raises(
            NotImplementedError, match=r"pmap\(<lambda>\) over several processes can be .*call it outside"
        ):
            ask(np.stack([x] * OWN))
    with pytest.raises(TypeError, match=r"pmap\(<lambda>\) over several processes has a rule for reverse mode only"):
        polyax.jvp(f, (x,), (x,))


def test_wrong_number_of_parts():
    with pytest.raises(ValueError, match=r"leading axis size equal to the number of local devices"):
        polyax.pmap(lambda v: v)(np.ones((OWN + 1, 2), np.float32))


def test_an_error_in_one_thread_is_that_of_all():
    """Tracing fails alike everywhere; the next program runs."""
    with pytest.raises(TypeError):
        mapped(lambda v: v + "text", data(N, 2))
    same(mapped(lambda v: lax.psum(v, "i"), np.ones((N, 1), np.float32)), np.full((OWN, 1), N))


# --- arrays on all processes


def sharded(spec, x, shape=None, names=("x",)):
    mesh = Mesh(np.array(polyax.devices()).reshape(shape or (N,)), names)
    return polyax.device_put(x, NamedSharding(mesh, spec))


@pytest.mark.sample
def test_arrays_hold_the_parts_of_this_process():
    x = data(N * 2, 3)
    y = sharded(P("x"), x)
    assert y.shape == x.shape and not y.is_fully_addressable and not y.is_fully_replicated
    assert len(y.addressable_shards) == OWN and len(y.global_shards) == N and len(y.devices()) == N
    assert [s.data is None for s in y.global_shards] == [d.process_index != RANK for d in polyax.devices()]
    for shard in y.addressable_shards:
        same(shard.data, x[shard.index])
    assert repr(y) == f"Array(shape={x.shape}, dtype=float32)" == str(y)
    same(utils.process_allgather(y), x)


def test_values_of_other_processes():
    y = sharded(P("x"), data(N))
    for use in (np.asarray, lambda v: v.tolist(), list):
        with pytest.raises(RuntimeError, match="spans non-addressable .* is not possible.*process_allgather"):
            use(y)


def test_replicated_arrays_have_a_value():
    x = data(5)
    y = sharded(P(), x)
    assert y.is_fully_replicated and not y.is_fully_addressable
    same(y, x)
    assert [s.replica_id for s in y.addressable_shards] == list(range(N))[HERE]


def test_elementwise_on_parts():
    x = data(N * 2, 3)
    y = sharded(P("x"), x)
    z = y * y + 1
    assert z.sharding == y.sharding
    same(utils.process_allgather(z), x * x + 1)


def test_making_arrays():
    mesh = Mesh(np.array(polyax.devices()), ("x",))
    where, x = NamedSharding(mesh, P("x")), data(N * 2, 3)
    asked = []
    y = polyax.make_array_from_callback(x.shape, where, lambda index: asked.append(index) or x[index])
    assert len(asked) == OWN
    same(utils.process_allgather(y), x)
    local = x[RANK * OWN * 2 : (RANK + 1) * OWN * 2]
    same(utils.process_allgather(polyax.make_array_from_process_local_data(where, local)), x)
    same(utils.process_allgather(polyax.make_array_from_process_local_data(where, x, x.shape)), x)
    parts = [polyax.device_put(x[i], d) for d, i in where.addressable_devices_indices_map(x.shape).items()]
    z = polyax.make_array_from_single_device_arrays(x.shape, where, parts)
    same(utils.process_allgather(z), x)
    with pytest.raises(ValueError, match="was given one of shape"):
        polyax.make_array_from_process_local_data(where, local[:1], x.shape)


def test_local_and_global():
    mesh = Mesh(np.array(polyax.devices()), ("x",))
    local = data(OWN * 2, 3, seed=RANK)
    y = utils.host_local_array_to_global_array(local, mesh, P("x"))
    assert y.shape == (N * 2, 3)
    same(utils.process_allgather(y), np.concatenate([data(OWN * 2, 3, seed=n) for n in range(PROCESSES)]))
    back = utils.global_array_to_host_local_array(y, mesh, P("x"))
    assert back.is_fully_addressable
    same(back, local)
    specs = {"a": P(None), "b": P()}
    tree = utils.host_local_array_to_global_array({"a": np.ones(3), "b": np.float32(3)}, mesh, specs)
    same(tree["b"], 3)
    with pytest.raises(ValueError, match="`None` is not a valid input to the pspecs argument"):
        utils.host_local_array_to_global_array(local, mesh, None)


def test_a_mesh_of_two_axes():
    """The second axis runs across processes: what this process has isn't one stretch of the array."""
    devices = np.array(polyax.devices()).reshape(PROCESSES, OWN).T
    where = NamedSharding(Mesh(devices, ("a", "b")), P("a", "b"))
    x = data(OWN * 2, PROCESSES * 3)
    y = polyax.device_put(x, where)
    for shard in y.addressable_shards:
        assert bounds(shard.index, x.shape)[1] == (RANK * 3, RANK * 3 + 3)
    same(utils.process_allgather(y), x)
    same(utils.global_array_to_host_local_array(y, where.mesh, where.spec), x[:, RANK * 3 : RANK * 3 + 3])
    assert where.mesh.local_mesh.shape == {"a": OWN, "b": 1} and where.mesh.is_multi_process


# --- messages


def test_gathering_and_broadcasting():
    all_of_them = np.arange(3) + np.arange(PROCESSES)[:, None]
    same(utils.process_allgather(np.arange(3) + RANK), all_of_them)
    same(utils.process_allgather(np.arange(3) + RANK, tiled=True), all_of_them.ravel())
    same(utils.process_allgather(np.float32(RANK), tiled=True), np.arange(PROCESSES))
    got = utils.broadcast_one_to_all({"a": np.full(2, RANK), "b": jnp.float32(RANK)})
    assert got["a"].tolist() == [0, 0] and got["b"] == 0
    assert utils.broadcast_one_to_all(np.int32(RANK), is_source=RANK == 1) == 1
    with pytest.raises(ValueError, match="is_source is true in no process"):
        utils.broadcast_one_to_all(1, is_source=False)
    with pytest.raises(ValueError, match="same shape in all processes"):
        utils.process_allgather(np.zeros(RANK + 1))


def test_agreeing():
    utils.sync_global_devices("here")
    with pytest.raises(AssertionError, match="name mismatch"):
        utils.sync_global_devices(f"place {RANK}")
    utils.assert_equal({"a": np.arange(3), "b": 2.0})
    with pytest.raises(AssertionError, match=r"seeds differ Expected: .* \(process 0\); got: .* \(process 1\)"):
        utils.assert_equal(RANK, "seeds differ")


@pytest.mark.sample
def test_messages_while_programs_run():
    """The thread that talks isn't the one that computes."""
    f = polyax.pmap(lambda v: lax.psum(v, "i"), "i")
    big = np.ones((OWN, 300_000), np.float32)
    outs = []
    thread = threading.Thread(target=lambda: outs.extend(f(big) for _ in range(5)))
    f(big)
    thread.start()
    for n in range(10):
        assert utils.broadcast_one_to_all(n) == n
    thread.join()
    same(outs[-1], np.full((OWN, 300_000), N))
