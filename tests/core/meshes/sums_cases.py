"""Sums still to be made, in types of arrays on an explicit mesh of eight devices."""

from __future__ import annotations

import re

import numpy as np
import pytest

import polyax as px
import polyax.numpy as jnp
from polyax import lax
from polyax.errors import ShardingTypeError
from polyax.sharding import AxisType, NamedSharding
from polyax.sharding import PartitionSpec as P

A = np.arange(32, dtype=np.float32).reshape(4, 8) / 7
B = np.arange(32, dtype=np.float32).reshape(8, 4) / 9 - 1
SUM, SAME = P(None, None, unreduced={"x"}), P(None, None, reduced={"x"})


@pytest.fixture(autouse=True)
def mesh():
    with px.set_mesh(px.make_mesh((4, 2), ("x", "y"))) as made:
        yield made


def product(a=None, b=None):
    a = px.device_put(A, P(None, "x")) if a is None else a
    b = px.device_put(B, P("x", None)) if b is None else b
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=SUM)


def added(x):
    """What the parts on the devices are together."""
    assert str(px.typeof(x)).endswith("{U:x}"), px.typeof(x)
    return sum(np.asarray(p) for p in x.parts[::2])


def close(found, wanted, text=""):
    assert str(px.typeof(found)).endswith(text), px.typeof(found)
    np.testing.assert_allclose(np.asarray(found), wanted, 2e-5, 1e-5)


RUNS = [lambda f: f, px.jit]


@pytest.mark.parametrize("run", RUNS)
def test_products_whose_sum_is_still_to_be_made(run):
    found = run(product)()
    assert str(px.typeof(found)) == "float32[4,4]{U:x}" and found.sharding.spec.unreduced == {"x"}
    np.testing.assert_allclose(added(found), A @ B, 2e-5)
    np.testing.assert_allclose(added(run(lambda a: lax.reduce_sum(a, (1,), out_sharding=P(None, unreduced={"x"})))(
        px.device_put(A, P(None, "x")))), A.sum(1), 2e-5)  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_each_device_keeps_its_own_summand(run):
    a, b = px.device_put(A, P(None, "x")), px.device_put(B, P("x", None))
    summands = {p: A[:, 2 * p : 2 * p + 2] @ B[2 * p : 2 * p + 2] for p in range(4)}
    spec = P("y", None, unreduced={"x"})
    for product in (lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=spec),
                    lambda a, b: jnp.matmul(a, b, out_sharding=spec),
                    lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), out_sharding=spec)):  # fmt: skip
        for n, part in enumerate(run(product)(a, b).parts):
            place, half = divmod(n, 2)
            np.testing.assert_allclose(part, summands[place][2 * half : 2 * half + 2], 2e-5)


@pytest.mark.parametrize("run", RUNS)
def test_sums_are_made_by_reshard(run):
    u = product()
    close(run(lambda u: px.reshard(u, P()))(u), A @ B, "[4,4]")
    close(run(lambda u: px.reshard(u, P("x", None)))(u), A @ B, "[4@x,4]")
    close(run(lambda u: px.reshard(u, P(None, "y")))(u), A @ B, "[4,4@y]")
    close(run(lambda u: px.reshard(px.reshard(u, P("y", None, unreduced={"x"})), P()))(u), A @ B, "[4,4]")
    assert str(px.typeof(run(lambda u: px.reshard(u, SAME))(u))) == "float32[4,4]{R:x}"
    close(px.device_put(u, P("x")), A @ B, "[4@x,4]")


def test_what_devices_exchange_for_them():
    a, b = px.device_put(A, P(None, "x")), px.device_put(B, P("x", None))
    np.testing.assert_allclose(px.jit(product)(a, b).addressable_shards[0].data, A[:, :2] @ B[:2], 2e-5)

    def moves(f, *args):
        return [(m.collective, m.axes) for m in px.explain(f)(*args).moves]

    assert moves(product, a, b) == []
    assert moves(lambda u: u + u.T, product()) == []
    assert moves(lambda a, b: px.reshard(product(a, b) + product(a, b), P()), a, b) == [("psum", ("x",))]
    assert moves(lambda u: px.reshard(u, P("x", None)), product()) == [("reduce_scatter", ("x",))]


