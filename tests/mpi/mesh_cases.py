"""``jit`` on meshes of several processes. Run by ``test_processes.py``: all of them run all tests, in one order."""

from __future__ import annotations

import os

import numpy as np
import pytest
from mpi.together import OWN, PROCESSES, RANK, N, data, same

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.errors import ProgramMismatch
from polyax.experimental import multihost_utils as utils
from polyax.sharding import Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P

pytestmark = pytest.mark.skipif("PMI_RANK" not in os.environ, reason="run by test_processes.py, under mpiexec")

MESH = Mesh(np.array(polyax.devices()), ("x",))
ROWS, COLUMNS, EVERYWHERE = (NamedSharding(MESH, s) for s in (P("x"), P(None, "x"), P()))


def local(x):
    """The array of which each process brings its rows."""
    rows = len(x) // PROCESSES
    return polyax.make_array_from_process_local_data(ROWS, x[RANK * rows : (RANK + 1) * rows])


def whole(x):
    return utils.process_allgather(x)


def in_parts(x, sharding):
    """Whether an array lies as it should, and this process has its parts alone."""
    return x.sharding == sharding and len(x.addressable_shards) == OWN and not x.is_fully_addressable


# --- training

W, X, Y = data(3, N) / 9, data(N * 4, 3, seed=1) / 9, data(N * 4, N, seed=2) / 9


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


def step(w, x, y):
    value, g = polyax.value_and_grad(loss)(w, x, y)
    return w - 0.1 * g, value


def test_training_is_that_of_one_process():
    x, y, w, trained = local(X), local(Y), polyax.device_put(W, EVERYWHERE), W
    together, alone = polyax.jit(step), polyax.jit(step)
    for _ in range(4):
        w, value = together(w, x, y)
        trained, expected = alone(trained, X, Y)
        same(value, expected)
    assert in_parts(w, EVERYWHERE) and w.is_fully_replicated
    same(w, trained)


@pytest.mark.parametrize("bring", [np.asarray, jnp.asarray])
def test_what_all_processes_have_is_cut(bring):
    stepped = polyax.jit(step, in_shardings=(EVERYWHERE, ROWS, ROWS), out_shardings=(COLUMNS, None))
    w, _ = stepped(bring(W), bring(X), bring(Y))
    assert in_parts(w, COLUMNS)
    same(whole(w), polyax.jit(step)(W, X, Y)[0])


def test_donated_weights():
    stepped, w = polyax.jit(step, donate_argnums=0), polyax.device_put(W, EVERYWHERE)
    new, _ = stepped(w, local(X), local(Y))
    assert w.is_deleted()
    same(new, polyax.jit(step)(W, X, Y)[0])


def test_gradients_outside_of_jit():
    same(polyax.grad(loss)(polyax.device_put(W, EVERYWHERE), local(X), local(Y)), polyax.grad(loss)(W, X, Y))


