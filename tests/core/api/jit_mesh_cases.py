"""``jit`` over meshes: shardings of arguments and results, constraints, contexts. Run by ``test_jit_mesh.py``."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.experimental import io_callback
from polyax.experimental.pjit import pjit
from polyax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from support.parts import close_everywhere

P = PartitionSpec
DEVICES = polyax.devices()
if len(DEVICES) < 8:
    pytest.skip("run by test_jit_mesh.py, with eight devices", allow_module_level=True)
GRID = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
ROW = Mesh(np.array(DEVICES), ("i",))
HALF = Mesh(np.array(DEVICES[:4]), ("i",))
X = np.arange(64, dtype=np.float32).reshape(8, 8) / 7


def on(mesh: Mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def put(mesh: Mesh, *spec, value=X):
    return polyax.device_put(value, on(mesh, *spec))


def same(got, expected):
    close_everywhere(got, expected, 1e-5, 1e-5)


def lies(x, sharding):
    """Whether ``x`` lies as ``sharding`` says."""
    return x.sharding.devices_indices_map(x.shape) == sharding.devices_indices_map(x.shape) and x.committed


# --- arguments that are missing


def test_shardings_of_none():
    rows, columns = on(GRID, "x"), on(GRID, None, "y")
    for ins, outs in ((rows, columns), None), (rows, rows), ((rows, None), (None, columns)):
        got, none = polyax.jit(lambda x, y: (x, y), in_shardings=ins, out_shardings=outs)(X, None)
        same(got, X)
        assert none is None
    got = polyax.jit(lambda t: t["a"], in_shardings=({"a": rows, "b": columns},))({"a": X, "b": (None, {})})
    assert lies(got, rows)
    got, none = polyax.device_put((X, None), (rows, columns))
    assert lies(got, rows) and none is None
    got = polyax.jit(lambda x: lax.with_sharding_constraint((x, None), (rows, columns)))(X)
    assert lies(got[0], rows) and got[1] is None


# --- callbacks in the order of the program


def test_ordered_callbacks_happen_in_the_order_of_the_program():
    seen = []

    def summed(n, x):
        def note(v):
            seen.append((n, v.shape))
            return v.sum()

        return io_callback(note, polyax.ShapeDtypeStruct((), np.float32), x, ordered=True)

    f = polyax.jit(lambda a: a * summed(2, a + summed(1, a)))
    same(f(put(GRID, "x", "y")), X * (X + X.sum()).sum())
    f(put(GRID, "x", "y"))
    polyax.effects_barrier()
    assert seen == [(1, (8, 8)), (2, (8, 8))] * 2


def test_ordered_callbacks_of_each_device():
    seen = []

    def note(a):
        for n in range(3):
            io_callback(lambda k, i: seen.append((int(i), int(k))), None, n, lax.axis_index("i"), ordered=True)
        return a * 2

    for wrap in (polyax.jit, lambda f: f):
        seen.clear()
        same(wrap(polyax.shard_map(note, mesh=ROW, in_specs=P("i"), out_specs=P("i")))(X), X * 2)
        polyax.effects_barrier()
        assert all([k for j, k in seen if j == i] == [0, 1, 2] for i in range(8))


# --- how values of programs lie


def looked_at(f, *args):
    """What those hear who look at values in ``f``, which gets a function that looks."""
    heard = []
    out = f(lambda x: polyax.debug.inspect_array_sharding(x, callback=heard.append))(*args)
    assert all(s.mesh == GRID for s in heard)
    return [tuple(s.spec) for s in heard], out


def _of_jit(look):
    def f(a):
        look({"a": a})
        b = jnp.sin(a)
        look(b.T)
        look(b.sum(0))
        return b.sum()

    return f


def _of_scan(look):
    return polyax.jit(lambda a: lax.scan(lambda c, r: ((look(c), c + r)[1], None), a[0], a)[0])


def _of_rows(look):
    return polyax.vmap(lambda r: (look(r), r * 2)[1])


def _of_blocks(axes):
    def mapped(look):
        f = lambda b: (look(b), b * 2)[1]
        return polyax.shard_map(f, mesh=GRID, in_specs=P("x"), out_specs=P("x"), axis_names=axes)

    return mapped


def jitted(f):
    return lambda look: polyax.jit(f(look))


IN_JIT = [("x", "y"), ("y", "x"), ("y",)]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (jitted(_of_jit), IN_JIT),
        (lambda look: polyax.jit(polyax.grad(_of_jit(look))), IN_JIT),
        (lambda look: polyax.grad(_of_jit(look)), IN_JIT),
        (_of_rows, [("x", "y")]),
        (jitted(_of_rows), [("x", "y")]),
        (_of_scan, [("y",)]),
        (_of_blocks({"x", "y"}), [()]),
        (jitted(_of_blocks({"x", "y"})), [()]),
        (jitted(_of_blocks({"x"})), [(None, "y")]),
    ],
)
def test_the_shardings_of_values_in_programs(f, expected):
    x = put(GRID, "x", "y")
    heard, out = looked_at(f, x)
    assert heard == expected
    same(out, f(lambda _: None)(x))


def test_shardings_are_told_once_for_each_program():
    heard = []
    f = polyax.jit(lambda a: polyax.debug.inspect_array_sharding(a * 2, callback=heard.append))
    for _ in range(2):
        f(put(GRID, "x"))
    f(put(GRID, None, "x"))
    f(X)
    assert heard == [on(GRID, "x"), on(GRID, None, "x"), SingleDeviceSharding(DEVICES[0])]


def test_the_sharding_of_keys_in_programs():
    heard = []
    keys = polyax.device_put(polyax.random.split(polyax.random.key(0), 8), on(GRID, "y"))
    polyax.jit(lambda k: polyax.debug.inspect_array_sharding(k, callback=heard.append))(keys)
    assert heard == [on(GRID, "y")]


def test_looking_at_a_value_moves_nothing():
    """A sum that is made after what reads it still is."""

    def moves(look):
        def f(a, b):
            c = a @ b
            look(c)
            return c.sum()

        told = polyax.explain(f)(put(GRID, None, "x"), put(GRID, "x"))
        return [(m.collective, m.aval.shape) for m in told.moves]

    assert moves(lambda x: polyax.debug.inspect_array_sharding(x, callback=str)) == moves(str) == [("psum", ())]


# --- where programs run


@pytest.mark.parametrize("spec", [(), ("x",), (None, "y"), ("y", "x"), (("x", "y"),), (None, ("y", "x"))])
def test_results_equal_those_of_one_device(spec):
    x = put(GRID, *spec)
    for f, expected in [
        (lambda a: a @ a.T, X @ X.T),
        (lambda a: jnp.sin(a) + a.sum(0), np.sin(X) + X.sum(0)),
        (lambda a: jnp.sort(a, 1)[::2], np.sort(X, 1)[::2]),
        (lambda a: lax.fori_loop(0, 3, lambda _, b: b * 0.5 + a.mean(), a), None),
    ]:
        got = polyax.jit(f)(x)
        assert got.devices() == set(DEVICES)
        same(got, f(X) if expected is None else expected)


def test_asked_shardings_of_arguments_and_results():
    ends = {"in_shardings": (on(GRID, "x"), None), "out_shardings": (on(GRID, "y"), None)}
    f = polyax.jit(lambda a, b: (a + b["w"], b), **ends)
    total, rest = f(X, {"w": jnp.asarray(X)})
    assert lies(total, on(GRID, "y")) and total.sharding == on(GRID, "y") and rest["w"].devices() == set(DEVICES)
    same(total, 2 * X)
    again, _ = f(put(GRID, "x"), {"w": X})
    same(again, 2 * X)


def test_what_was_put_somewhere_by_name_stays_there():
    """A call with an array that only happens to be there doesn't let it pass."""
    f, y = polyax.jit(lambda a, b: a + b), put(GRID, "x")
    same(f(jnp.asarray(X), y), 2 * X)
    with pytest.raises(ValueError, match="(?s)incompatible devices.*argument a"):
        f(polyax.device_put(X, DEVICES[0]), y)