@pytest.mark.parametrize("run", RUNS)
def test_what_is_linear_gives_a_sum(run):
    u, whole = product(), A @ B
    scale = px.device_put(B[:4], SAME)
    for f, wanted in (
        (lambda u: u + u, whole + whole),
        (lambda u: u.T, whole.T),
        (lambda u: u.sum(0), whole.sum(0)),
        (lambda u: u.sum(), whole.sum()),
        (lambda u: u.reshape(2, 8), whole.reshape(2, 8)),
        (lambda u: u[1:3], whole[1:3]),
        (lambda u: jnp.concatenate([u, u]), np.concatenate([whole, whole])),
        (lambda u: jnp.stack([u, u]), np.stack([whole, whole])),
        (lambda u: jnp.broadcast_to(u, (2, 4, 4)), np.broadcast_to(whole, (2, 4, 4))),
        (lambda u: jnp.pad(u, 1), np.pad(whole, 1)),
        (lambda u: jnp.where(True, u, u), whole),
        (lambda u: u * scale, whole * B[:4]),
        (lambda u: lax.cond(True, lambda u: u + u, lambda u: u, u), 2 * whole),
        (lambda u: lax.scan(lambda c, _: (c + u, None), u, None, length=3)[0], 4 * whole),
        (lambda u: px.jit(lambda u: u + u)(u), 2 * whole),
        (lambda u: jnp.zeros_like(u), 0 * whole),
    ):
        np.testing.assert_allclose(added(run(f)(u)), wanted, 2e-4, 1e-5)


NEITHER = "is not implemented: it would need sums that are still to be made"
REFUSED = [
    (jnp.sin, NotImplementedError, f"unreduced rule for sin {NEITHER}, got f32[4,4]{{U:x}}. Make them first"),
    (lambda u: -u, NotImplementedError, f"unreduced rule for neg {NEITHER}"),
    (lambda u: u / 2.0, NotImplementedError, f"unreduced rule for div {NEITHER}"),
    (lambda u: u > 0, NotImplementedError, f"unreduced rule for gt {NEITHER}"),
    (lambda u: jnp.sort(u), NotImplementedError, f"unreduced/reduced rule for sort {NEITHER}"),
    (lambda u: u.max(), NotImplementedError, f"unreduced/reduced rule for reduce_max {NEITHER}"),
    (lambda u: u * u, ShardingTypeError, "lhs and rhs to `mul` cannot be unreduced since mul is bilinear"),
    (lambda u: u * 2.0, ShardingTypeError, "RHS should be reduced along the same axes LHS is unreduced on"),
    (lambda u: u + 1.0, ShardingTypeError, "lhs is unreduced while rhs is not"),
    (lambda u: np.ones((4, 4), "float32") + u, ShardingTypeError, "rhs is unreduced while lhs is not"),
    (lambda u: u @ u, ShardingTypeError, "lhs or rhs passed to dot_general cannot be unreduced"),
    (lambda u: u + px.reshard(u, P(unreduced={"x", "y"})), ShardingTypeError, "must be unreduced along the same mesh"),
    (lambda u: jnp.concatenate([u, A[:, :4]]), ShardingTypeError, "should be unreduced along the same mesh axes"),
    (lambda u: lax.with_sharding_constraint(u, P()), AssertionError, "acts as an assert"),
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("f", "error", "text"), REFUSED)
def test_what_isn_t_linear_needs_the_sum(run, f, error, text):
    with pytest.raises(error, match=re.escape(text)):
        run(f)(product())


