"""Arrays on an explicit mesh of eight devices: what operations and programs make of them, and where that lies."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as px
import polyax.numpy as jnp
from polyax import lax
from polyax.errors import ShardingTypeError
from polyax.sharding import (
    AbstractMesh,
    AxisType,
    NamedSharding,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    use_abstract_mesh,
)
from polyax.sharding import PartitionSpec as P
from support.parts import close_everywhere

ROWS = np.arange(64, dtype=np.float32).reshape(8, 8) / 9
BOTH = np.arange(32, dtype=np.float32).reshape(8, 4) / 7


def put(x, *spec):
    return px.device_put(x, P(*spec))


def check(found, text, wanted):
    """The type, that parts lie as it says, and the contents."""
    assert str(px.typeof(found)).endswith(text), (px.typeof(found), text)
    told = px.typeof(found).sharding
    assert found.sharding.cuts(found.ndim) == told.cuts(found.ndim), (found.sharding, told)
    close_everywhere(found, wanted, 2e-5, 1e-5)


@pytest.fixture(autouse=True)
def mesh():
    with px.set_mesh(px.make_mesh((4, 2), ("x", "y"))) as made:
        yield made


def test_what_is_put_within_auto_axes_runs(mesh):
    outside = px.NamedSharding(mesh, P("x", "y"))

    def doubled(x):
        return px.device_put(px.jit(lambda v: v * 2, out_shardings=outside)(x), outside) * 2

    within = auto_axes(doubled, axes="y", out_sharding=P("x", "y"))
    for run in (lambda f: f, px.jit):
        check(run(within)(put(BOTH, "x", "y")), "[8@x,4@y]", BOTH * 4)


def test_what_is_chosen_from_is_cut_alike():
    cut, whole, other = put(ROWS, "x", None), put(ROWS), put(ROWS, None, "x")
    for run in (lambda f: f, px.jit):
        where = run(jnp.where)
        check(where(cut > 2, cut, cut), "[8@x,8]", ROWS)
        check(where(cut > 2, cut, 1.0), "[8@x,8]", np.where(ROWS > 2, ROWS, 1))
        check(where(cut > 2, cut, put(ROWS[0])), "[8@x,8]", np.where(ROWS > 2, ROWS, ROWS[0]))
        for x, y in ((cut, whole), (whole, cut), (cut, other)):
            with pytest.raises(ShardingTypeError, match="select cases must have the same shardings, got f32"):
                where(True, x, y)
        with pytest.raises(ShardingTypeError, match=r"`which` sharding bool\[8@x,8\] but case sharding f32\[8,8\]"):
            where(cut > 2, whole, whole)


def test_gradients_where_no_mesh_is_in_force(mesh):
    x, w = put(BOTH, "x", "y"), put(ROWS[:4, :2])
    with px.set_mesh(None):
        check(px.grad(lambda x: (x * x).sum())(x), "[8@x,4@y]", 2 * BOTH)
        check(px.grad(lambda x: x.sum())(x), "[8@x,4@y]", np.ones_like(BOTH))
        rows = px.device_put(BOTH, px.NamedSharding(mesh, P("x", None)))
        check(px.grad(lambda w: (rows @ w).sum())(w), "[4,2]", np.repeat(BOTH.sum(0)[:, None], 2, 1))
        back = px.vjp(lambda x: x.T * 2, x)[1]
        check(back(px.device_put(BOTH.T, px.NamedSharding(mesh, P("y", "x"))))[0], "[8@x,4@y]", 2 * BOTH)


def test_operations():
    a, b, c, d = put(BOTH, "x", "y"), put(ROWS, "x", None), put(ROWS, None, "x"), put(ROWS)
    for run in (lambda f: f, px.jit):
        check(run(lambda: jnp.sin(a).T)(), "[4@y,8@x]", np.sin(BOTH).T)
        check(run(jnp.add)(b, d), "[8@x,8]", ROWS + ROWS)
        check(run(jnp.matmul)(b, d), "[8@x,8]", ROWS @ ROWS)
        check(run(jnp.matmul)(d, b), "[8,8]", ROWS @ ROWS)
        check(run(lambda x: x.sum(0))(a), "[4@y]", BOTH.sum(0))
        check(run(lambda x: x.reshape(32))(a), "[32@(x,y)]", BOTH.reshape(32))
        check(run(lambda x: jnp.concatenate([x, x]))(b), "[16@x,8]", np.concatenate([ROWS, ROWS]))
        check(run(lambda x, y: jnp.dot(x, y, out_sharding=P("x", "y")))(c, b), "[8@x,8@y]", ROWS @ ROWS)
        check(run(px.vmap(jnp.dot, (0, None)))(b, d), "[8@x,8]", ROWS @ ROWS)
        check(run(lambda x: px.reshard(x, P("y", "x")))(b), "[8@y,8@x]", ROWS)
        with pytest.raises(ShardingTypeError, match=r"illegally sharded result: f32\[8@x,8@x\]"):
            run(jnp.add)(b, c)
        with pytest.raises(ShardingTypeError, match="Contracting dimensions are sharded"):
            run(jnp.dot)(c, b)
        for fun in (lambda x, y: jnp.concatenate([x, y]), lambda x, y: lax.dynamic_update_slice(x, y, (0, 0))):
            with pytest.raises(ShardingTypeError, match="sharding"):
                run(fun)(b, d)
        with pytest.raises(AssertionError, match="acts as an assert when all axes of mesh"):
            run(lambda x: lax.with_sharding_constraint(x, P("y", None)))(b)


def test_what_is_made():
    key = px.random.PRNGKey(0)
    numbers = np.asarray(px.random.normal(key, (8, 4)))
    for run in (lambda f: f, px.jit):
        check(run(lambda: jnp.zeros((8, 4), out_sharding=P("x")))(), "[8@x,4]", np.zeros((8, 4)))
        check(run(lambda: jnp.arange(8, out_sharding=P("x")))(), "[8@x]", np.arange(8))
        check(run(jnp.ones_like)(put(BOTH, "x", "y")), "[8@x,4@y]", np.ones((8, 4)))
        check(run(lambda k: px.random.normal(k, (8, 4), out_sharding=P("x", "y")))(key), "[8@x,4@y]", numbers)
        check(run(lambda x: px.device_put(x, P("y")))(put(BOTH, "x")), "[8@y,4]", BOTH)
    check(px.reshard(BOTH, P(None, "y")), "[8,4@y]", BOTH)
    check(px.jit(lambda x: x * 2, in_shardings=P("x"))(BOTH), "[8@x,4]", BOTH * 2)
    check(px.jit(lambda x: x * 2, out_shardings=P("x"))(BOTH), "[8@x,4]", BOTH * 2)


def test_the_other_way_round():
    for run in (lambda f: f, px.jit):
        check(run(lambda x: x[::-1])(put(BOTH, "x", "y")), "[8@x,4@y]", BOTH[::-1])
        check(run(lambda x: jnp.flip(x).T)(put(BOTH, ("x", "y"))), "[4,8@(x,y)]", BOTH[::-1, ::-1].T)
        check(run(px.grad(lambda x: (x[::-1] * x).sum()))(put(BOTH, "x")), "[8@x,4]", 2 * BOTH[::-1])


def test_gradients_of_what_is_not_cut_are_not_cut():
    x, whole = put(BOTH, "x", "y"), put(BOTH[:4], None, None)
    row = put(BOTH[:1], None, None)
    for f, z in ((lambda z: (x @ z).sum(), whole), (lambda z: (x * z).sum(), row)):
        wanted = px.jit(px.grad(f))(z)
        for got in (px.grad(f)(z), px.grad(px.jit(f))(z), wanted):
            assert got.sharding.spec == P(None, None)
            close_everywhere(got, np.asarray(wanted), 1e-5, 1e-5)


@pytest.mark.parametrize("f", [jnp.sin, lambda x: -x, lambda x: x + x, lambda x: x > 1, lambda x: x.astype(int)])
def test_results_name_each_dimension(f):
    for run in (lambda f: f, px.jit):
        assert run(f)(put(BOTH, "x")).sharding.spec == P("x", None)


def test_rows_of_what_is_cut():
    for run in (lambda f: f, px.jit):
        with pytest.raises(ShardingTypeError, match=r"slic.* on sharded dims where out dim \(1\)"):
            run(lambda x: x[0])(put(ROWS, "x"))
        check(run(lambda x: x.at[0].get(out_sharding=P("y")))(put(ROWS, "x")), "[8@y]", ROWS[0])
        check(run(lambda x: x[:, 0])(put(ROWS, "x")), "[8@x]", ROWS[:, 0])
    np.testing.assert_array_equal([np.asarray(row) for row in put(ROWS, "x")], ROWS)


def test_rows_of_what_is_not_cut():
    whole = put(ROWS)
    check(whole[1], "[8]", ROWS[1])
    assert whole[1, 2] == ROWS[1, 2] and whole[1, 2].item() == ROWS[1, 2] and len(list(whole)) == 8


@pytest.mark.parametrize("run", [lambda f: f, px.jit])
def test_gradients_lie_as_what_was_resharded(run):
    for here, there in (((), ("x",)), (("x",), (None, "y"))):
        found = run(px.grad(lambda x, there=there: jnp.sum(px.reshard(x, P(*there)) ** 2)))(put(BOTH, *here))
        check(found, "[8@x,4]" if here else "[8,4]", 2 * BOTH)
    uncut = run(px.grad(lambda x: jnp.sum(px.reshard(x, P("x")) ** 2)))(BOTH)
    assert uncut.is_fully_replicated
    close_everywhere(uncut, 2 * BOTH, 2e-5, 1e-5)


LARGEST = ROWS.reshape(4, 2, 4, 2).max((1, 3))
KERNEL = np.ones((1, 1, 3), np.float32)


@pytest.mark.parametrize("run", [lambda f: f, px.jit])
@pytest.mark.parametrize(
    ("f", "text", "wanted"),
    [
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 8), (1, 8), "VALID"), "[8@x,1]", ROWS.sum(1, keepdims=True)),
        (lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"), "[4@x,4]", LARGEST),
        (lambda x: lax.reduce_window(x, 1.0, lax.mul, (1, 1), (1, 1), "VALID"), "[8@x,8]", ROWS),
        (lambda x: lax.conv(x.T[:, None], KERNEL, (1,), "SAME")[:, 0, 1:5], "[8,4@x]",
         ROWS.T[:, :4] + ROWS.T[:, 1:5] + ROWS.T[:, 2:6]),
        (lambda x: x.at[:, 0].set(1), "[8@x,8]", np.where(np.arange(8) == 0, 1, ROWS)),
        (lambda x: x.at[:4, :2].add(np.ones(2)), "[8@x,8]", ROWS + np.outer(np.arange(8) < 4, np.arange(8) < 2)),
        (lambda x: jnp.median(x, 1), "[8@x]", np.median(ROWS, 1)),
        (lambda x: jnp.quantile(x, np.array([0.2, 0.5]), 1), "[2,8@x]", np.quantile(ROWS, [0.2, 0.5], 1)),
        (px.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID").sum()), "[8@x,8]",
         np.outer(np.arange(8) % 2, np.arange(8) % 2)),
    ],
)  # fmt: skip
def test_what_goes_along_dimensions_that_are_cut(run, f, text, wanted):
    check(run(f)(put(ROWS, "x")), text, wanted)


def test_likes_of_shapes_lie_on_the_mesh_in_force():
    for mesh, spec in ((get_abstract_mesh(), P("x", "y")), (AbstractMesh((2,), ("z",)), P(None, None))):
        named = spec if "z" not in mesh.axis_names else P("z")
        like = px.ShapeDtypeStruct((8, 4), np.float32, sharding=px.NamedSharding(mesh, named))
        for made in (jnp.zeros_like(like), jnp.ones_like(like), lax.full_like(like, 3)):
            assert made.sharding.cuts(2) == px.NamedSharding(made.sharding.mesh, spec).cuts(2)


def test_types_tell_of_dimensions_that_a_spec_leaves_out(mesh):
    told = px.NamedSharding(mesh.abstract_mesh, P("x"))
    assert px.typeof(put(BOTH, "x")).update(sharding=told).str_short() == "float32[8@x,4]"


def test_likes_lie_where_their_model_does():
    x = put(BOTH, "x", "y")
    with px.set_mesh(None):
        for fun in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda v: jnp.full_like(v, 3.0)):
            made = fun(x)
            assert made.sharding == x.sharding and px.typeof(made) == px.typeof(x)


def test_derivatives():
    loss = lambda w, x: jnp.sum((x @ w) ** 2)
    weights = np.full((4, 2), 0.3, np.float32)
    by_weights = 2 * BOTH.T @ (BOTH @ weights)
    by_batch = 2 * (BOTH @ weights) @ weights.T
    for run in (lambda f: f, px.jit):
        for spec, text in (((), "[4,2]"), ((None, "y"), "[4,2@y]")):
            square = run(px.grad(lambda a: jnp.sum(jnp.sin(a) @ a)))(put(ROWS, "x"))
            check(square, "[8@x,8]", np.cos(ROWS) * ROWS.sum(1) + np.sin(ROWS).sum(0)[:, None])
            found = run(px.grad(loss, (0, 1)))(put(weights, *spec), put(BOTH, "x"))
            check(found[0], text, by_weights)
            check(found[1], "[8@x,4]", by_batch)


@pytest.mark.parametrize("run", [lambda f: f, px.jit])
@pytest.mark.parametrize(
    ("f", "wanted"),
    [
        (lambda x: jnp.concatenate([x, np.zeros(4, np.float32)]), np.pad(BOTH, [(0, 0), (0, 4)])),
        (lambda x: jnp.zeros(8).at[:4].set(x), np.pad(BOTH, [(0, 0), (0, 4)])),
        (lambda x: lax.pad(np.ones(1, np.float32), x[0], [(0, 1, 0)]), np.stack([np.ones(8), BOTH[:, 0]], 1)),
        (lambda x: lax.select(np.arange(4) > 1, x, np.ones(4, np.float32)), np.where(np.arange(4) > 1, BOTH, 1)),
        (lambda x: lax.clamp(np.zeros(4, np.float32), np.ones(4, np.float32), x), np.minimum(BOTH, 1)),
    ],
)
def test_what_vmap_repeats_is_cut_as_what_it_maps(run, f, wanted):
    check(run(px.vmap(f))(put(BOTH, "x")), "@x," + str(wanted.shape[1]) + "]", wanted)


@pytest.mark.parametrize("run", [lambda f: f, px.jit])
@pytest.mark.parametrize(
    ("f", "wanted"),
    [
        (lambda w, x: lax.squeeze(w[:1], (0,)) * x[0], np.stack([BOTH[:, 0], *[np.zeros(8)] * 3], 1)),
        (lambda w, x: lax.rev(w, (0,)) * x, BOTH[:, ::-1]),
        (lambda w, x: w[np.array([0, 1, 1, 0])] * x, BOTH @ [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]),
    ],
)
def test_gradients_of_what_isn_t_mapped_are_cut_as_what_is(run, f, wanted):
    w = np.ones(4, np.float32)
    found = run(px.vmap(px.grad(lambda w, x: jnp.sum(f(w, x))), (None, 0)))(w, put(BOTH, "x"))
    check(found, "[8@x,4]", wanted)


def test_data_lie_on_the_mesh_in_force(mesh):
    for made in jnp.asarray(BOTH), jnp.array([1.0, 2.0]), jnp.array(3), jnp.copy(BOTH):
        assert made.committed and made.sharding == px.NamedSharding(mesh, P())
    here = px.device_put(BOTH)
    assert not here.committed and jnp.asarray(here) is here
    one = px.device_put(BOTH, px.devices()[1])
    assert jnp.asarray(one).devices() == {px.devices()[1]}
    assert px.jit(lambda: jnp.asarray(BOTH))().sharding.is_fully_replicated


def test_what_reshard_is_not_told():
    with pytest.raises(ValueError, match="out_shardings which are non-None"):
        px.reshard((BOTH, ROWS), (P("x"), None))
    assert px.reshard((BOTH, None), P("x"))[1] is None


def test_auto_and_explicit_axes():
    seen = []

    @auto_axes
    def add(x, y):
        seen.append((get_abstract_mesh().auto_axes, str(px.typeof(x))))
        return x + y

    b, c = put(ROWS, "x", None), put(ROWS, None, "x")
    for run in (lambda f: f, px.jit):
        check(run(lambda x, y: add(x, y, out_sharding=P("x", None)))(b, c), "[8@x,8]", ROWS + ROWS)
    assert seen == [(("x", "y"), "float32[8,8]")] * 2, seen
    double = auto_axes(lambda x: x * 2, axes="x")
    check(px.jit(lambda x: double(jnp.sin(x), out_sharding=P("x", "y")))(put(BOTH, "x", "y")), "@y]", np.sin(BOTH) * 2)
    grid = px.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    with px.set_mesh(grid):
        inner = explicit_axes(lambda x: seen.append(str(px.typeof(x * 2))) or x * 2)
        found = px.jit(lambda x: inner(x, in_sharding=P("x", "y")) + 1)(px.device_put(BOTH, P("x", "y")))
        np.testing.assert_allclose(found, BOTH * 2 + 1)
    assert seen[2] == "float32[8@x,4@y]", seen


def test_axes_that_types_do_not_tell_are_the_partitioners():
    with px.set_mesh(px.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))):
        found = px.jit(lambda a: jnp.sin(a) * 2)(put(BOTH, "x", "y"))
        assert str(px.typeof(found)) == "float32[8@x,4]" and found.sharding.spec == P("x", "y")
        close_everywhere(found, np.sin(BOTH) * 2, 2e-5, 1e-5)


def test_other_axes_of_the_same_devices():
    def doubled(x):
        with use_abstract_mesh(AbstractMesh((8,), ("a",), (AxisType.Explicit,))):
            return px.reshard(x, P("a", None)) * 2

    check(px.jit(doubled)(put(BOTH, "x", "y")), "[8@a,4]", BOTH * 2)


def test_manual_regions():
    @px.shard_map(out_specs=P("x", None))
    def product(x, y):
        return lax.psum_scatter(x @ y, "x", tiled=True)

    args = put(ROWS, None, "x"), put(ROWS, "x", None)
    for run in (lambda f: f, px.jit):
        check(run(lambda x, y: product(x, y))(*args), "[8@x,8]", ROWS @ ROWS)


def test_a_mesh_of_one():
    with px.set_mesh(px.make_mesh((1,), ("x",))):
        x = put(BOTH, "x")
        check(px.jit(lambda v: v * 2)(x), "[8@x,4]", BOTH * 2)
        check(x @ px.reshard(BOTH.T, P(None, None)), "[8@x,8]", BOTH @ BOTH.T)


def test_out_shardings_of_mapped_functions_leave_what_is_mapped_cut():
    x, y = put(np.ones((8, 2, 2), np.float32), "x", None, "y"), put(np.ones((2, 8, 2), np.float32), None, "x", "y")
    product = px.vmap(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, "y")), (0, 1), out_axes=2)
    rows, index = put(BOTH, "x"), put(np.arange(8) % 4, "x")
    entry = px.vmap(lambda row, i: row.at[i].get(out_sharding=px.typeof(row).sharding))
    for run in (lambda f: f, px.jit):
        check(run(product)(x, y), "[2,2@y,8@x]", np.full((2, 2, 8), 2))
        check(run(entry)(rows, index), "[8@x]", BOTH[np.arange(8), np.arange(8) % 4])


def test_maps_in_batches_larger_than_what_they_map_over():
    x = put(np.ones((5, 8, 3), np.float32), None, "x")
    for size in (2, 5, 10):
        check(lax.map(lambda row: row.sum(-1), x, batch_size=size), "[5,8@x]", np.full((5, 8), 3))


def test_bits_of_a_generator_are_cut_as_asked():
    state = np.uint32([1, 2, 3, 4])
    wanted = lax.rng_bit_generator(state, (4, 8))
    for run in (lambda f: f, px.jit):
        found = run(lambda s: lax.rng_bit_generator(s, (4, 8), out_sharding=P("x")))(state)
        check(found[0], "[4]", wanted[0])
        check(found[1], "[4@x,8]", wanted[1])


def test_operands_lie_on_the_mesh_in_force(mesh):
    x = put(BOTH, "x", "y")

    def product(x):
        with use_abstract_mesh(mesh.abstract_mesh.update_axis_types({"x": AxisType.Auto})):
            return x @ x.T

    with pytest.raises(ValueError, match=r"For primitive \w+, context mesh.*should match the aval mesh"):
        px.jit(product)(x)
    with pytest.raises(ValueError, match="use_abstract_mesh cannot change the size"):
        use_abstract_mesh(AbstractMesh((4,), ("x",)))
    outer = px.shard_map(lambda v: v + x.sum(), in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(NotImplementedError, match="Closing over inputs to shard_map"):
        outer(put(BOTH, "x"))


def test_constraints_name_the_axes_in_force():
    def constrained(x):
        with use_abstract_mesh(get_abstract_mesh().update(axis_sizes=(8, 1), axis_names=("a", "b"))):
            return lax.with_sharding_constraint(x, P(("a", "b"), None)) * 2

    with px.set_mesh(px.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)):
        found = px.jit(constrained)(put(BOTH, "x", "y"))
        assert found.sharding.shard_shape(found.shape) == (1, 4)
        close_everywhere(found, BOTH * 2, 2e-5, 1e-5)


def test_axes_of_their_type_already_stay():
    with px.set_mesh(px.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)):
        doubled = auto_axes(lambda x: x * 2, out_sharding=P("x"))
        assert "reshard" not in str(px.make_jaxpr(doubled)(BOTH))
        close_everywhere(px.jit(doubled)(BOTH), BOTH * 2, 2e-5, 1e-5)
    within = px.shard_map(lambda x: auto_axes(lambda v: v, out_sharding=P("x"))(x), in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(NotImplementedError, match="Going from `Manual`.*to `Auto` or `Explicit`"):
        within(put(BOTH, "x"))


def test_types_say_how_arrays_are_cut_whatever_the_mesh(mesh):
    uncut = NamedSharding(mesh.abstract_mesh, P(None, None))
    seen = []
    px.jit(lambda x: seen.append(x.aval.sharding) or x)(np.ones((3, 5)))
    assert seen == [uncut] and jnp.ones((3, 5)).aval.sharding == uncut and px.typeof(np.ones((3, 5))).sharding == uncut
    assert put(BOTH, "x").aval.sharding.spec == P("x", None)
    with px.set_mesh(None):
        assert jnp.ones(2).aval.sharding == NamedSharding(AbstractMesh((), ()), P(None))
    cut = NamedSharding(AbstractMesh((2,), ("x",), (AxisType.Explicit,)), P("x"))
    assert px.core.ShapedArray((8, 2), np.int32, sharding=cut).sharding.spec == P("x", None)
    with pytest.raises(ValueError, match="does not evenly divide the dimension size 5"):
        px.core.ShapedArray((5, 2), np.int32, sharding=cut)


def test_axes_of_which_types_do_not_tell_stay_where_they_are():
    half = px.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))

    def lies(found, text, spec, wanted):
        assert str(px.typeof(found)).endswith(text), px.typeof(found)
        assert found.sharding.is_equivalent_to(NamedSharding(half, spec), 2), found.sharding
        close_everywhere(found, wanted, 2e-5, 1e-5)

    with px.set_mesh(half):
        for run in (lambda f: f, px.jit):
            for spec in (P("y"), P(None, "y")):
                lies(run(lambda x: px.reshard(x, P()))(px.device_put(BOTH, spec)), "[8,4]", spec, BOTH)
            both = run(lambda x: px.reshard(x * 2, P(None, "x")))(put(BOTH, "y", "x"))
            lies(both, "[8,4@x]", P("y", "x"), BOTH * 2)
        lies(px.jit(lambda x: x * 2)(put(BOTH, ("x", "y"))), "[8@x,4]", P(("x", "y")), BOTH * 2)


def test_functions_of_the_partitioner_are_mapped():
    fun = px.vmap(auto_axes(lambda x: jnp.where(x > 1, jnp.ones(4), x), out_sharding=P()))
    for run in (lambda f: f, px.jit):
        check(run(fun)(put(BOTH, "x")), "[8@x,4]", np.minimum(BOTH, 1))


def test_constraints_that_hold_leave_no_trace():
    held = px.make_jaxpr(lambda x: lax.with_sharding_constraint(x * 2, P("x")))(put(BOTH, "x"))
    assert "constraint" not in str(held)


OTHER = {
    "names": {"axis_sizes": (2, 4), "axis_names": ("a", "b")},
    "types": {"axis_types": (AxisType.Auto, AxisType.Explicit)},
}


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_results_lie_along_the_axes_in_force(mesh, changes):
    other = mesh.abstract_mesh.update(**changes)
    last = other.axis_names[1]
    with use_abstract_mesh(other):
        made = [jnp.ones(8), jnp.ones(8) + 1, px.jit(lambda x: x * 2)(ROWS), jnp.asarray(ROWS), jnp.float32(3)]
        made += [px.random.key(0), px.random.PRNGKey(0), jnp.nonzero(ROWS)[0]]
        made += [px.reshard(jnp.ones(8), P(last)), jnp.zeros(8, out_sharding=P(last))]
        made += [jnp.dot(ROWS, ROWS, out_sharding=P(last))]
    for x in made:
        assert x.sharding.mesh.abstract_mesh == other and x.sharding.mesh.device_list == mesh.device_list
    check(made[-1], f"[8@{last},8]", ROWS @ ROWS)


def test_specs_of_jit_are_of_the_mesh_that_is_set(mesh):
    with use_abstract_mesh(mesh.abstract_mesh.update(axis_sizes=(2, 4), axis_names=("a", "b"))):
        for given in ({"out_shardings": P("a")}, {"in_shardings": P("a")}):
            with pytest.raises(ValueError, match=r"Resource axis: a of P\('a',\) is not found in mesh: \('x', 'y'\)"):
                px.jit(lambda x: x * 2, **given)(ROWS)


def test_specs_are_of_no_mesh_that_operands_lie_on(mesh):
    rows = put(ROWS, "x")
    calls = [
        lambda x: jnp.dot(x, x, out_sharding=P("x")),
        lambda x: px.reshard(x, P("y")),
        lambda x: jnp.reshape(x, (64,), out_sharding=P("y")),
        lambda x: x.at[jnp.arange(8)].get(out_sharding=P("y")),
    ]
    with px.set_mesh(None):
        for call in [*calls, *map(px.jit, calls)]:
            with pytest.raises(ValueError, match="Using PartitionSpec when you are not under a mesh context"):
                call(rows)
        with pytest.raises(ValueError, match="Context mesh cannot be empty"):
            explicit_axes(lambda x: x, in_sharding=P("x"))(rows)
        check(auto_axes(lambda x: x * 2, out_sharding=P("y"))(rows), "[8@x,8]", ROWS * 2)  # there is nothing to change
        check(auto_axes(lambda x: x * 2, out_sharding=NamedSharding(mesh, P("y")))(rows), "[8@y,8]", ROWS * 2)


def test_resharding_to_another_mesh(mesh):
    other = px.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    with pytest.raises(ValueError, match="cannot contain axis names that are of type Auto or Manual"):
        px.reshard(put(ROWS, "x"), NamedSharding(other, P("x")))
    with px.set_mesh(other):
        check(px.reshard(jnp.asarray(ROWS), NamedSharding(mesh, P("x"))), "[8@x,8]", ROWS)


JOINED = [
    lambda x, y: jnp.concatenate([x, y]),
    lambda x, y: jnp.stack([x, y]),
    lambda x, y: jnp.where(x > 2, x, y),
    lambda x, y: jnp.concatenate([x, jnp.sin(y)]),
]


@pytest.mark.parametrize("fun", JOINED)
def test_what_comes_from_the_host_is_cut_as_what_it_is_used_with(fun):
    rows, wanted = put(ROWS, "x"), np.asarray(fun(ROWS, ROWS + 1))
    for found in (px.jit(lambda x: fun(x, ROWS + 1))(rows), px.jit(lambda x, y: fun(x, y))(rows, ROWS + 1)):
        assert "8@x" in str(px.typeof(found)) or "16@x" in str(px.typeof(found))
        close_everywhere(found, wanted, 2e-5, 1e-5)
    with pytest.raises(ShardingTypeError):
        px.jit(lambda x: fun(x, jnp.ones((8, 8))))(rows)


def test_axes_of_one_device_may_be_left_out_of_types():
    with px.remove_size_one_mesh_axis_from_type(True), px.set_mesh(px.make_mesh((1, 2), ("x", "y"))):
        rows = put(ROWS, "x", "y")
        check_same = lambda x: lax.with_sharding_constraint(x, P("x", "y"))
        for run in (check_same, px.jit(check_same)):
            assert str(px.typeof(run(rows))) == "float32[8,8@y]"
        with pytest.raises(AssertionError, match=r"sharding: P\(None, 'y'\) did not match .* provided: P\('y', None\)"):
            lax.with_sharding_constraint(rows, P("y", "x"))


@pytest.mark.parametrize("run", [lambda f: f, px.jit], ids=["eager", "jit"])
def test_results_of_explicit_axes_lie_on_the_mesh_outside(mesh, run):
    outside = px.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    with px.set_mesh(outside):
        found = run(explicit_axes(lambda x: x * 2, in_sharding=P("x")))(ROWS)
        assert found.sharding.is_equivalent_to(NamedSharding(outside, P("x")), 2)
        assert {x.sharding.mesh for x in (found, found + 1)} == {outside}
        close_everywhere(found, ROWS * 2, 2e-5, 1e-5)