def test_results_on_a_mesh_without_devices_lie_where_arguments_or_the_mesh_in_force_are():
    double = polyax.jit(lambda x: x * 2, out_shardings=NamedSharding(ROW.abstract_mesh, P("i")))
    other = Mesh(np.array(DEVICES[::-1]), ("i",))
    for mesh in (ROW, other):  # each has a program of its own
        got = double(put(mesh))
        assert lies(got, on(mesh, "i")) and got.sharding.mesh == mesh
        same(got, X * 2)
    with polyax.set_mesh(other):
        assert lies(double(X), on(other, "i"))
    with pytest.raises(ValueError, match=r"no Mesh of 8 devices is in force .*, and no argument lies on so many"):
        double(X)


# --- programs for meshes without devices

NOWHERE = NamedSharding(ROW.abstract_mesh, P("i"))


@pytest.mark.parametrize("explicit", (False, True))
def test_a_program_for_a_mesh_without_devices_gets_them_when_it_is_compiled(explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    mesh = Mesh(np.array(DEVICES), ("i",), axis_types=kind)
    struct = polyax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh.abstract_mesh, P("i")))
    traced = polyax.jit(lambda x: x * 2).trace(struct)
    told = NamedSharding(mesh.abstract_mesh, P("i", None))
    assert traced.out_info.sharding == (told if explicit else None)
    lowered = traced.lower(lowering_platforms=("cpu", "tpu"))
    assert lowered.device == mesh.abstract_mesh and lowered.cost_analysis()["flops"] == 64
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None`"):
        lowered.compile()
    with pytest.raises(ValueError, match="size of abstract mesh 8 in .* must match .*device assignment: 4"):
        lowered.compile(device_assignment=DEVICES[:4])
    compiled = lowered.compile(device_assignment=DEVICES)
    assert compiled.input_shardings[0][0] == NamedSharding(mesh, P("i"))
    got = compiled(put(mesh, "i"))
    assert lies(got, on(mesh, "i"))
    same(got, X * 2)


def test_a_program_for_a_mesh_without_devices_is_lowered_for_platforms_that_are_named():
    struct = polyax.ShapeDtypeStruct((8, 8), "float32", sharding=NOWHERE)
    double = polyax.jit(lambda x, y=0: x * 2 + y)
    for asked in (double.trace(struct), polyax.jit(lambda x: x, out_shardings=NOWHERE).trace(X)):
        with pytest.raises(ValueError, match=r"Passing lowering_platforms .* is required when only AbstractMesh"):
            asked.lower()
    assert double.lower(struct, put(ROW)).compile().input_shardings[0][0] == on(ROW, "i")
    with polyax.set_mesh(ROW):
        assert double.lower(struct).compile().input_shardings[0][0] == on(ROW, "i")
    other = NamedSharding(HALF.abstract_mesh, P("i"))
    with pytest.raises(ValueError, match="should be of the same size across all shardings.*'i': 8.*'i': 4"):
        double.trace(struct, polyax.ShapeDtypeStruct((8, 8), "float32", sharding=other))


def test_one_sharding_for_all():
    f = polyax.jit(lambda a, b: (a - b, [b]), in_shardings=on(ROW, "i"), out_shardings=on(ROW))
    for leaf in polyax.tree.leaves(f(X, X[0])):
        assert lies(leaf, on(ROW))


def test_a_single_device():
    last = SingleDeviceSharding(DEVICES[-1])
    for options in ({"in_shardings": last}, {"out_shardings": last}):
        assert polyax.jit(lambda a: a + 1, **options)(X).devices() == {DEVICES[-1]}


def test_a_mesh_of_one_device_is_a_mesh():
    one = Mesh(np.array(DEVICES[:1]), ("i",))
    x = put(one, "i")
    assert x.sharding == on(one, "i") and polyax.jit(lambda a: a * 2)(x).sharding.mesh == one
    same(polyax.jit(lambda a: a @ a)(x), X @ X)
    same(x[1] + x.sum(), X[1] + X.sum())


def test_calls_with_arguments_that_lie_otherwise():
    f = polyax.jit(lambda a: a * 2 + 1)
    for x in (X, jnp.asarray(X), put(GRID, "x"), put(ROW, None, "i"), put(HALF, "i"), put(GRID, "x"), X):
        got = f(x)
        same(got, 2 * X + 1)
        if not isinstance(x, np.ndarray):
            assert got.devices() == x.devices()
    assert f._cache_size() == 1  # traced once


def test_meshes_of_the_same_devices_meet():
    same(polyax.jit(lambda a, b: a + b)(put(GRID, "x"), put(ROW, None, "i")), 2 * X)
    same(put(GRID, "x") * put(ROW, "i"), X * X)


def test_constants_that_are_closed_over():
    w = put(GRID, None, "y")
    f = polyax.jit(lambda a: a @ w)
    assert f(X).devices() == set(DEVICES)
    same(f(X), X @ X)


def test_derivatives_and_maps():
    x = put(GRID, "x", "y")
    g = polyax.grad(lambda a: polyax.jit(lambda b: (b * b).sum())(a))
    same(g(x), 2 * X)
    same(polyax.jit(g)(x), 2 * X)
    same(polyax.jit(polyax.vmap(lambda r: r / r.sum()))(x + 1), (X + 1) / (X + 1).sum(1, keepdims=True))
    same(polyax.vmap(polyax.jit(jnp.cumsum))(x), X.cumsum(1))


def test_what_is_picked_from_a_cut_batch():
    """Along an axis, and by counted rows; fused, with accesses checked."""
    labels = np.array([0, 3, 7, 7, 1, 2, 5, 4])
    expected = X[np.arange(8), labels] - X.max(1)
    x, y = put(ROW, "i"), polyax.device_put(labels, on(ROW, "i"))
    less = lambda a: a - a.max(1, keepdims=True)
    same(polyax.jit(lambda a, b: jnp.take_along_axis(less(a), b[:, None], 1)[:, 0])(x, y), expected)
    same(polyax.jit(lambda a, b: less(a)[jnp.arange(8), b])(x, y), expected)


def test_operations_outside_of_programs():
    x, y = put(GRID, "x"), put(GRID, None, "y")
    assert (x * 2).sharding == x.sharding
    for got, expected in [(x + y, 2 * X), (x @ y, X @ X), (x.sum(0), X.sum(0)), (x[2:4], X[2:4]), (x.T, X.T)]:
        assert got.devices() == set(DEVICES)
        same(got, expected)


# --- constraints


def test_constraints_choose_the_mesh():
    x = polyax.jit(lambda a: lax.with_sharding_constraint(a * 2, on(GRID, "x")) + 1)(X)
    assert x.devices() == set(DEVICES)
    same(x, 2 * X + 1)


OTHER = Mesh(np.array(DEVICES).reshape(2, 4), ("x", "y"))
"""Axes of the same names as those of ``GRID``, which fall into other blocks."""


@pytest.mark.parametrize("mesh", [ROW, OTHER, Mesh(DEVICES, "x"), Mesh(np.array(DEVICES).reshape(2, 4), ("p", "q"))])
def test_constraints_mean_the_axes_of_their_own_mesh(mesh):
    for name in mesh.axis_names:
        for spec in [(name,), (None, name)]:
            got = polyax.jit(lambda a, s=spec: lax.with_sharding_constraint(a * 2, on(mesh, *s)))(put(GRID, "x", "y"))
            assert lies(got, on(mesh, *spec))
            same(got, 2 * X)


def test_axes_that_fall_into_different_blocks_meet():
    x, y = put(GRID, "x", "y"), put(OTHER, "x", "y")
    same(polyax.jit(lambda a, b: a @ b + a)(x, y), X @ X + X)
    same(x * y, X * X)
    got = polyax.jit(lambda a: a + 1, out_shardings=on(OTHER, "y", "x"))(x)
    assert got.sharding == on(OTHER, "y", "x")
    same(got, X + 1)


def test_axes_that_never_fit():
    two, three = (Mesh(np.array(DEVICES[:6]).reshape(s), ("a", "b")) for s in ((2, 3), (3, 2)))
    with pytest.raises(ValueError, match=r"(?s)'a': 2, 'b': 3.*'a': 3, 'b': 2.*device_put"):
        polyax.jit(lambda a: lax.with_sharding_constraint(a * 2, on(three, "a")))(put(two, "a", value=X[:6]))


def test_constraints_of_trees_and_outside_of_programs():
    got = lax.with_sharding_constraint({"a": X, "b": (X, X)}, {"a": on(GRID, "x"), "b": on(GRID, "y")})
    assert [s.sharding.spec for s in (got["a"], *got["b"])] == [P("x"), P("y"), P("y")]
    assert lies(lax.with_sharding_constraint(put(GRID, "x"), on(GRID, "y")), on(GRID, "y"))
    same(polyax.grad(lambda a: (lax.with_sharding_constraint(a, on(ROW, "i")) ** 2).sum())(X), 2 * X)


def test_dimensions_that_are_unconstrained_are_as_it_suits():
    x, open_rows = put(GRID, "x"), on(GRID, P.UNCONSTRAINED, "y")
    inside = polyax.jit(lambda a: lax.with_sharding_constraint(a, open_rows))(x)
    for y in (inside, lax.with_sharding_constraint(x, open_rows)):
        assert y.sharding == on(GRID, "x", "y")
        same(y, X)
    assert lax.with_sharding_constraint(put(GRID, "y"), open_rows).sharding.spec == P(None, "y")
    given = polyax.make_array_from_callback(X.shape, open_rows, X.__getitem__)
    same(polyax.jit(lambda a, b: a + b)(given, x), 2 * X)


def test_constraints_that_do_not_divide_a_dimension_leave_it():
    got = polyax.jit(lambda a: lax.with_sharding_constraint(a * 2, on(GRID, "x", "y")))(X[:6])
    assert lies(got, on(GRID, None, "y"))
    same(got, 2 * X[:6])


def test_shardings_of_an_inner_program():
    inner = polyax.jit(lambda a: a + 1, in_shardings=on(GRID, "x"), out_shardings=on(GRID, None, "y"))
    got = polyax.jit(lambda a: inner(a) * 2)(X)
    assert got.devices() == set(DEVICES)
    same(got, 2 * X + 2)


# --- contexts


def test_the_mesh_in_force():
    with polyax.set_mesh(GRID):
        for x in (jnp.ones(8), polyax.jit(lambda: jnp.ones(8))(), polyax.jit(lambda a: a * 1)(np.ones(8))):
            assert x.devices() == set(DEVICES)
        f = polyax.jit(
            lambda a: lax.with_sharding_constraint(a, P("y")), in_shardings=P("x"), out_shardings=P(None, "x")
        )
        assert lies(f(X), on(GRID, None, "x"))
        with pytest.raises(ValueError, match="(?s)incompatible devices.*context mesh"):
            polyax.jit(lambda a: a)(polyax.device_put(X, DEVICES[1]))
    assert jnp.ones(8).devices() == {DEVICES[0]}


def test_a_mesh_that_was_entered_gives_specs_their_meaning():
    with GRID:
        assert polyax.jit(lambda: jnp.ones(8))().devices() == {DEVICES[0]}
        assert lies(pjit(lambda a: a, out_shardings=P("x"))(X), on(GRID, "x"))
        assert polyax.jit(lambda a: lax.with_sharding_constraint(a, P("y")))(X).devices() == set(DEVICES)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: polyax.vmap(f)(X),
        lambda f: polyax.grad(lambda a: f(a).sum())(X),
        lambda f: polyax.jit(f)(X),
        lambda f: lax.scan(lambda c, _: (f(c), None), X, None, length=2)[0],
        lambda f: run_jaxpr(polyax.make_jaxpr(f)(X), X),
    ],
)
def test_a_mesh_that_was_entered_gives_specs_their_meaning_under_transformations(transformed):
    with GRID:
        f = pjit(lambda a: a * 2, in_shardings=P("x"), out_shardings=P("x"))
        assert transformed(f).devices() == set(DEVICES)


def run_jaxpr(closed, *args):
    return polyax.core.eval_jaxpr(closed.jaxpr, closed.consts, *args)[0]


def test_jit_and_device_put_take_specs_of_the_mesh_in_force_alone():
    with GRID:
        for name in ("in_shardings", "out_shardings"):
            f = polyax.jit(lambda a: a, **{name: P("x")})
            for call in (f, f.lower):
                with pytest.raises(RuntimeError, match=f"jit requires a non-empty mesh in context .* to {name}"):
                    call(X)
        with pytest.raises(ValueError, match="set a mesh via .*set_mesh` if a PartitionSpec is passed to device_put"):
            polyax.device_put(X, P("x"))
    with polyax.set_mesh(GRID):
        assert lies(polyax.jit(lambda a: a, in_shardings=P("x"))(X), on(GRID, "x"))
        assert lies(polyax.device_put(X, P("x")), on(GRID, "x"))


