"""``custom_partitioning`` on eight devices. Run by ``test_custom_partitioning.py``."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from polyax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
DEVICES = polyax.devices()
if len(DEVICES) < 8:
    pytest.skip("run by test_custom_partitioning.py, with eight devices", allow_module_level=True)
GRID = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
X = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)


def put(*spec, value=X):
    return polyax.device_put(value, NamedSharding(GRID, P(*spec)))


def same(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-4, atol=1e-4)


def rows_of(sharding):
    """The same along rows, which are whole."""
    return NamedSharding(sharding.mesh, P(*sharding.spec[:-1], None))


def sorted_rows(seen, **how):
    """A sort of rows, which nobody would cut without its rule."""

    def partition(mesh, args, result):
        seen.append((args[0].sharding.spec, result.sharding.spec, args[0].shape))
        rows = rows_of(args[0].sharding)
        return mesh, lambda x: jnp.sort(x) + 0 * lax.axis_index("x"), rows, (rows,)

    @custom_partitioning
    def f(x):
        return jnp.sort(x)

    f.def_partition(partition, **how)
    return f


@pytest.mark.parametrize("spec", [("x",), ("x", "y"), (None, "y")])
def test_blocks_are_as_its_partition_rule_wants(spec):
    seen = []
    out = polyax.jit(sorted_rows(seen, sharding_rule="... i -> ... i"))(put(*spec))
    assert out.sharding.spec == P(*spec), "results lie as the sharding rule says"
    assert seen[0] == (P(*spec, *[None] * (2 - len(spec))), P(*spec, *[None] * (2 - len(spec))), (8, 16))
    same(out, np.sort(X))


def test_rules_as_objects_and_functions():
    rule = SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i", "j"),), need_replication_factors=("j",))
    for found in (rule, lambda mesh, args, results: rule, lambda mesh, args, results: ("i j -> i j", {})):
        out = polyax.jit(sorted_rows([], sharding_rule=found))(put("x"))
        assert out.sharding.spec == P("x")
        same(out, np.sort(X))
    with pytest.raises(ValueError, match="sharding_rule callable must produce either an SdyShardingRule object or"):
        polyax.jit(sorted_rows([], sharding_rule=lambda *_: 3))(put("x"))


def test_the_mesh_in_force_has_its_devices():
    meshes = []

    @custom_partitioning
    def f(x):
        return x * 2

    def partition(mesh, args, result):
        meshes.append(mesh)
        return mesh, lambda x: x * 2, result.sharding, (args[0].sharding,)

    f.def_partition(partition, sharding_rule="i j -> i j")
    with polyax.set_mesh(GRID):
        same(polyax.jit(f)(put("x", "y")), X * 2)
    assert meshes[0] == GRID
    same(polyax.jit(lambda x: f(x))(put("x", "y")), X * 2)
    assert meshes[-1].axis_names == ("x", "y")


def test_it_puts_sums_together_itself():
    @custom_partitioning
    def product(x, w):
        return x @ w

    def partition(mesh, args, result):
        rows, inner = args[0].sharding.spec
        of = lambda *spec: NamedSharding(mesh, P(*spec))
        run = lambda x, w: lax.psum(x @ w, inner) if inner else x @ w
        return mesh, run, of(rows, None), (of(rows, inner), of(inner, None))

    product.def_partition(partition, sharding_rule="i j, j k -> i k", reduction_factors=("j",))
    out = polyax.jit(lambda x, w: product(x, w) * 2)(put("x", "y"), W)
    assert out.sharding.spec == P("x")
    same(out, X @ W * 2)


def test_static_arguments_come_first():
    @functools.partial(custom_partitioning, static_argnums=(1,))
    def scaled(x, n, y):
        return {"a": x * n + y}

    def partition(n, mesh, args, result):
        one = args[0].sharding
        return mesh, lambda x, y: {"a": x * n + y}, {"a": one}, (one, one)

    scaled.def_partition(partition, sharding_rule=lambda n, *_: "i j, i j -> i j")
    out = polyax.jit(lambda x: scaled(x, 3, x)["a"])(put("x", "y"))
    assert out.sharding.spec == P("x", "y")
    same(out, X * 4)


def test_results_as_their_operands_say():
    rule = lambda mesh, args, result: rows_of(args[0].sharding)
    polyax.config.update("jax_use_shardy_partitioner", False)
    try:
        f = sorted_rows([], infer_sharding_from_operands=rule)
        out = polyax.jit(lambda x: f(x) + 1)(put("x", "y"))
    finally:
        polyax.config.update("jax_use_shardy_partitioner", True)
    assert out.sharding.spec == P("x")
    same(out, np.sort(X) + 1)


def test_in_loops_and_regions():
    f = sorted_rows([], sharding_rule="i j -> i j", need_replication_factors=("j",))
    loop = polyax.jit(lambda x: lax.scan(lambda c, _: (f(-c), None), x, None, length=2)[0])
    out = loop(put("x"))
    assert out.sharding.spec == P("x")
    same(out, np.sort(-np.sort(-X)))
    region = polyax.shard_map(f, mesh=GRID, in_specs=P("x"), out_specs=P("x"))
    same(polyax.jit(region)(put("x")), np.sort(X))


def wrong(partition, message):
    f = custom_partitioning(lambda x: x)
    f.def_partition(partition, sharding_rule="i j -> i j")
    with pytest.raises(ValueError, match=message):
        polyax.jit(f)(put("x"))


def test_partition_rules_that_do_not_fit():
    wrong(
        lambda mesh, args, result: (mesh, lambda x: x[:1], result.sharding, (args[0].sharding,)),
        r"Mismatch in result shapes. \[.*\[1,16\]\)\] vs \[.*\[2,16\]\)\]",
    )
    wrong(
        lambda mesh, args, result: (mesh, lambda x: x, P("x"), (args[0].sharding,)),
        "Custom Partitioning rules must return Sharding",
    )
    other = NamedSharding(Mesh(np.array(DEVICES).reshape(2, 4), ("a", "b")), P("a"))
    wrong(lambda mesh, args, result: (mesh, lambda x: x, other, (other,)), "must return shardings on .*'x': 4")


def test_shardings_on_another_mesh_of_the_devices():
    f = custom_partitioning(lambda x: x + 1)
    row = NamedSharding(Mesh(DEVICES, "z"), P("z"))
    f.def_partition(lambda mesh, args, result: (mesh, lambda x: x + 1, row, (row,)), sharding_rule="i j -> i j")
    same(polyax.jit(f)(put("x")), X + 1)