def test_values_whose_cotangents_are_sums():
    r, x = px.device_put(B[:4], SAME), px.device_put(B, P("x"))
    assert str(px.typeof(r)) == "float32[4,4]{R:x}"
    for run in RUNS:
        close(run(lambda r: jnp.sin(r) + 1.0)(r), np.sin(B[:4]) + 1, "[4,4]{R:x}")
        close(run(lambda r, x: x @ r)(r, x), B @ B[:4], "[8@x,4]")
    with pytest.raises(ShardingTypeError, match="Inputs cannot be replicated on the same axes that another input"):
        px.jit(lambda r: r + B[:4])(r)
    with pytest.raises(ShardingTypeError, match="Inputs cannot be sharded/varying on the same axes"):
        px.jit(lambda r, c: r + c)(r, px.device_put(B[:4], P("x")))
    with pytest.raises(ShardingTypeError, match="should be reduced across the same mesh axes"):
        px.jit(lambda r: r + px.reshard(r, P(reduced={"y"})))(r)


@pytest.mark.parametrize("run", RUNS)
def test_the_gradient_of_what_is_the_same_is_a_sum_and_the_other_way_round(run):
    r, x = px.device_put(B[:4], SAME), px.device_put(B, P("x"))
    found = run(px.grad(lambda r, x: (x @ r).sum()))(r, x)
    np.testing.assert_allclose(added(found), px.grad(lambda r: (B @ r).sum())(B[:4]), 2e-5, 1e-5)
    a, b = px.device_put(A, P(None, "x")), px.device_put(B, P("x", None))
    slope = run(px.grad(lambda a, b: jnp.sin(px.reshard(product(a, b), P())).sum()))(a, b)
    close(slope, px.grad(lambda a: jnp.sin(a @ B).sum())(A), "[4,8@x]")
    text = str(px.make_jaxpr(px.grad(lambda a, b: px.reshard(product(a, b), P()).sum()))(a, b))
    assert "{U:x} = reshard" in text and "{R:x} = reshard" in text
    through = run(px.grad(lambda w: (px.reshard(w, SAME) * r).sum()))(px.device_put(B[:4], P()))
    close(through, B[:4], "[4,4]")


def test_gradients_are_added_up_over_steps_and_exchanged_once():
    x, r = px.device_put(np.stack([B, 2 * B, 3 * B]), P(None, "x")), px.device_put(B[:4], SAME)

    def total(r, x):
        def step(sums, x):
            return sums + px.grad(lambda r: jnp.sin(x @ r).sum())(r), None

        zero = px.reshard(jnp.zeros((4, 4)), SUM)
        return px.reshard(lax.scan(step, zero, x)[0], P())

    wanted = px.grad(lambda r: sum(jnp.sin(k * B @ r).sum() for k in (1, 2, 3)))(B[:4])
    close(px.jit(total)(r, x), wanted, "[4,4]")
    assert [(m.collective, m.times) for m in px.explain(total)(r, x).moves] == [("psum", 1)]


def test_arrays_of_which_devices_have_parts_of_a_sum(mesh):
    u = px.device_put(B[:4], SUM)
    assert [float(np.abs(p).sum() > 0) for p in u.parts] == [1, 1, 0, 0, 0, 0, 0, 0]
    np.testing.assert_array_equal(added(u), B[:4])
    assert repr(u) == str(u) == f"{u}" == f"Array(shape=(4, 4), dtype=float32, sharding={u.sharding})"
    assert not u.is_fully_replicated and u.sharding.shard_shape((4, 4)) == (4, 4)
    assert u.sharding.replicated_axes == {"y"}
    with pytest.raises(NotImplementedError, match="device_indices_map doesn't work with unreduced"):
        np.asarray(u)
    close(px.device_put(u, px.devices()[1]), B[:4])
    assert px.device_put(px.device_put(B[:4], P("x")), SUM).sharding == NamedSharding(mesh, SUM)
    np.testing.assert_array_equal(added(px.jit(lambda x: x, out_shardings=SUM)(px.device_put(B[:4], P()))), B[:4])


