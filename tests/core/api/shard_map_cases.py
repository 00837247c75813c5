"""What ``shard_map`` promises, on eight devices. Run by ``test_shard_map.py``, which gives it several."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.control.inner.programs import run
from polyax.control.spmd import on_one_device
from polyax.experimental.shard_map import shard_map as old_shard_map
from polyax.meshes.sharding import DuplicateSpecError
from polyax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from polyax.sharding import PartitionSpec as P
from support.parts import close_everywhere

N = len(polyax.devices())
pytestmark = pytest.mark.skipif(N < 8, reason="run by test_shard_map.py, with several devices")

AUTO, GRID, ROWS = (AxisType.Auto,) * 2, P("x", "y"), P("x")
X = np.arange(32, dtype=np.float32).reshape(8, 4) / 7
W = np.arange(4, dtype=np.float32) / 3 + 1


def mesh():
    return polyax.make_mesh((4, 2), ("x", "y"), AUTO)


def line():
    return polyax.make_mesh((8,), ("i",), (AxisType.Auto,))


def close(got, expected, tolerance=1e-5):
    close_everywhere(got, expected, tolerance, 1e-5)


def mapped(f, ins=GRID, outs=GRID, **options):
    return polyax.shard_map(f, mesh=mesh(), in_specs=ins, out_specs=outs, **options)


def everywhere(f, *args):
    """Eager, jitted, and as a program that another program holds."""
    eager = f(*args)
    expected = np.asarray(eager)
    close(eager, expected)
    close(polyax.jit(f)(*args), expected)
    close(polyax.jit(lambda *xs: polyax.jit(f)(*xs) * 1)(*args), expected)
    return expected


# --- blocks


def test_each_device_has_its_block():
    shapes = []

    @functools.partial(polyax.shard_map, mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"))
    def f(x):
        shapes.append(x.shape)
        return x + lax.axis_index("x") * 10 + lax.axis_index("y") * 100

    places = np.repeat(np.arange(4), 2)[:, None] * 10 + np.repeat(np.arange(2), 2) * 100
    close(everywhere(f, X), X + places)
    assert set(shapes) == {(2, 2)}
    y = f(X)
    assert y.sharding == NamedSharding(mesh(), P("x", "y")) and y.shape == X.shape
    close(f(polyax.device_put(X, y.sharding)), X + places)


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x")])
def test_a_dimension_is_cut_along_several_axes(names):
    f = mapped(lambda x: x + lax.axis_index(names), P(names), P(names))
    close(everywhere(f, X), X + np.arange(8)[:, None])
    gathered = mapped(lambda x: lax.all_gather(x, names, tiled=True), P(names), P(None), check_vma=False)
    close(everywhere(gathered, X), X)


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x")])
def test_on_one_device_the_blocks_are_the_same(names):
    f = mapped(lambda x: x * (1 + lax.axis_index("x")) + lax.axis_index("y"), P(names), P(names))
    (eqn,) = polyax.make_jaxpr(f)(X).eqns
    params = eqn.params
    program = on_one_device(params["jaxpr"], params["mesh"].axes, params["in_specs"], params["out_specs"])
    close(polyax.jit(lambda x: run(program, [x])[0])(X), np.asarray(f(X)))


def test_specs_are_prefixes_of_trees():
    def f(a, b):
        return {"sum": a["u"] + a["v"] + b, "b": (b, None)}

    g = mapped(f, ({"u": P("x"), "v": P()}, None), {"sum": P("x"), "b": P()})
    out = polyax.jit(g)({"u": X, "v": W}, np.float32(2))
    close(out["sum"], X + W + 2)
    assert out["b"] == (2, None) and out["b"][0].is_fully_replicated
    assert mapped(lambda: None, (), None)() is None


def test_arguments_without_a_spec_need_not_be_arrays():
    setting, seen = object(), []

    def f(given, x, *others):
        seen.append((given["a"], *others))
        return x + 1

    g = mapped(f, ins=({"a": None}, GRID, None, None))
    close(g({"a": setting}, X, None, setting), X + 1)
    close(g({"a": setting}, X, None, setting), X + 1)
    assert seen == [(setting, None, setting)]
    close(g({"a": "text"}, X, None, setting), X + 1)
    assert len(seen) == 2 and seen[1][0] == "text"
    with pytest.raises(ValueError, match="divisible"):
        g({"a": setting}, X[:3], None, setting)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        mapped(f, ins=(None, GRID, P()))({"a": setting}, X, setting)


def test_constraints_inside_name_axes_that_are_not_mapped():
    def f(x):
        return lax.with_sharding_constraint(x, NamedSharding(mesh(), GRID))

    for names, told in ({"x"}, "'x',"), ({"x", "y"}, "'x', 'y'"):
        g = mapped(f, ins=P("x"), outs=P("x"), axis_names=names, check_vma=False)
        with pytest.raises(ValueError, match=rf"pspec P\('x', 'y'\) contains a manual axes \({told}\) of mesh"):
            polyax.jit(g)(X)


def test_the_axis_that_cuts_what_is_mapped_cuts_no_residuals():
    batch = np.arange(64, dtype=np.float32).reshape(4, 16)
    f = mapped(lambda x: jnp.sin(jnp.sum(x)), P("y"), P(), check_vma=False)
    wanted = polyax.vmap(polyax.grad(f))(batch)
    for g in (lambda h: h, polyax.jit):
        close(g(polyax.vmap(polyax.grad(f), spmd_axis_name="x"))(batch), wanted)
    for ins, outs in (P("x"), P("x")), (P("y"), P(("x", "y"))):
        g = mapped(jnp.sin, ins, outs, check_vma=False)
        with pytest.raises(ValueError, match="vmap spmd_axis_name cannot appear in shard_map"):
            polyax.vmap(g, spmd_axis_name="x")(batch)


def test_scalars_need_specs_without_entries():
    with pytest.raises(ValueError, match=r"which has rank 0 (?s:.)*consider using an in_specs entry of `P\(\)`"):
        mapped(lambda x: x, ins=P(None))(3.0)


def test_the_mesh_in_force_is_taken():
    with polyax.set_mesh(line()):
        f = polyax.shard_map(lambda x: lax.psum(x, "i"), in_specs=P("i"), out_specs=P())
        close(everywhere(f, X), X.sum(0, keepdims=True))
        g = polyax.smap(lambda x: x * lax.axis_index("i"), in_axes=0, out_axes=0, axis_name="i")
        close(g(X), X * np.arange(8)[:, None])
        with pytest.raises(ValueError, match="(?s)context mesh.*should match the mesh passed to shard_map"):
            mapped(lambda x: x)(X)
    with pytest.raises(ValueError, match="The context mesh cannot be empty"):
        polyax.shard_map(lambda x: x, in_specs=P("i"), out_specs=P("i"))(X)


def test_a_mesh_without_devices_takes_those_of_the_arguments():
    f = polyax.shard_map(lambda x: x * 2, mesh=mesh().abstract_mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="Please pass `polyax.Array`s with a `NamedSharding`"):
        f(X)
    told = r"Mesh shape of the input \(\('i', 8\),\) does not match the mesh shape passed to shard_map \(\('x', 4\), "
    with pytest.raises(ValueError, match=told):
        f(polyax.device_put(X, NamedSharding(line(), P("i"))))
    close(f(polyax.device_put(X, NamedSharding(mesh(), P("x")))), X * 2)


def test_the_older_name():
    f = old_shard_map(lambda x: lax.psum(x, "x"), mesh(), P("x"), P(), check_rep=False)
    close(f(X), X.reshape(4, 2, 4).sum(0))
    close(old_shard_map(lambda x: lax.psum(x, "x"), mesh(), P("x"), P(), auto=frozenset({"y"}))(X), f(X))


def test_methods_and_names():
    class Model:
        scale = 3

        @functools.partial(polyax.shard_map, mesh=mesh(), in_specs=(None, P("x")), out_specs=P("x"))
        def double(self, x):
            """Twice."""
            return x * 2

    assert Model.double.__name__ == "double" and Model.double.__doc__ == "Twice."


# --- types


def types(f, *args, ins=GRID, outs=GRID):
    found = []

    def g(*xs):
        y = f(*xs)
        found.append(str(polyax.typeof(y)))
        return y

    polyax.make_jaxpr(mapped(g, ins, outs))(*(args or (X,)))
    return found[0]


def test_types_tell_along_which_axes_values_vary():
    assert types(lambda x: x) == "float32[2,2]{V:(x,y)}"
    assert types(lambda x: x, ins=P("x"), outs=P("x")) == "float32[2,4]{V:x}"
    assert types(lambda x: x, ins=P(), outs=P()) == "float32[8,4]"
    assert types(lambda x: x + 1, ins=P(), outs=P()) == "float32[8,4]"
    assert types(lambda x: lax.psum(x, "x"), outs=P(None, "y")) == "float32[2,2]{V:y}"
    assert types(lambda x: lax.pmean(x, ("x", "y")), outs=P()) == "float32[2,2]"
    assert types(lambda x: lax.pmax(x, "y"), outs=P("x")) == "float32[2,2]{V:x}"
    assert types(lambda x: lax.all_gather(x, "x")[0]) == "float32[2,2]{V:(x,y)}"
    assert types(lambda x: lax.ppermute(x, "y", [(0, 1)]), ins=P("x")) == "float32[2,4]{V:(x,y)}"
    assert types(lambda x: lax.psum_scatter(x, "y", tiled=True), ins=P(), outs=P("y")) == "float32[4,4]{V:y}"
    assert types(lambda x: x + lax.axis_index("y"), ins=P("x"), outs=P("x", "y")) == "float32[2,4]{V:(x,y)}"
    assert types(lambda x: lax.pcast(x, "x", to="varying"), ins=P(), outs=P("x")) == "float32[8,4]{V:x}"
    assert types(lambda x: lax.pvary(x, ("y", "x")), ins=P(), outs=P("x", "y")) == "float32[8,4]{V:(x,y)}"
    assert types(lambda x: x * lax.axis_size(("x", "y")), ins=P("x"), outs=P("x")) == "float32[2,4]{V:x}"
    assert types(lambda x: polyax.jit(jnp.sin)(x), ins=P("y"), outs=P("y")) == "float32[4,4]{V:y}"
    assert types(lambda x: polyax.vmap(jnp.sum)(x), ins=P("y"), outs=P("y")) == "float32[4]{V:y}"
    assert types(lambda x: lax.scan(lambda c, v: (c, v), 0, x)[1], ins=P("y"), outs=P("y")) == "float32[4,4]{V:y}"


def test_what_is_made_alike_varies_alike():
    seen = {}
    with_value = (lambda v: jnp.full_like(v, 2), lambda v: lax.full_like(v, 1), lambda v: jnp.zeros_like(v, shape=(3,)))

    def f(x):
        for made in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, *with_value):
            seen.setdefault(polyax.typeof(made(x)).vma, []).append(made)
        assert polyax.typeof(jnp.zeros(x.shape)).vma == frozenset()
        return lax.fori_loop(0, 2, lambda _, c: c + x, jnp.zeros_like(x))

    close(mapped(f, P("x"), P("x"))(X), 2 * X)
    assert {axes: len(of) for axes, of in seen.items()} == {frozenset("x"): 6}


def test_operands_are_made_to_vary_alike():
    text = str(polyax.make_jaxpr(mapped(lambda x, w: lax.psum(x * w, "x"), (P("x"), P()), P()))(X, W))
    assert "pvary[axes=('x',)]" in text and "psum_invariant[axes=('x',)]" in text
    assert "shard_map[" in text and "in_specs=(P('x',), P())" in text and "newly_manual_axes=" in text
    unchecked = str(
        polyax.make_jaxpr(mapped(lambda x, w: lax.psum(x * w, "x"), (P("x"), P()), P(), check_vma=False))(X, W)
    )
    assert "pvary" not in unchecked and "psum[" in unchecked and "V:" not in unchecked


def test_nothing_is_said_of_values_outside():
    seen = []
    mapped(lambda x: x)(X)
    polyax.jit(lambda x: seen.append(str(polyax.typeof(mapped(jnp.sin)(x)))))(X)
    assert seen == ["float32[8,4]"]


def test_what_may_not_be_cast():
    with pytest.raises(ValueError, match="Unsupported pcast from=varying, to='varying'"):
        mapped(lambda x: lax.pcast(x, "x", to="varying"))(X)
    with pytest.raises(ValueError, match="Got unexpected `to` value"):
        mapped(lambda x: lax.pcast(x, "x", to="somehow"))(X)
    with pytest.raises(ValueError, match="Unsupported pcast from=varying, to='reduced'"):
        mapped(lambda x: lax.pcast(x, "x", to="reduced"))(X)
    with pytest.raises(NameError, match="unbound axis name: z"):
        mapped(lambda x: lax.pcast(x, "z", to="varying"))(X)
    with pytest.raises(NotImplementedError, match="check_vma=False"):
        mapped(lambda x: lax.psum(x, "x", axis_index_groups=[[0, 1], [2, 3]]))(X)


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: lax.scan(lambda c, v: (c + v.sum(), c), jnp.zeros(()), x)[0][None],
        lambda x: lax.fori_loop(0, 3, lambda _, c: c + x.sum(), jnp.zeros(()))[None],
        lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + x.sum() + 1, jnp.zeros(()))[None],
        lambda x: lax.cond(True, lambda v: v[0], lambda v: jnp.zeros(2), x),
    ],
)
def test_carries_and_branches_have_to_vary_alike(loop):
    with pytest.raises(
        TypeError, match=r"(?s)manual axis types do not match.*pcast\(\.\.\., \('x', 'y'\), to='varying'\)"
    ):
        mapped(loop, outs=P(("x", "y")))(X)
    mapped(loop, outs=P(("x", "y")), check_vma=False)(X)


def test_carries_that_were_cast():
    def total(x):
        start = lax.pcast(jnp.zeros(2), ("x", "y"), to="varying")
        return lax.scan(lambda c, v: (c + v, c), start, x)[0][None]

    close(everywhere(mapped(total), X), X.reshape(4, 2, 4).sum(1))


def test_loops_of_the_library():
    key = polyax.random.PRNGKey(1)
    for draw in (polyax.random.gamma, polyax.random.poisson):
        f = mapped(lambda x, draw=draw: draw(polyax.random.fold_in(key, lax.axis_index("x")), x + 1), ROWS, ROWS)
        one = np.concatenate(
            [draw(polyax.random.fold_in(key, n), b + 1) for n, b in enumerate(X.reshape(4, 2, 4))], axis=0
        )
        close(f(X), one)
        g = mapped(lambda x, draw=draw: draw(key, x + 1), ROWS, ROWS)
        close(g(X)[:2], draw(key, X[:2] + 1))


# --- derivatives

KERNELS = {
    "a sum": (lambda x, w: lax.psum(jnp.sin(x) * w, "x"), P()),
    "a mean of both": (lambda x, w: lax.pmean(jnp.sin(x * w).sum(), ("x", "y")), P()),
    "what varies": (lambda x, w: jnp.sin(x) * w + lax.psum(x, "x"), P("x")),
    "gathered": (lambda x, w: x * lax.all_gather(x * w, "x", tiled=True).sum(), P("x")),
    "scattered": (lambda x, w: lax.psum_scatter(jnp.tile(x * w, (4, 1)), "x", tiled=True), P("x")),
    "permuted": (lambda x, w: x * lax.ppermute(jnp.sin(x * w), "x", [(n, (n + 1) % 4) for n in range(4)]), P("x")),
    "exchanged": (lambda x, w: x * lax.all_to_all(jnp.sin(x * w), "x", 1, 0, tiled=True).reshape(2, 4), P("x")),
    "in a scan": (
        lambda x, w: lax.scan(lambda c, v: (jnp.sin(c * v) * w, c), lax.pcast(w, "x", to="varying"), x)[0][None],
        ROWS,
    ),
    "in a scan over parameters": (lambda x, w: lax.scan(lambda c, v: (c * v, c), x, w)[0], P("x")),
    "in a branch": (lambda x, w: lax.cond(x.sum() > 9, lambda a, b: a * b, lambda a, b: a - b, x, w), P("x")),
    "in jit and checkpoint": (lambda x, w: polyax.checkpoint(polyax.jit(lambda a, b: jnp.sin(a * b)))(x, w), P("x")),
    "an inner derivative": (lambda x, w: polyax.grad(lambda v: jnp.sum(jnp.sin(x * v)))(w), P()),
}  # fmt: skip


ONLY_TYPED = {"an inner derivative"}
"""Where only types say that what is collected is the same everywhere."""


@pytest.mark.parametrize("name, check", [(n, c) for n in KERNELS for c in (True, False) if c or n not in ONLY_TYPED])
def test_derivatives(name, check):
    f, spec = KERNELS[name]
    g = mapped(f, (P("x"), P()), spec, check_vma=check)
    loss = lambda x, w: (jnp.sin(g(x, w)) * 0.5).sum()
    value, (dx, dw) = polyax.value_and_grad(loss, (0, 1))(X, W)
    again, (dx2, dw2) = polyax.jit(polyax.value_and_grad(loss, (0, 1)))(X, W)
    close(again, value), close(dx2, dx), close(dw2, dw)
    eps, v, u = 1e-5, np.cos(X), np.sin(W)
    with polyax.enable_x64(True):
        big = lambda t: float(loss(X.astype(float) + t * v, W.astype(float) + t * u))
        slope = (big(eps) - big(-eps)) / (2 * eps)
    close(np.vdot(dx, v) + np.vdot(dw, u), slope, 2e-3)
    close(polyax.jvp(loss, (X, W), (v, u))[1], slope, 2e-3)


def test_gradients_inside_are_sums_where_a_parameter_is_the_same_everywhere():
    def step(w, x):
        return polyax.grad(lambda v: jnp.sum((x @ v) ** 2))(w)

    whole = polyax.grad(lambda v: jnp.sum((X @ v) ** 2))(W)
    close(everywhere(mapped(step, (P(), P("x")), P()), W, X), whole)
    own = mapped(step, (P(), P("x")), P("x"), check_vma=False)(W, X)
    close(np.asarray(own).reshape(4, 4).sum(0), whole)


# --- batches


def test_vmap_of_blocks():
    f = mapped(lambda x, w: lax.psum(x * w, "x"), (P("x"), P()), P())
    xs = np.stack([X, X + 1, 2 * X])
    expected = np.stack([np.asarray(f(x, W)) for x in xs])
    close(everywhere(polyax.vmap(f, in_axes=(0, None)), xs, W), expected)
    close(polyax.vmap(f, in_axes=(2, None), out_axes=1)(np.moveaxis(xs, 0, 2), W), np.moveaxis(expected, 0, 1))
    close(polyax.vmap(polyax.grad(lambda x: f(x, W).sum()))(xs), np.broadcast_to(W, xs.shape))


def test_the_mapped_axis_is_cut_along_an_axis_of_the_mesh():
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return lax.psum(x, "x")

    g = polyax.vmap(mapped(f, P("x"), P()), spmd_axis_name="y")
    xs = np.stack([X, X + 1])
    close(everywhere(g, xs), xs.reshape(2, 4, 2, 4).sum(1))
    assert "P('y', 'x'" in str(polyax.make_jaxpr(g)(xs))
    assert g(xs).sharding.spec == P("y")


def test_vmap_inside_of_blocks():
    def f(x):
        return polyax.vmap(lambda r: r * lax.psum(r, "i") + lax.psum(r, ("i", "x")), axis_name="i")(x)

    blocks = X.reshape(4, 2, 4)
    expected = blocks * blocks.sum(1, keepdims=True) + X.sum(0)
    close(everywhere(mapped(f, P("x"), P("x")), X), expected.reshape(8, 4))


# --- within each other


def test_some_axes_are_left_to_others():
    def outer(x):
        assert polyax.typeof(x).shape == (2, 4)

        def inner(v):
            assert polyax.typeof(v).shape == (2, 2)
            return v * lax.axis_index("y") + lax.psum(v, ("x", "y")).sum()

        return polyax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})(x)

    f = mapped(outer, P("x"), P("x"), axis_names={"x"})
    close(everywhere(f, X), X * np.array([0, 0, 1, 1]) + X.sum())
    close(polyax.jit(polyax.grad(lambda x: f(x).sum()))(X), np.array([0, 0, 1, 1]) + 32 * np.ones_like(X))


def test_the_partitioner_cuts_along_axes_that_are_left():
    f = mapped(lambda x: lax.psum(x, "x") @ W, P("x"), P(), axis_names={"x"})
    close(everywhere(f, X), X.reshape(4, 2, 4).sum(0) @ W)
    assert len(f(X).devices()) == 8


def test_in_loops():
    f = mapped(lambda x: x + lax.pmean(x, "x"), P("x"), P("x"))
    many = polyax.jit(lambda x: lax.scan(lambda c, _: (f(c), c.sum()), x, None, length=3))
    expected = X
    for _ in range(3):
        expected = expected + np.tile(expected.reshape(4, 2, 4).mean(0), (4, 1))
    close(many(X)[0], expected)
    close(polyax.jit(lambda x: lax.cond(x.sum() > 0, f, lambda v: v, x))(X), f(X))


# --- what is refused


def refused(error, text, f=lambda x: x, args=(X,), **options):
    with pytest.raises(error, match=text):
        mapped(f, **options)(*args)


def test_specs_that_do_not_fit():
    refused(ValueError, r"(?s)not evenly divisible.*float32\[7,4\].*'x' \(of size 4\), but 4 does not evenly divide 7",
            args=(np.ones((7, 4), np.float32),))  # fmt: skip
    refused(ValueError, "(?s)too long.*length 3.*rank 2", ins=P("x", "y", None))
    refused(ValueError, "(?s)out_specs entry which is too long.*length 3", outs=P("x", "y", None))
    refused(ValueError, "(?s)too long.*rank 0.*singleton", f=jnp.sum, outs=P("x"))
    refused(ValueError, "(?s)in_specs argument must refer to an axis marked as manual.*'z'", ins=P("z"))
    refused(ValueError, "(?s)out_specs argument must refer to an axis marked as manual.*'z'", outs=P("z"))
    refused(ValueError, "in_specs refers to 'y'", axis_names={"x"})
    refused(ValueError, "for jitted computation: argument number 0", args=(polyax.device_put(X, polyax.devices()[0]),))
    refused(DuplicateSpecError, r"but P\('x', 'x'\) has duplicate entries for `x`", ins=P("x", "x"))
    refused(TypeError, "(?s)must be a pytree of.*PartitionSpec.*in_specs.0. is x of type str", ins=("x",))
    refused(ValueError, "(?s)pytree structure error.*shard_map in_specs", ins=(P("x"), P("x")))
    refused(ValueError, "(?s)pytree structure error.*shard_map out_specs", outs=(P("x"), P("x")))
    with pytest.raises(TypeError, match="(?s)it was `None` when axis_names.*AxisType.Auto"):
        polyax.shard_map(lambda x: x, mesh=mesh(), out_specs=P("x"))(X)


def test_results_that_are_not_the_same_everywhere():
    text = r"(?s)can't be statically inferred.*replicated across mesh axis 'y'.*\{V:\(x,y\)\}.*check_vma=False"
    refused(ValueError, text, outs=P("x"))
    refused(ValueError, r"out_specs\['a'\] is P\(\)", f=lambda x: {"a": x[0]}, outs={"a": P()})
    mapped(lambda x: x, outs=P("x"), check_vma=False)(X)


def test_axes_and_meshes_that_do_not_fit():
    refused(ValueError, "to be a subset of mesh.axis_names", axis_names={"z"})
    refused(NameError, "unbound axis name: z", f=lambda x: lax.psum(x, "z"))
    with pytest.raises(NameError, match="unbound axis name: x"):
        lax.psum(X, "x")
    with pytest.raises(TypeError, match="requires a `polyax.sharding.Mesh`"):
        polyax.shard_map(lambda x: x, mesh=3, in_specs=P("x"), out_specs=P("x"))(X)
    with pytest.raises(TypeError, match="requires a callable"):
        mapped(3)
    other = NamedSharding(Mesh(polyax.devices()[:2], "x"), P("x"))
    refused(ValueError, "(?s)incompatible devices.*argument number 0", args=(polyax.device_put(X, other),))
    nested = lambda x: polyax.shard_map(lambda v: v, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x)
    refused(ValueError, "a shard_map around it maps over", f=nested, ins=P("x"), outs=P("x"))
    for inner in (mesh(), mesh().abstract_mesh):
        again = lambda x, inner=inner: polyax.shard_map(
            lambda v: v, mesh=inner, in_specs=P("y"), out_specs=P("y"), axis_names={"y"}
        )(x)
        refused(
            ValueError,
            "The context mesh.*should match the mesh passed",
            f=again,
            ins=P("x"),
            outs=P("x"),
            axis_names={"x"},
        )
    with pytest.raises(ValueError, match="shard_map requires a non-empty mesh"):
        polyax.shard_map(lambda x: x, mesh=Mesh(np.empty((), object), ()), in_specs=P("x"), out_specs=P("x"))(X)


def test_values_print_as_the_blocks_of_devices(capsys):
    def f(x, y):
        print(x)
        print(lax.psum(x, ("x", "y")))
        return x * y.sum()

    g = mapped(f, ins=(GRID, P()))
    close(g(X, W), X * W.sum())
    blocks = [(f"cpu:{2 * i + j}", (i, j), X[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]) for i in range(4) for j in range(2)]
    total = sum(b for _, _, b in blocks)
    text = capsys.readouterr().out
    for d, at, block in blocks:
        d = d.replace("cpu", polyax.devices()[0].platform)
        assert f"On {d} at mesh coordinates (x, y,) = {at}:\n{block}\n" in text
        assert f"On {d} at mesh coordinates (x, y,) = {at}:\n{total.astype(np.float32)}\n" in text
    g(X, W)
    assert capsys.readouterr().out == text, "who prints is traced with each call"
    polyax.jit(g)(X, W)
    assert capsys.readouterr().out.startswith("Traced<ShapedArray(float32[2,2]{V:(x,y)})>")


def test_python_branches_on_what_is_the_same_everywhere():
    def f(x):
        total = lax.psum(x.sum(), ("x", "y"))
        return x + float(total) if total > 100 else x * int(total // 10)

    g = mapped(f)
    for scale in (1, 10):
        total = (scale * X).sum()
        close(g(scale * X), scale * X + total if total > 100 else scale * X * (total // 10))
    with pytest.raises(polyax.errors.TracerBoolConversionError):
        polyax.jit(g)(X)
    with pytest.raises(polyax.errors.TracerBoolConversionError, match="boolean conversion"):
        mapped(lambda x: x if x.sum() > 1 else -x)(X)


def test_specs_say_what_types_say_already():
    explicit = polyax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    f = polyax.shard_map(lambda x: x * 2, mesh=explicit, in_specs=GRID, out_specs=GRID)
    close(f(polyax.device_put(X, NamedSharding(explicit, GRID))), 2 * X)
    message = r"in_specs passed to shard_map: P\('x', 'y'\) does not match the specs of the input: P\({}\) for arg: "
    for x, text in [(X, "None, None"), (polyax.device_put(X, NamedSharding(explicit, P("y"))), "'y', None")]:
        with pytest.raises(ValueError, match=message.format(text) + r".*polyax\.reshard"):
            f(x)


def test_the_same_program_is_used_again():
    count = []
    f = mapped(lambda x: count.append(1) or x)
    f(X), f(X + 1)
    assert len(count) == 1
    f(X.astype(np.int32))
    assert len(count) == 2 and math.prod(AbstractMesh((2, 3), ("a", "b")).axis_sizes) == 6


# --- several axes as one

GROUPS = [[0, 3, 5, 6], [7, 4, 2, 1]]
SHIFT = [(n, (3 * n + 1) % 8) for n in range(7)]
TOGETHER = {
    "all_to_all": lambda x, names: lax.all_to_all(jnp.sin(x), names, 1, 0),
    "all_to_all_tiled": lambda x, names: lax.all_to_all(jnp.sin(x), names, 1, 0, tiled=True),
    "all_to_all_backwards": lambda x, names: lax.all_to_all(jnp.sin(x), names, 0, 2, tiled=True),
    "ppermute": lambda x, names: lax.ppermute(jnp.sin(x), names, SHIFT),
    "pswapaxes": lambda x, names: lax.pswapaxes(jnp.sin(x), names, 1),
    "pbroadcast": lambda x, names: lax.pbroadcast(jnp.sin(x), names, 5),
}
IN_GROUPS = {
    "psum": lambda x, names: lax.psum(jnp.sin(x), names, axis_index_groups=GROUPS),
    "all_gather": lambda x, names: lax.all_gather(jnp.sin(x), names, axis_index_groups=GROUPS, tiled=True),
    "psum_scatter": lambda x, names: lax.psum_scatter(x[:, :4], names, axis_index_groups=GROUPS, scatter_dimension=1),
    "all_to_all": lambda x, names: lax.all_to_all(x[:, :4], names, 1, 1, axis_index_groups=GROUPS),
}
PARTS = np.random.RandomState(3).randn(64, 8, 3).astype(np.float32)


def on_axes(f, names):
    """``f`` on blocks along one axis of eight devices, or along two."""
    devices = np.array(polyax.devices()).reshape((8,) if names == "i" else (4, 2))
    spec = P("i") if names == "i" else P(("x", "y"))
    body = functools.partial(f, names=names)
    return polyax.shard_map(body, mesh=Mesh(devices, names), in_specs=spec, out_specs=spec, check_vma=False)


@pytest.mark.parametrize("name", [*TOGETHER, *(f"{name}_in_groups" for name in IN_GROUPS)])
def test_several_axes_are_as_one_that_is_as_long(name):
    groups = name.endswith("_in_groups")
    f = IN_GROUPS[name.removesuffix("_in_groups")] if groups else TOGETHER[name]
    one, two = on_axes(f, "i"), on_axes(f, ("x", "y"))
    expected = one(PARTS)
    close(two(PARTS), expected)
    close(polyax.jit(two)(PARTS), expected)
    weights = jnp.cos(expected)
    slopes = [polyax.jit(polyax.grad(lambda x, g=g: (g(x) * weights).sum()))(PARTS) for g in (one, two)]
    close(slopes[1], slopes[0])
    rows = np.stack([PARTS, PARTS * 2])
    close(polyax.vmap(two)(rows), polyax.vmap(one)(rows))
    if groups:
        return
    blocks = PARTS.reshape(4, 2, 8, 8, 3)
    inner = polyax.vmap(functools.partial(f, names=("x", "y")), axis_name="y")
    close(np.asarray(polyax.vmap(inner, axis_name="x")(blocks)).reshape(expected.shape), expected)
    swapped = polyax.vmap(functools.partial(f, names=("x", "y")), axis_name="x")
    got = polyax.vmap(swapped, axis_name="y")(np.swapaxes(blocks, 0, 1))
    close(np.swapaxes(np.asarray(got), 0, 1).reshape(expected.shape), expected)


def test_groups_along_several_axes_of_maps_say_that_they_are_not_built():
    f = polyax.vmap(lambda x: lax.all_gather(x, ("x", "y"), axis_index_groups=GROUPS), axis_name="y")
    with pytest.raises(NotImplementedError, match="axis_index_groups along several axes"):
        polyax.vmap(f, axis_name="x")(np.zeros((4, 2)))


def test_a_bad_destination_along_several_axes():
    with pytest.raises(ValueError, match="destinations must be less than the size 8"):
        on_axes(lambda x, names: lax.ppermute(x, names, [(0, 8)]), ("x", "y"))(PARTS)


# --- a mesh in force


@pytest.mark.parametrize("names", [AxisType.Auto, AxisType.Explicit])
def test_parts_are_moved_and_computed_with_where_they_lie(names):
    with polyax.set_mesh(polyax.make_mesh((8,), ("i",), (names,))):
        x = polyax.device_put(np.arange(16, dtype=np.float32), P("i"))
        y = polyax.device_put(jnp.arange(16.0) * 2, P("i"))
        assert [s.data.shape for s in y.addressable_shards] == [(2,)] * 8
        close(y, np.arange(16) * 2)
        close(jnp.where(y > 3, y, 0), np.where(np.arange(16) > 1, np.arange(16) * 2, 0))
        for total in (x + y, polyax.grad(lambda x: (polyax.nn.relu(x - 4) ** 2).sum())(x)):
            assert all(part.device == d for part, d in zip(total.parts, polyax.devices(), strict=True))


def test_types_say_along_which_axes_values_vary():
    def f(x):
        assert polyax.typeof(x).manual_axis_type.varying == {"x", "y"}
        y = lax.psum(x, "y")
        assert polyax.typeof(y).manual_axis_type.varying == {"x"}
        return y

    close(mapped(f, GRID, P("x"))(X), X[:, :2] + X[:, 2:])


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (jnp.linalg.inv, np.linalg.inv),
        (lambda a: lax.map(jnp.linalg.inv, a), np.linalg.inv),
        (lambda a: jnp.linalg.solve(a, jnp.ones((1, 3, 1))), lambda a: np.linalg.inv(a).sum(2, keepdims=True)),
        (lambda a: jnp.insert(a, 1, 5.0, axis=2), lambda a: np.insert(a, 1, 5.0, axis=2)),
    ],
)
def test_constants_meet_values_that_vary(fun, expected):
    a = np.random.default_rng(0).random((8, 3, 3), np.float32) + 3 * np.eye(3, dtype=np.float32)
    close(polyax.shard_map(fun, mesh=line(), in_specs=P("i"), out_specs=P("i"))(a), expected(a))


def test_systems_that_vary_have_derivatives():
    a = np.random.default_rng(0).random((8, 3, 3), np.float32) + 3 * np.eye(3, dtype=np.float32)
    inverted = polyax.shard_map(jnp.linalg.inv, mesh=line(), in_specs=P("i"), out_specs=P("i"))
    close(polyax.grad(lambda a: inverted(a).sum())(a), polyax.grad(lambda a: jnp.linalg.inv(a).sum())(a))


def test_operands_vary_alike_by_themselves_or_not_at_all():
    def f(x, w):
        return x + w

    def cast(x, w):
        return x + lax.pcast(w, ("x", "y"), to="varying")

    close(mapped(f, (GRID, P()), GRID)(X, W[:1]), X + W[:1])
    with polyax.auto_pcast(False):
        assert not polyax.auto_pcast.value
        with pytest.raises(ValueError, match=r"Primitive add requires varying manual axes to match.*pcast"):
            mapped(f, (GRID, P()), GRID)(X, W[:1])
        with pytest.raises(ValueError, match=r"Primitive psum_invariant requires varying manual axes to match"):
            mapped(lambda w: lax.psum(w, "x"), P(), P())(W)
        close(mapped(cast, (GRID, P()), GRID)(X, W[:1]), X + W[:1])


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_types_may_leave_out_axes_of_size_one(kind):
    flat = Mesh(np.array(polyax.devices()).reshape(8, 1), ("i", "j"), (kind,) * 2)
    cut = NamedSharding(flat, P(("i", "j")))

    def sums(x, told):
        def f(x):
            assert str(polyax.typeof(x)).endswith(told)
            return lax.psum(x, "j") + lax.psum(x, ("i", "j"))

        return polyax.shard_map(f, mesh=flat, in_specs=P(("i", "j")), out_specs=P("i"))(x)

    x = polyax.device_put(np.arange(8, dtype=np.float32), cut)
    close(sums(x, "{V:(i,j)}"), np.arange(8) + 28)
    with polyax.remove_size_one_mesh_axis_from_type(True):
        x = polyax.device_put(np.arange(8, dtype=np.float32), cut)
        assert str(polyax.typeof(x)) == ("float32[8@i]" if kind is AxisType.Explicit else "float32[8]")
        close(sums(x, "{V:i}"), np.arange(8) + 28)
        with polyax.set_mesh(flat):
            close(polyax.grad(lambda x: sums(x, "{V:i}").sum())(x), [9.0] * 8)


@pytest.mark.parametrize(
    ("lies", "spec", "axes", "block", "result"),
    [
        (("x", "y"), ("x",), {"x"}, "2,8@y", "8@x,8@y"),
        (("x",), ("y",), {"y"}, "4@x,8", "8@(y,x),8"),
        (("x",), (None, "y"), {"y"}, "8@x,4", "8@x,8@y"),
        ((("x", "y"),), ("x",), {"x"}, "2@y,8", "8@(x,y),8"),
        (("x", "y"), (None, "x"), {"x"}, "8,2@y", "8,8@(x,y)"),
    ],
)
def test_types_of_blocks_tell_of_axes_that_are_not_manual(lies, spec, axes, block, result):
    mesh = polyax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    told = []

    def f(b):
        told.append(str(polyax.typeof(jnp.sin(b))))
        return jnp.sin(b)

    values = np.arange(64, dtype=np.float32).reshape(8, 8) / 7
    with polyax.set_mesh(mesh):
        x = polyax.device_put(values, NamedSharding(mesh, P(*lies)))
        g = polyax.shard_map(f, mesh=mesh, in_specs=P(*spec), out_specs=P(*spec), axis_names=axes)
        for mapped in (g, polyax.jit(g)):
            y = mapped(x)
            assert str(polyax.typeof(y)) == f"float32[{result}]"
            np.testing.assert_allclose(np.asarray(y), np.sin(values), rtol=1e-5, atol=1e-6)
        slope = polyax.jit(polyax.grad(lambda x: (g(x) ** 2).sum()))(x)
    assert polyax.typeof(slope) == polyax.typeof(x)
    np.testing.assert_allclose(np.asarray(slope), np.sin(2 * values), rtol=1e-4, atol=1e-5)
    (axis,) = axes
    assert set(told) == {f"float32[{block}]{{V:{axis}}}"}


@pytest.mark.parametrize("axes", [{"y"}, {"x", "y"}])
def test_vmap_over_an_explicit_cut(axes):
    """The mapped axis may be one that is manual inside."""
    mesh = polyax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    values = np.arange(64, dtype=np.float32).reshape(8, 8) / 7
    with polyax.set_mesh(mesh):
        x = polyax.device_put(values, NamedSharding(mesh, P("x", "y")))
        f = polyax.shard_map(jnp.sin, mesh=mesh, in_specs=P("y"), out_specs=P("y"), axis_names=axes)
        y = polyax.jit(polyax.vmap(f))(x)
    assert str(polyax.typeof(y)) == "float32[8@x,8@y]"
    np.testing.assert_allclose(np.asarray(y), np.sin(values), rtol=1e-5, atol=1e-6)


def test_numbers_without_a_spec_stay_numbers():
    """They may be sizes; a number of another value or type makes another program."""
    f = mapped(lambda x, size: x + jnp.ones(size, x.dtype), (GRID, None))
    assert polyax.jit(lambda x: f(x, (2, 2)))(X).tolist() == (X + 1).tolist()
    kinds = []
    g = mapped(lambda x, n: kinds.append(type(n)) or x * n, (GRID, None))
    assert [float(g(X, n)[0, 1] / X[0, 1]) for n in (2, 2.0, 3, True)] == [2, 2, 3, 1]
    assert kinds == [int, float, int, bool]


def test_what_is_said_of_results_that_vary_more_than_told():
    f = mapped(lambda x: x, outs=P(None, None))
    told = (
        r"only varying across mesh axes \{\} and not \{x,y\}, but it was inferred to be possibly varying over \{x,y\}"
    )
    with pytest.raises(ValueError, match=told):
        f(X)
    with pytest.raises(ValueError, match="replicated across mesh axis 'y', but could not infer replication over any"):
        mapped(lambda x: x, outs=ROWS)(X)


@pytest.mark.parametrize("name", [{"x"}, frozenset({"x"}), ["x"]])
def test_names_of_casts_are_in_an_order(name):
    with pytest.raises(TypeError, match=r"must be a tuple or a str. Got"):
        mapped(lambda x: lax.pcast(x, name, to="varying"), P(), P())(X)


def test_results_on_explicit_axes_tell_of_each_dimension():
    explicit = polyax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    x = polyax.device_put(X, NamedSharding(explicit, ROWS))
    assert polyax.jit(lambda a: a * 2)(x).sharding == NamedSharding(explicit, P("x", None))
    summed = polyax.jit(mapped_on(explicit, lambda a: lax.pcast(a, "x", to="unreduced"), ROWS, P(unreduced={"x"})))
    assert summed(x).sharding.spec == P(None, None, unreduced={"x"})


def test_values_on_all_devices_are_not_put_on_one():
    device = polyax.devices()[0]
    for put in (lambda x: polyax.device_put(x, device), lambda x: x * polyax.device_put(np.float32(2), device)):
        with pytest.raises(ValueError, match=r"device_put with explicit device not allowed within shard_map-decorated"):
            mapped(put)(X)
    assert mapped(lambda x: polyax.device_put(x))(X).sharding.spec == GRID


def mapped_on(mesh, f, ins, outs):
    return polyax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)


def test_rules_of_derivatives_give_what_varies_as_arguments_do():
    @polyax.custom_vjp
    def total(x):
        return lax.psum(x, ("x", "y"))

    total.defvjp(lambda x: (total(x), None), lambda _, g: (lax.psum(g, ("x", "y")),))
    f = mapped(total, outs=P())
    with pytest.raises(ValueError, match=r"an input of type float32\[2,2\]\S*, so the manual axis types do not match"):
        polyax.grad(lambda x: f(x).sum())(X)


def test_references_are_taken_in_parts():
    def doubled(ref, x):
        ref[...] = ref[...] * 2 + x

    for spec in (ROWS, P(), P(("x", "y")), P(None, "y")):
        f = mapped(doubled, ins=(spec, P()), outs=None)
        ref = polyax.new_ref(X)
        f(ref, 1.0)
        polyax.jit(f)(ref, 3.0)
        close(ref[...], X * 4 + 5)
    here = mapped(lambda x: doubled(ref, lax.axis_index("y").astype("float32")) or x)
    with pytest.raises(
        NotImplementedError, match=r"varies along \['y'\] can't index or be written to a reference that isn't"
    ):
        here(X)

    def within(x):
        ref = polyax.new_ref(x)
        mapped(doubled, ins=(ROWS, P()), outs=None)(ref, 1.0)
        return ref[...]

    close(polyax.jit(within)(X), X * 2 + 1)
    close(polyax.grad(lambda x: within(x).sum())(X), np.full_like(X, 2))