def test_weights_cut_along_one_axis_and_data_along_the_other():
    """A layer cut by columns, one cut by rows: sums run within processes or across, as the mesh lies."""
    grid = Mesh(np.array(polyax.devices()).reshape(2, N // 2), ("a", "b"))
    a, b, x = data(4, N * 2, seed=3) / 9, data(N * 2, 5, seed=4) / 9, data(N * 2, 4, seed=5) / 9
    put = [(a, P(None, "b")), (b, P("b")), (x, P("a"))]

    def f(a, b, x):
        return jnp.sum((jnp.tanh(x @ a) @ b) ** 2)

    value, grads = polyax.jit(polyax.value_and_grad(f, (0, 1)))(
        *[polyax.device_put(v, NamedSharding(grid, s)) for v, s in put]
    )
    expected, wanted = polyax.value_and_grad(f, (0, 1))(a, b, x)
    same(value, expected)
    for g, e in zip(grads, wanted, strict=True):
        same(whole(g), e)


# --- regions


@pytest.mark.sample
def test_shard_map_in_jit():
    x = data(N * 2, 3)

    def total(v):
        return lax.psum(jnp.sum(v, 0), "x")

    mapped = polyax.shard_map(total, mesh=MESH, in_specs=P("x"), out_specs=P())
    same(polyax.jit(lambda v: mapped(v) * 2)(local(x)), x.sum(0) * 2)
    turned = polyax.shard_map(
        lambda v: lax.ppermute(v, "x", [(n, (n + 1) % N) for n in range(N)]),
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P("x"),
    )
    out = polyax.jit(lambda v: turned(v + 1))(local(x))
    assert in_parts(out, ROWS)
    same(whole(out), np.roll(x + 1, 2, 0))


def test_gradients_through_shard_map():
    x = data(N * 2, 3)
    energy = polyax.shard_map(lambda v: lax.psum(jnp.sum(v**3), "x"), mesh=MESH, in_specs=P("x"), out_specs=P())
    same(whole(polyax.jit(polyax.grad(energy))(local(x))), 3 * x**2)


# --- how arrays lie


@pytest.mark.sample
def test_results_lie_as_asked():
    x = data(N * 2, N * 3)
    for wanted in (ROWS, COLUMNS, EVERYWHERE):
        out = polyax.jit(lambda v: v * 2, out_shardings=wanted)(local(x))
        assert in_parts(out, wanted)
        same(whole(out), x * 2)


def test_constraints():
    x = data(N * 2, N * 3)
    out = polyax.jit(lambda v: lax.with_sharding_constraint(v + 1, COLUMNS))(local(x))
    assert in_parts(out, COLUMNS)
    same(whole(out), x + 1)


def test_arrays_are_brought_to_lie_otherwise():
    """By a program that all processes run."""
    x = data(N * 2, N * 3)
    put = local(x)
    for wanted in (COLUMNS, EVERYWHERE, ROWS):
        put = polyax.device_put(put, wanted)
        assert in_parts(put, wanted)
        same(whole(put), x)
    grid = Mesh(np.array(polyax.devices()).reshape(2, N // 2), ("a", "b"))
    both = NamedSharding(grid, P("b", "a"))
    put = polyax.device_put(local(x), both)
    assert in_parts(put, both)
    same(whole(put), x)
    same(whole(polyax.device_put(put, ROWS)), x)


def test_arrays_stay_on_their_devices():
    backwards = NamedSharding(Mesh(np.array(polyax.devices()[::-1]), ("x",)), P("x"))
    with pytest.raises(ValueError, match="spans processes can't be brought from .* the same devices in the same order"):
        polyax.device_put(local(data(N, 2)), backwards)


def test_loops_and_constants():
    x = data(N * 2, 3)
    closed_over = local(x)

    def f(v):
        return lax.scan(lambda c, _: (c * 0.5 + jnp.sum(closed_over, 0), jnp.max(c)), v, None, length=5)

    (got, largest), (wanted, expected) = polyax.jit(f)(local(x)), (x, [])
    for _ in range(5):
        expected.append(wanted.max())
        wanted = wanted * 0.5 + x.sum(0)
    same(whole(got), wanted)
    same(largest, expected)


def test_where_functions_are_in_memory_is_no_difference():
    x = data(N, 2)
    f = polyax.jit(lambda v: polyax.checkpoint(jnp.square, policy=lambda *_, **__: True)(v))
    assert " at 0x" in str(f.trace(local(x)).jaxpr)
    same(whole(f(local(x))), x * x)


def test_other_processes_programs_are_compared():
    factor = 2.0 + (RANK == PROCESSES - 1)
    with pytest.raises(ProgramMismatch) as e:
        polyax.jit(lambda v: v * factor)(local(data(N, 2)))
    assert "about to run different programs" in str(e.value) and "mul" in str(e.value)
    same(whole(polyax.jit(lambda v: v * 4)(local(data(N, 2)))), data(N, 2) * 4)