def test_a_device_of_its_own_has_no_place_on_the_mesh_in_force():
    f, g = (make(lambda a: a + 1, device=DEVICES[1]) for make in (polyax.jit, pjit))
    with polyax.set_mesh(GRID):
        for call in (f, f.lower, polyax.jit(lambda a: f(a))):
            with pytest.raises(ValueError, match="Mesh context manager should not be used with jit when backend or"):
                call(X)
        assert g(X).devices() == {DEVICES[1]}
    with GRID:
        with pytest.raises(ValueError, match="Mesh context manager should not be used with jit when backend or"):
            g(X)
        assert f(X).devices() == {DEVICES[1]}


def test_axes_of_vmap_mean_nothing_to_a_sharding_without_a_mesh():
    def f(a):
        return lax.with_sharding_constraint(a, SingleDeviceSharding(DEVICES[0]))

    same(polyax.vmap(f)(X), X)
    for run in (lambda g: g, polyax.jit):
        with pytest.raises(ValueError, match="If you are using spmd_axis_name parameter of .*SingleDeviceSharding"):
            run(polyax.vmap(f, spmd_axis_name="x"))(X)


@pytest.mark.parametrize("f", [lambda a: a[::-1], lambda a: jnp.flip(a, 1), lambda a: jnp.cumsum(a, 0)])
@pytest.mark.parametrize("spec", [("x",), ("x", "y"), (None, ("y", "x"))])
def test_what_goes_along_a_dimension_leaves_it_cut(f, spec):
    a = put(GRID, *spec)
    for run in (lambda g: g, polyax.jit):
        assert run(f)(a).sharding == a.sharding
        same(run(f)(a), f(jnp.asarray(X)))
        same(run(polyax.grad(lambda b: (f(b) * b).sum()))(a), polyax.grad(lambda b: (f(b) * b).sum())(X))


