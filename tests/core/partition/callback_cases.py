"""Python functions that programs on four devices call. Run by ``test_partition.py``."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.control.spmd import shard_map_p
from polyax.experimental import io_callback
from polyax.meshes.axes import AbstractMesh
from polyax.sharding import AxisType, NamedSharding
from polyax.sharding import PartitionSpec as P
from support.meshed import partitioned
from support.parts import close_everywhere

pytestmark = pytest.mark.skipif(len(polyax.devices()) < 4, reason="run by test_partition.py, with several devices")

AXES = (("x", 2), ("y", 2))
X = np.arange(32, dtype=np.float32).reshape(8, 4)
LIKE_X = polyax.ShapeDtypeStruct((8, 4), "float32")


def on_devices(fun, cuts):
    """The results of ``fun(X)``, partitioned."""
    found = partitioned(fun, [X], AXES, [cuts])
    params = {"mesh": AbstractMesh((2, 2), ("x", "y")), "manual_axes": frozenset("xy"), "check_vma": False}
    outs = shard_map_p.bind(X, jaxpr=found.program, in_specs=found.ins, out_specs=found.outs, name="f", **params)
    for y in outs:
        close_everywhere(y, np.asarray(y), 0)
    return [np.asarray(y) for y in outs]


@pytest.mark.parametrize("call", [io_callback, polyax.pure_callback])
def test_one_call_with_whole_arrays(call):
    calls = []

    def called(x):
        calls.append(x.copy())
        return -x

    (found,) = on_devices(lambda x: 2 * call(called, LIKE_X, x), (("x",), ("y",)))
    np.testing.assert_array_equal(found, -2 * X)
    assert len(calls) == 1
    np.testing.assert_array_equal(calls[0], X)


def test_one_call_in_each_block_of_a_region():
    """The region's axes are the user's: each block is the first along the axis that is left."""
    mesh = polyax.make_mesh((2, 2), ("x", "y"), (AxisType.Auto,) * 2)
    calls = []

    def called(block):
        calls.append(block.copy())
        return -block

    like = polyax.ShapeDtypeStruct((4, 4), "float32")
    f = polyax.shard_map(
        lambda b: polyax.pure_callback(called, like, b), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    found = polyax.jit(f)(polyax.device_put(X, NamedSharding(mesh, P("x", "y"))))
    close_everywhere(found, -X, 0)
    assert sorted(c[0, 0] for c in calls) == [X[0, 0], X[4, 0]] and {c.shape for c in calls} == {(4, 4)}


def test_one_call_in_each_step():
    seen = []

    def fun(xs):
        def step(total, x):
            polyax.debug.callback(lambda s: seen.append(float(s)), x.sum())
            return total + x, ()

        return lax.scan(step, jnp.zeros(4), xs)[0]

    (found,) = on_devices(fun, ((), ("y",)))
    polyax.effects_barrier()
    np.testing.assert_array_equal(found, X.sum(0))
    assert seen == X.sum(1).tolist()


def test_each_device_prints_its_parts(capsys):
    mesh = polyax.make_mesh((4,), ("x",), (AxisType.Auto,))
    x = polyax.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))

    def f(x):
        polyax.debug.print("{} of {}", 2 * x, x.sum(), partitioned=True)

    polyax.jit(f)(x)
    polyax.effects_barrier()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"{2 * np.arange(n, n + 2.0)} of 28.0" for n in (0, 2, 4, 6))