@pytest.mark.parametrize("run", RUNS)
def test_blocks_become_parts_of_a_sum_where_they_lie(run):
    x = px.device_put(A, P("x", "y"))
    u = px.device_put(x, P("x", None, unreduced={"y"}))
    assert str(px.typeof(u)) == "float32[4@x,8]{U:y}"
    for n, part in enumerate(u.parts):
        own = np.zeros_like(A[:1])
        own[0, 4 * (n % 2) : 4 * (n % 2) + 4] = A[n // 2, 4 * (n % 2) : 4 * (n % 2) + 4]
        np.testing.assert_array_equal(part, own)
    close(run(lambda u: px.reshard(u, P()))(u), A, "[4,8]")
    for before, after in ((P(("x", "y")), P("x", unreduced={"y"})), (P("x", "y"), P(unreduced={"x"}))):
        put = px.device_put(px.device_put(np.tile(A, (2, 1)), before), after)
        close(run(lambda u: px.reshard(u, P()))(put), np.tile(A, (2, 1)), "[8,8]")


def test_specs_that_are_refused(mesh):
    auto = px.make_mesh((8,), ("x",), (AxisType.Auto,))
    a, b = px.device_put(A, P(None, "x")), px.device_put(B, P("x", None))
    for make, error, text in (
        (lambda: P("x", unreduced={"x"}), ValueError, "partitions cannot overlap with unreduced axes"),
        (lambda: P("x", reduced={"x"}), ValueError, "partitions cannot overlap with reduced axes"),
        (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "cannot overlap. Got unreduced"),
        (lambda: P(unreduced="x"), TypeError, "unreduced argument of PartitionSpec should be of type"),
        (lambda: P(reduced={None}), ValueError, "reduced cannot contain None"),
        (lambda: NamedSharding(mesh, P(unreduced={"z"})), ValueError, "Unreduced axes z is not found in mesh"),
        (lambda: NamedSharding(auto, P(reduced={"x"})), ValueError, "Reduced axes can only refer to mesh axes that is"),
        (lambda: [*SUM], ValueError, "Using *pspec is dangerous"),
        (lambda: SUM[0], ValueError, "Using pspec[...] is dangerous"),
        (lambda: SUM + ("y",), TypeError, "cannot be of instance `tuple` when self"),
        (lambda: ("y",) + SAME, TypeError, "has reduced in `__radd__` of PartitionSpec"),
        (lambda: jnp.dot(a, b, out_sharding=P(unreduced={"y"})), ShardingTypeError, "unreduced axes should be in"),
        (lambda: jnp.dot(A, b, out_sharding=P(unreduced={"x"})), ShardingTypeError, "unreduced axes should be in"),
    ):  # fmt: skip
        with pytest.raises(error, match=re.escape(text)):
            make()
    assert repr(P("x", unreduced={"y"}) + P("z", reduced={"w"})) == "P('x', 'z', unreduced={'y'}, reduced={'w'})"


# --- inside shard_map

V = np.arange(16, dtype=np.float32) / 5
W = np.arange(2, dtype=np.float32) + 1
ROW = P(("x", "y"))
AXES = ("x", "y")
SUMS, REDUCED = P(unreduced={*AXES}), P(reduced={*AXES})


def mapped(f, ins, outs, *args):
    return px.shard_map(f, in_specs=ins, out_specs=outs)(*args)


def cast(x, to):
    return lax.pcast(x, AXES, to=to)


def shown(x, text):
    assert str(px.typeof(x)).endswith(text), px.typeof(x)
    return x


@pytest.mark.parametrize("run", RUNS)
def test_what_varies_becomes_a_sum(run):
    x = px.device_put(V, ROW)
    total = V.reshape(8, 2).sum(0)
    found = run(lambda x: mapped(lambda x: shown(cast(x, "unreduced"), "{U:(x,y)}"), ROW, SUMS, x))(x)
    np.testing.assert_allclose(sum(np.asarray(p) for p in found.parts), total, 1e-5)
    assert str(px.typeof(found)) == "float32[2]{U:(x,y)}" and [p.tolist() for p in found.parts[:1]] == [V[:2].tolist()]
    close(run(lambda u: px.reshard(u, P()))(found), total, "[2]")
    implied = run(lambda x: mapped(lambda x: x, ROW, SUMS, x))(x)
    close(px.reshard(implied, P()), total)
    close(run(lambda x: mapped(lambda x: shown(lax.psum(cast(x, "unreduced"), AXES), "[2]"), ROW, P(), x))(x), total)
    through = run(lambda u: mapped(lambda u: lax.psum(shown(u, "[2]{U:(x,y)}") + u, AXES), SUMS, P(), u))
    close(through(found), 2 * total)


@pytest.mark.parametrize("run", RUNS)
def test_parts_of_sums_and_gathering_what_is_reduced(run):
    x = px.device_put(V, ROW)

    def parts(x):
        many = cast(jnp.tile(x, 4), "unreduced")
        return shown(lax.psum_scatter(many, AXES, tiled=True), "[1]{V:(x,y)}")

    close(run(lambda x: mapped(parts, ROW, ROW, x))(x), np.tile(V.reshape(8, 2).sum(0), 4), "[8@(x,y)]")
    whole = run(lambda x: mapped(lambda x: lax.all_gather(x, AXES, to="reduced", tiled=True), ROW, REDUCED, x))
    close(whole(x), V, "[16]{R:(x,y)}")
    with pytest.raises(ValueError, match="Got unexpected `to` value 'neither'"):
        mapped(lambda x: lax.all_gather(x, AXES, to="neither"), ROW, ROW, x)
    with pytest.raises(NotImplementedError, match="to='invarying'"):
        mapped(lambda x: lax.all_gather(x, AXES, to="invarying", axis_index_groups=[list(range(8))]), ROW, ROW, x)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("tiled", [True, False])
def test_what_is_gathered_is_the_same_everywhere(run, tiled):
    x, weights = px.device_put(V, ROW), np.arange(16, dtype=np.float32).reshape((16,) if tiled else (8, 2))
    gather = lambda x: lax.all_gather(x, AXES, to="invarying", tiled=tiled)
    whole = lambda x: mapped(lambda x: shown(gather(x), "[16]" if tiled else "[8,2]"), ROW, P(), x)
    close(run(whole)(x), V.reshape(weights.shape))
    close(run(px.grad(lambda x: (whole(x) * weights).sum()))(x), weights.ravel(), "[16@(x,y)]")
    many = px.device_put(np.stack([V, 2 * V]), P(None, *ROW))
    close(run(px.vmap(whole))(many), np.stack([V, 2 * V]).reshape(2, *weights.shape))
    shared = mapped(lambda w: gather(w[:2]), P(), P(), px.device_put(V, P()))
    close(shared, np.tile(V[:2], 8).reshape(weights.shape))


@pytest.mark.parametrize("run", RUNS)
def test_the_gradient_of_a_reduced_parameter_is_a_sum(run):
    x, w = px.device_put(V, ROW), px.device_put(W, REDUCED)
    assert str(px.typeof(w)) == "float32[2]{R:(x,y)}"

    def loss(w, x):
        return mapped(lambda w, x: jnp.sin(shown(w, "{R:(x,y)}") * x), (REDUCED, ROW), ROW, w, x).sum()

    wanted = px.grad(lambda w: jnp.sin(jnp.tile(w, 8) * V).sum())(W)
    slope = run(px.grad(loss))(w, x)
    assert str(px.typeof(slope)) == "float32[2]{U:(x,y)}"
    close(px.reshard(slope, P()), wanted)

    def summed(w, x):
        return lax.psum(jnp.sin(cast(w, "reduced") * x).sum(), AXES)

    close(run(px.grad(lambda w, x: mapped(summed, (P(), ROW), P(), w, x)))(px.device_put(W, P()), x), wanted, "[2]")
    text = str(px.make_jaxpr(px.grad(lambda w, x: mapped(summed, (P(), ROW), P(), w, x)))(px.device_put(W, P()), x))
    for name in ("preduced[", "reduced_vary_cast_p[", "vary_unreduced_cast_p[", "unreduced_psum["):
        assert name in text


def test_the_gradient_of_what_is_gathered_is_scattered():
    def first(x, y):
        return (lax.all_gather(x, AXES, to="reduced", tiled=True)[:2] * y).sum()[None]

    x = px.device_put(V, ROW)
    slope = px.grad(lambda x: mapped(first, (ROW, ROW), ROW, x, x * 0 + 1).sum())(x)
    close(slope, [8.0] * 2 + [0.0] * 14, "[16@(x,y)]")


def test_sums_inside_other_transformations():
    x = px.device_put(V, ROW)

    def steps(x):
        first = cast(x, "unreduced")
        return lax.psum(lax.scan(lambda c, _: (c + cast(x, "unreduced"), None), first, None, length=3)[0], AXES)

    close(px.jit(lambda x: mapped(steps, ROW, P(), x))(x), 4 * V.reshape(8, 2).sum(0))
    many = px.device_put(np.stack([V, 2 * V, 3 * V]), P(None, AXES))
    each = px.vmap(lambda x: mapped(lambda x: lax.psum(cast(x, "unreduced"), AXES), ROW, P(), x))(many)
    close(each, np.outer([1, 2, 3], V.reshape(8, 2).sum(0)))
    parts = px.vmap(
        lambda x: mapped(lambda x: lax.psum_scatter(cast(jnp.tile(x, 4), "unreduced"), AXES, tiled=True), ROW, ROW, x)
    )
    close(parts(many), np.outer([1, 2, 3], np.tile(V.reshape(8, 2).sum(0), 4)))


def test_rules_of_users_for_what_is_reduced():
    """Their results are typed as those of functions; a cotangent that they leave out is a sum of nothings."""

    @px.custom_vjp
    def scaled(x):
        return x * x

    scaled.defvjp(lambda x: (x * x, x), lambda x, g: (x * g,))

    @px.custom_vjp
    def stopped(x):
        return x

    stopped.defvjp(lambda x: (x, None), lambda _, g: (None,))
    x = px.device_put(V, P(reduced={"x"}))
    for f, wanted in (scaled, V), (stopped, 0 * V):
        loss = lambda x, f=f: mapped(f, P(reduced={"x"}), P(reduced={"x"}), x).sum()
        slope = px.jit(px.grad(loss))(x)
        assert str(px.typeof(slope)).endswith("{U:x}")
        np.testing.assert_allclose(added(slope), wanted)
    outside = px.jit(px.grad(lambda x: stopped(x).sum()))(x)
    assert str(px.typeof(outside)).endswith("{U:x}")


def test_casts_that_say_nothing():
    with pytest.raises(ValueError, match="should be called under polyax.shard_map"):
        lax.pcast(V, "x", to="varying")
    with pytest.raises(ValueError, match="Unsupported pcast from=invarying, to='unreduced'"):
        px.shard_map(lambda x: cast(x, "unreduced"), in_specs=P(), out_specs=P(), check_vma=False)(V)


WRONG = [
    (lambda x, w: cast(w, "unreduced"), ValueError, "Unsupported pcast from=invarying, to='unreduced'"),
    (lambda x, w: cast(cast(w, "reduced"), "unreduced"), ValueError, "Unsupported pcast from=reduced, to='unreduced'"),
    (lambda x, w: cast(cast(x, "unreduced"), "varying"), ValueError, "Unsupported pcast from=unreduced, to='varying'"),
    (lambda x, w: jnp.sin(cast(x, "unreduced")), NotImplementedError, "unreduced rule for sin is not implemented"),
    (lambda x, w: cast(x, "unreduced") + x, ValueError, "pvary cannot accept args which are unreduced"),
    (lambda x, w: lax.pmax(cast(x, "unreduced"), AXES), ValueError, "pvary cannot accept args which are unreduced"),
    (lambda x, w: lax.psum(cast(w, "reduced"), AXES), ValueError, "pvary cannot accept args which are reduced"),
    (lambda x, w: lax.all_gather(cast(w, "reduced"), AXES), ValueError, "pvary cannot accept args which are reduced"),
    (lambda x, w: cast(w, "reduced") + w, ShardingTypeError, "Inputs cannot be replicated on the same axes"),
    (lambda x, w: cast(x, "unreduced"), ValueError, "should be equal to the unreduced present on the out_aval"),
    (lambda x, w: cast(w, "reduced"), ValueError, "should be equal to the reduced present on the out_aval"),
    (lambda x, w: lax.psum(lax.pcast(x, "x", to="unreduced"), AXES), ValueError, "corresponds to one of varying"),
]


@pytest.mark.parametrize(("f", "error", "text"), WRONG)
def test_what_is_refused_inside(f, error, text):
    with pytest.raises(error, match=re.escape(text)):
        mapped(f, (ROW, P()), ROW, px.device_put(V, ROW), px.device_put(W, P()))


def test_specs_of_regions_that_are_refused(mesh):
    x = px.device_put(V, ROW)
    with pytest.raises(ValueError, match=r"does not match the specs of the input: P\(\('x', 'y'\),\)"):
        mapped(lambda x: x, P(unreduced={"x"}), ROW, x)
    with pytest.raises(NotImplementedError, match="when shard_map is in full manual mode"):
        px.shard_map(lambda x: x, in_specs=P("x"), out_specs=P(unreduced={"x"}), axis_names={"x"})(x)
    auto = px.make_mesh((8,), ("i",), (AxisType.Auto,))
    with px.set_mesh(auto), pytest.raises(ValueError, match="Unreduced axes can only refer to mesh axes"):
        px.shard_map(lambda x: x, in_specs=P("i"), out_specs=P(unreduced={"i"}))(V)


@pytest.mark.parametrize(
    ("ins", "outs", "slope", "told"),
    [
        (P(), P(unreduced={"x"}), 1, ""),
        (P("x"), P(unreduced={"x"}), 0.25, ""),
        (P(), P(reduced={"x"}), 1, ""),
        (P(unreduced={"x"}), P(), 1, "{R:x}"),
        (P(unreduced={"x"}), P("x"), 4, "{R:x}"),
        (P(unreduced={"x"}), P(reduced={"x"}), 1, "{R:x}"),
        (P(reduced={"x"}), P("x"), 4, "{U:x}"),
    ],
    ids=str,
)
def test_cotangents_of_sums_where_types_don_t_tell(ins, outs, slope, told):
    """Along axes that a spec doesn't name, a cotangent is shared out, and those of all are added up; sums and what is
    reduced take each other's place."""
    x = px.jit(lambda x: px.reshard(x, ins))(A)
    f = px.shard_map(lambda x: x, in_specs=ins, out_specs=outs, check_vma=False)
    assert px.jit(f)(x).sharding.spec.reduced == outs.reduced
    for run in RUNS:
        found = run(px.grad(lambda x: px.reshard(f(x), P()).sum()))(x)
        assert str(px.typeof(found)).endswith(told)
        close(px.reshard(found, P()), np.full(A.shape, slope, np.float32))


def test_sums_of_what_has_a_sum_as_its_cotangent():
    @px.shard_map(out_specs=P(reduced={"y"}))
    def total(x):
        rows = lax.all_gather(x, "y", axis=1, tiled=True, to="reduced")
        return lax.psum(rows.sum(), "x")

    x = px.device_put(A, P("x", "y"))
    found = px.jit(total)(x)
    assert found.sharding.spec == P(reduced={"y"})
    np.testing.assert_allclose(found, A.sum(), rtol=1e-5)
    np.testing.assert_array_equal(px.jit(px.grad(total))(x), np.ones_like(A))