# --- donation, stages


def test_donated_arrays_are_deleted_with_their_parts():
    f = polyax.jit(lambda a: a * 2 + 1, donate_argnums=0, out_shardings=on(GRID, "x"))
    x = put(GRID, "x")
    parts = [s.data for s in x.addressable_shards]
    same(f(x), 2 * X + 1)
    assert x.is_deleted() and all(p.is_deleted() for p in parts)
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[8,8\]"):
        f(x)
    y = put(GRID, "x")
    y.addressable_shards[3].data.delete()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[8,8\]"):
        polyax.jit(lambda a: a + 1)(y)


def test_donated_arrays_that_no_result_fits_or_that_are_moved_stay_alive():
    x = put(GRID, "x")
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[\d,8\]\."):
        same(polyax.jit(lambda a: a + 1, donate_argnums=0, out_shardings=on(GRID))(x), X + 1)
    assert not x.is_deleted()
    polyax.jit(lambda a: a.sum(), donate_argnums=0)(x)
    assert not x.is_deleted()
    polyax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    y = jnp.asarray(X)
    same(
        polyax.jit(lambda a: a * 2, donate_argnums=0, in_shardings=on(GRID, "x"), out_shardings=on(GRID, "x"))(y), 2 * X
    )
    assert not y.is_deleted()
    z = put(GRID, "x")
    with pytest.raises(RuntimeError, match="Attempt to donate the same buffer twice"):
        polyax.jit(lambda a, b: (a + 1, b), donate_argnums=(0, 1), out_shardings=on(GRID, "x"))(z, z)


