"""Shardings in types: they go from operands to results, are asked for where that isn't clear, and modes are mixed."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.errors import ShardingTypeError
from polyax.sharding import AbstractMesh, AxisType, auto_axes, explicit_axes, get_abstract_mesh, use_abstract_mesh
from polyax.sharding import PartitionSpec as P

if len(jax.devices()) < 8:
    pytest.skip("run by test_guides.py, with eight devices", allow_module_level=True)
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def mesh():
    with jax.set_mesh(jax.make_mesh((4, 2), ("X", "Y"))) as found:
        yield found


def put(x, *spec):
    return jax.reshard(x, P(*spec))


def told(x):
    return str(jax.typeof(x))


RESULTS = {
    "elementwise": (lambda x: jnp.sin(x), ("X", "Y"), "float32[8@X,4@Y]"),
    "transposed": (lambda x: x.T, ("X", "Y"), "float32[4@Y,8@X]"),
    "summed": (lambda x: x.sum(0), ("X", "Y"), "float32[4@Y]"),
    "scaled": (lambda x: x * jnp.arange(4.0), ("X", None), "float32[8@X,4]"),
    "split": (lambda x: x.reshape(8, 2, 2), ("X", None), "float32[8@X,2,2]"),
    "merged": (lambda x: x.reshape(2, 4, 4).reshape(2, 16), (None, None), "float32[2,16]"),
    "several axes": (lambda x: -x, (("X", "Y"),), "float32[8@(X,Y),4]"),
    "mapped": (jax.vmap(jnp.cumsum), ("X", None), "float32[8@X,4]"),
    "looped": (lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, length=3)[0], ("X", "Y"), "float32[8@X,4@Y]"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_types_of_results(name):
    f, spec, expected = RESULTS[name]
    x, seen = put(X, *spec), []
    y = jax.jit(lambda v: seen.append(told(r := f(v))) or r)(x)
    assert seen == [expected] and told(f(x)) == told(y) == expected
    np.testing.assert_allclose(y, f(jnp.asarray(X)), 1e-5)


def test_types_tell_of_arrays_and_of_traced_values(mesh):
    assert told(np.arange(4)) == "int32[4]" and told(put(X, "X", "Y")) == "float32[8@X,4@Y]"
    x, y = put(X[:, :1], "X"), put(X[:1], None, "Y")
    assert told(x + y) == told(jax.jit(jnp.add)(x, y)) == "float32[8@X,4@Y]"
    assert str(get_abstract_mesh()).startswith("AbstractMesh('X': 4, 'Y': 2, axis_types=(Explicit, Explicit)")
    assert jax.typeof(x).sharding.spec == P("X", None) and jax.device_put(X, P("Y")).sharding.mesh == mesh


def test_products_ask_how_results_are_to_be_cut():
    x, y = put(X, None, "X"), put(X.T, "X", None)
    with pytest.raises(ShardingTypeError, match=r"ambiguous how the output should be sharded.*`out_sharding`"):
        jnp.dot(x, y)
    for spec, expected in [(P("X", None), "[8@X,8]"), (P(None, "X"), "[8,8@X]"), (P(), "[8,8]")]:
        for got in (jnp.dot(x, y, out_sharding=spec), jnp.einsum("ij,jk->ik", x, y, out_sharding=spec)):
            assert told(got) == f"float32{expected}"
            np.testing.assert_allclose(got, X @ X.T, 1e-5)
    assert told(put(X, "X") @ put(X.T)) == "float32[8@X,8]"


def test_within_auto_axes_the_partitioner_decides():
    square = X[:4]
    x, y = put(square, "X", None), put(square, None, "X")
    with pytest.raises(
        ShardingTypeError, match=r"f32\[4@X,4], f32\[4,4@X] produces an illegally sharded result: f32\[4@X,4@X]"
    ):
        x + y

    @auto_axes
    def add(a, b):
        assert told(a) == "float32[4,4]" and get_abstract_mesh().are_all_axes_auto
        return a + b

    got = add(x, y, out_sharding=P("X", None))
    assert told(got) == "float32[4@X,4]"
    np.testing.assert_array_equal(got, 2 * square)

    @functools.partial(auto_axes, axes="X")
    def some(a):
        assert told(a) == "float32[8,4@Y]"
        return a * 2

    assert told(jax.jit(lambda a: some(a, out_sharding=P("X", "Y")))(put(X, "X", "Y"))) == "float32[8@X,4@Y]"


@pytest.mark.parametrize("spec", [P(), P("X"), P("Y"), P("X", "Y"), P(None, "X"), P("X", P.UNCONSTRAINED)], ids=str)
def test_within_auto_axes_constraints_are_the_partitioners(spec):
    def double(a):
        cut = jax.lax.with_sharding_constraint(a * 2, spec)
        assert told(cut) == "float32[8,4]"
        return cut

    got = jax.jit(auto_axes(double, out_sharding=P("X", None)))(put(X, "X"))
    assert told(got) == "float32[8@X,4]"
    np.testing.assert_array_equal(got, 2 * X)


def test_within_explicit_axes_types_tell():
    @explicit_axes
    def double(a):
        assert told(a) == told(a * 2) == "float32[8@X,4@Y]"
        return a * 2

    with jax.set_mesh(jax.make_mesh((4, 2), ("X", "Y"), (AxisType.Auto,) * 2)):
        got = jax.jit(lambda a: double(jnp.sin(a), in_sharding=P("X", "Y")) + 1)(jax.device_put(X, P("X")))
        assert told(got) == "float32[8,4]"
        np.testing.assert_allclose(got, 2 * np.sin(X) + 1, 1e-5)
        z = jax.jit(lambda a: jax.lax.with_sharding_constraint(a @ a.T, P("X", None)))(X)
        assert z.addressable_shards[2].data.shape == (2, 8)


def test_arrays_say_more_than_their_types_where_axes_are_automatic():
    seen = []

    @auto_axes
    def look(a):
        seen.append(jax.typeof(a).sharding.spec)
        return a

    x = put(X, "X")
    assert x.sharding.spec == jax.typeof(x).sharding.spec == P("X", None)
    assert look(x, out_sharding=P("X")).sharding.spec == P("X", None) and seen == [P(None, None)]


def test_the_same_devices_along_other_axes():
    @jax.jit
    def f(x):
        with use_abstract_mesh(AbstractMesh((8,), ("A",), (AxisType.Explicit,))):
            return jax.reshard(x, P("A", None)) * 2

    got = f(put(X, "X", "Y"))
    assert told(got) == "float32[8@A,4]" and got.addressable_shards[3].data.shape == (1, 4)
    np.testing.assert_array_equal(got, 2 * X)


def test_gradients_are_cut_as_what_they_are_of():
    w, x = X.T[:, :2] / 9, X
    dw, dx = jax.grad(lambda w, x: ((x @ w) ** 2).sum(), (0, 1))(put(w), put(x, "X"))
    assert (told(dw), told(dx)) == ("float32[4,2]", "float32[8@X,4]")
    np.testing.assert_allclose(dw, 2 * x.T @ (x @ w), 1e-5)
    np.testing.assert_allclose(dx, 2 * (x @ w) @ w.T, 1e-5)


def test_a_function_by_hand_takes_specs_from_types():
    @jax.shard_map(out_specs=P("X", None))
    def product(a, b):
        return jax.lax.psum_scatter(a @ b, "X", tiled=True)

    got = product(put(X, None, "X"), put(X.T, "X", None))
    assert told(got) == "float32[8@X,8]"
    np.testing.assert_allclose(got, X @ X.T, 1e-5)