def test_replicas_that_share_memory_survive_donation():
    x = jnp.asarray(X)
    y = polyax.device_put(x, on(ROW))
    same(polyax.jit(lambda a: a * 0, donate_argnums=0)(y), 0 * X)
    same(x, X)


def test_stages():
    x = put(GRID, "x", None)
    lowered = polyax.jit(lambda a, k: a * k["s"], out_shardings=on(GRID, "y")).lower(x, {"s": 2.0})
    compiled = lowered.compile()
    assert "Mesh('x': 4, 'y': 2" in repr(compiled)
    ((first, _), named) = compiled.input_shardings
    assert first == x.sharding and named == {} and compiled.output_shardings == on(GRID, "y")
    same(compiled(x, {"s": 2.0}), 2 * X)
    same(compiled(X, {"s": 2.0}), 2 * X)
    with pytest.raises(ValueError, match=r"(?s)disagree.*1 mismatches.*Argument a .*Passed.*Required"):
        compiled(put(GRID, "y"), {"s": 2.0})
    shape = polyax.ShapeDtypeStruct((8, 8), np.float32, sharding=on(GRID, "x"))
    assert polyax.jit(lambda a: a).lower(shape).compile().input_shardings[0] == (on(GRID, "x"),)


# --- compiled once


def test_devices_that_are_alike_share_what_is_compiled():
    backend, compiled = DEVICES[0].backend, []
    original = backend.compile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "compile", lambda *args: compiled.append(args) or original(*args))
        polyax.jit(lambda a: jnp.tanh(a) * 3)(put(ROW, "i")).block_until_ready()
        assert len(compiled) == 1
        polyax.pmap(lambda a: jnp.cosh(a) * 3)(X).block_until_ready()
        assert len(compiled) == 2
        f = polyax.jit(lambda a: jnp.sinh(a) * 3)
        for d in DEVICES:
            assert f(polyax.device_put(X, d)).devices() == {d}
        assert len(compiled) == 3
        for d in DEVICES:
            assert jnp.expm1(polyax.device_put(X, d)).devices() == {d}
        assert len(compiled) == 4


def test_programs_are_found_by_how_arguments_lie():
    f = polyax.jit(lambda a: a - 4)
    shardings = [on(GRID, "x"), on(GRID, "y"), on(ROW, "i")]
    arrays = [polyax.device_put(X, s) for s in shardings]
    for x in arrays:
        f(x)
    backend = DEVICES[0].backend
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "compile", None)
        for x in arrays * 2:
            same(f(x), X - 4)


def test_the_log_of_compilations_names_the_mesh(caplog):
    with polyax.log_compiles(True), caplog.at_level(logging.WARNING):
        polyax.jit(lambda a: jnp.sqrt(a) - 5)(put(GRID, "x"))
    assert any("Mesh('x': 4, 'y': 2" in r.message for r in caplog.records)


def test_explain_lists_what_is_exchanged_and_why():
    f = polyax.jit(lambda a, b: a @ b)
    told = polyax.explain(f)(put(ROW, None, "i"), put(ROW, "i"))
    text = told.text(300)
    assert "on each device of Mesh('i': 8" in text and "sent by each device" in text
    assert told.moves and all(m.collective in text and m.reason in text and "i" in m.axes for m in told.moves)
    assert not polyax.explain(f)(put(ROW, "i"), put(ROW)).moves
    both = polyax.explain(lambda a: (a.sum(0), (a * a).sum()))(put(ROW, "i"))
    assert len(both.moves) == 2 and "in 2 exchanges, for which devices meet at 1 place" in both.text(300)


# --- launches


def test_members_take_turns_in_one_thread():
    """What meets in no loop needs no thread of another device, even while those are busy."""
    x = put(ROW, "i")
    f = polyax.jit(lambda a: (a - a.mean(0)) @ (a.T @ a), in_shardings=on(ROW, "i"))
    f(x).block_until_ready()
    with pytest.MonkeyPatch.context() as patch:
        for d in DEVICES[1:]:
            patch.setattr(d, "queue", None)
        got = f(x)
    close_everywhere(got, (X - X.mean(0)) @ (X.T @ X), 1e-4, 1e-3)


def test_large_sums_of_products():
    """Of which no device needs its own part: one that is a result, gradients among other sums."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((160, 64), (64, 130)))
    got = polyax.jit(lambda a, b: a @ b, in_shardings=(on(ROW, None, "i"), on(ROW, "i")))(a, b)
    close_everywhere(got, a @ b, 1e-4, 1e-3)

    def loss(w, v, x):
        return (polyax.numpy.tanh(x @ w) @ v).sum()

    w, v = a.T, rng.standard_normal((160, 2)).astype(np.float32)
    grad = polyax.jit(polyax.grad(loss, (0, 1)), in_shardings=(on(ROW), on(ROW), on(ROW, "i")))
    for got, want in zip(grad(w, v, b.T[:128]), polyax.grad(loss, (0, 1))(w, v, b.T[:128]), strict=True):
        close_everywhere(got, np.asarray(want), 1e-4, 1e-3)


def test_large_reductions_and_exchanges():
    big = np.random.default_rng(0).standard_normal((8, 1 << 16)).astype(np.float32)
    summed = polyax.pmap(lambda a: (lax.psum(a, "i"), lax.pmax(a, "i"), lax.all_gather(a, "i")[3]), "i")
    total, highest, third = summed(big)
    for n in (0, 7):
        np.testing.assert_allclose(np.asarray(total)[n], big.sum(0), 1e-4, 1e-4)
        same(highest[n], big.max(0))
        same(third[n], big[3])
    turned = polyax.pmap(lambda a: lax.ppermute(a, "i", [(n, (n + 1) % 8) for n in range(8)]), "i")(big)
    same(turned, np.roll(big, 1, 0))


def test_exchanges_in_loops():
    def step(a):
        return lax.fori_loop(0, 3, lambda _, c: lax.psum(c, "i") / 8 + a, a)

    expected = X
    for _ in range(3):
        expected = expected.mean(0) + X
    same(polyax.pmap(step, "i")(X), expected)


# --- bad input


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ValueError, r"argument a of f with .*\[8,8\] and with device ids \[0, .*argument b\['k'\] of f with .*\[1\]",
         lambda f: f(put(GRID, "x"), {"k": polyax.device_put(X, DEVICES[1])})),
        (ValueError, r"argument a of f .*\[0, 1, 2, 3, 4, 5, 6, 7\].*argument b of f .*\[0, 1, 2, 3\]",
         lambda f: f(put(GRID, "x"), put(HALF, "i"))),
        (ValueError, r"sharding_constraint inside jit with device ids \[0, 1, 2, 3\]",
         lambda f: polyax.jit(lambda a: lax.with_sharding_constraint(a, on(HALF, "i")))(put(GRID))),
        (ValueError, r"Sharding passed to jit does not match the sharding on the respective arg.*P\('y',\).*P\('x',\)",
         lambda f: polyax.jit(f, in_shardings=on(GRID, "y"))(put(GRID, "x"), X)),
        (ValueError, r"array axis 0 is partitioned 4 times, but the dimension size is 5 \(full shape: \(5, 8\)",
         lambda f: polyax.jit(f, in_shardings=on(GRID, "x"))(X[:5], X)),
        (ValueError, r"array axis 1 is partitioned 8 times, but the dimension size is 5",
         lambda f: polyax.jit(lambda a: a[:, :5], out_shardings=on(ROW, None, "i"))(X)),
        (ValueError, r"must be a tree prefix of the positional arguments tuple.*length 1 for an args tuple of length 2",
         lambda f: polyax.jit(f, in_shardings=(on(GRID, "x"),))(X, X)),
        (ValueError, r"is not a tuple: got <class 'dict'>",
         lambda f: polyax.jit(f, in_shardings={"a": on(GRID, "x")})(X, X)),
        (ValueError, r"pytree structure error: .* at key path\n    pjit out_shardings",
         lambda f: polyax.jit(f, out_shardings=(on(GRID), on(GRID), on(GRID)))(X, X)),
        (ValueError, r"does not support kwargs when in_shardings is specified",
         lambda f: polyax.jit(f, in_shardings=on(GRID, "x"))(X, b=X)),
        (RuntimeError, r"jit requires a non-empty mesh in context",
         lambda f: polyax.jit(f, in_shardings=P("x"))(X, X)),
        (RuntimeError, r"with_sharding_constraint requires a non-empty mesh in context",
         lambda f: lax.with_sharding_constraint(X, P("x"))),
        (ValueError, r"Sharding .*P\('x', None, 'y'\).* is only valid for values of rank at least 3",
         lambda f: lax.with_sharding_constraint(X, on(GRID, "x", None, "y"))),
        (TypeError, r"in_shardings leaf specifications are expected to be PartitionSpec instances or None, but got q",
         lambda f: polyax.jit(f, in_shardings="q")(X, X)),
        (ValueError, r"Unconstrained dims are not allowed when passed to in_shardings: .*UNCONSTRAINED, 'y'",
         lambda f: polyax.jit(f, in_shardings=on(GRID, P.UNCONSTRAINED, "y"))(X, X)),
        (ValueError, r"Unconstrained dims are not allowed when passed to out_shardings: NamedSharding",
         lambda f: polyax.jit(f, out_shardings=on(GRID, P.UNCONSTRAINED, "y"))(X, X)),
        (ValueError, r"If backend or device is specified on jit, then out_shardings should not be specified",
         lambda f: polyax.jit(f, device=DEVICES[0], out_shardings=on(GRID))),
        (ValueError, r"not supported for more than 1 device",
         lambda f: polyax.jit(lambda a: polyax.debug.print("{}", a, ordered=True))(put(GRID))),
    ],
)  # fmt: skip
def test_bad_input(error, text, call):
    @polyax.jit
    def f(a, b):
        return a, b

    with pytest.raises(error, match="(?s)" + text):
        call(f)


def test_an_unknown_axis():
    with polyax.set_mesh(GRID), pytest.raises(ValueError, match="Resource axis: z of .* is not found in mesh"):
        polyax.jit(lambda a: a, in_shardings=P("z"))(X)


# --- shapes that tell where results will lie


def test_shapes_tell_the_shardings_that_were_asked_for():
    x, where = put(GRID, "x"), on(GRID, None, "x")
    f = polyax.jit(lambda a: (a.T, a * 2), out_shardings=(where, None))
    stages = (f.trace(x), f.lower(x), f.lower(x).compile())
    for told in (f.eval_shape(x), polyax.eval_shape(f, x), *(s.out_info for s in stages)):
        assert told[0].sharding == where and told[0].shape == (8, 8)
    assert f.eval_shape(x)[1].sharding is None
    assert stages[2].out_info[1].sharding == f(x)[1].sharding
    assert polyax.eval_shape(lambda a: a + 1, x).sharding is None


def test_what_is_open_is_refused_before_any_call():
    for name in ("in_shardings", "out_shardings"):
        with pytest.raises(ValueError, match=f"Unconstrained dims are not allowed when passed to {name}: Named"):
            polyax.jit(lambda a: a, **{name: {"a": on(GRID, P.UNCONSTRAINED, "y")}})


def test_what_is_no_sharding_is_refused_before_any_call():
    with pytest.raises(TypeError, match="in_shardings leaf specifications are expected .* but got q"):
        polyax.jit(lambda a: a, in_shardings=("q",))
    with pytest.raises(TypeError, match="out_shardings leaf specifications are expected .* but got 3"):
        polyax.jit(lambda a: a, out_shardings={"a": 3})


# --- pjit, and a mesh that is entered


def test_pjit_runs_on_the_mesh_that_is_entered():
    f = pjit(lambda a: a + 1)
    assert f(X).sharding.num_devices == 1 and f.lower(X).compile()(X).sharding.num_devices == 1
    with GRID:
        assert f(X).sharding == f.lower(X).compile()(X).sharding == on(GRID)
        assert polyax.jit(lambda a: f(a))(X).sharding.num_devices == 1
        with pytest.raises(ValueError, match="incompatible devices for jitted computation"):
            f(polyax.device_put(X, DEVICES[1]))


def test_none_given_to_pjit_in_a_mesh_is_the_same_everywhere():
    @pjit(out_shardings=(None, P("x")))
    def f(a):
        return a * 2, a

    with GRID:
        same_everywhere, cut = f(X)
    assert same_everywhere.sharding == on(GRID) and cut.sharding == on(GRID, "x")
    assert pjit(lambda a: a, out_shardings=None)(put(GRID, "x")).sharding == on(GRID, "x")


def test_a_mesh_decorates():
    @GRID
    def f():
        return pjit(lambda a: a, in_shardings=P("x"))(X)

    same(f(), X)
    assert f().sharding.mesh == GRID


def test_axes_of_one_device_make_no_difference():
    line = Mesh(np.array(DEVICES[:2]).reshape(2, 1), ("x", "y"))
    assert on(line, "x", "y").is_equivalent_to(on(line, "x"), 2)
    assert not on(line, "y").is_equivalent_to(on(line, "x"), 2)


@pytest.mark.parametrize("like", [jnp.zeros_like, jnp.ones_like, lambda a: jnp.full_like(a, 3), jnp.empty_like])
def test_arrays_like_a_shape_lie_as_it_tells(like):
    told = polyax.ShapeDtypeStruct((8, 8), np.float32, sharding=on(GRID, "x"))
    assert like(told).sharding == on(GRID, "x")


# --- what moves along a dimension that is cut


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x[2:6],
        lambda x: x[:, ::2],
        lambda x: jnp.roll(x, 3, 0),
        lambda x: jnp.roll(x, (1, 2), (0, 1)),
        lambda x: jnp.concatenate([x, x]),
        lambda x: jnp.concatenate([x, x * 2], 1),
        lambda x: jnp.pad(x, ((2, 2), (1, 1))),
        lambda x: jnp.sort(-x, 0),
        lambda x: lax.dynamic_slice(x, (0, 2), (8, 4)),
        lambda x: jnp.split(x, 2)[1],
    ],
)
def test_results_stay_cut_along_the_dimensions_that_data_moves_along(move):
    square = Mesh(np.array(DEVICES[:4]).reshape(2, 2), ("x", "y"))
    found = polyax.jit(move)(put(square, "x", "y"))
    assert lies(found, on(square, "x", "y"))
    same(found, move(jnp.asarray(X)))


def test_what_does_not_divide_or_is_found_in_a_run_is_not_cut():
    x = put(GRID, "x", "y")
    assert lies(polyax.jit(lambda v: v[1:] - v[:-1])(x), on(GRID, None, "y"))
    chosen = polyax.jit(lambda v, i: lax.dynamic_slice_in_dim(v, i, 4, 0))(x, 2)
    assert lies(chosen, on(GRID, None, "y"))
    same(chosen, X[2:6])
