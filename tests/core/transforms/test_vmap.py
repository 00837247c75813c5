"""vmap: axes in and out, nesting, names, and the errors that show both sides."""

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(("in_axis", "out_axis"), [(0, 0), (1, 0), (0, 1), (-1, -1)])
def test_axes(in_axis, out_axis):
    out = polyax.vmap(lambda r: r * jnp.sum(r), in_axes=in_axis, out_axes=out_axis)(A)
    rows = np.moveaxis(A, in_axis, 0)
    np.testing.assert_allclose(out, np.moveaxis(rows * rows.sum(1, keepdims=True), 0, out_axis))


def test_none_passes_whole_and_broadcasts_results():
    x, y = polyax.vmap(lambda r, c: (r + c, c), in_axes=(0, None))(A, 2.0)
    np.testing.assert_allclose(x, A + 2)
    np.testing.assert_allclose(y, [2, 2, 2])
    _, y = polyax.vmap(lambda r, c: (r + c, c), in_axes=(0, None), out_axes=(0, None))(A, 2.0)
    assert float(y) == 2.0


def test_pytrees_of_axes():
    f = lambda p: p["a"] * p["b"]
    out = polyax.vmap(f, in_axes=({"a": 0, "b": None},))({"a": A, "b": 3.0})
    np.testing.assert_allclose(out, A * 3)


def test_nested_maps_are_an_outer_product():
    f = polyax.vmap(polyax.vmap(lambda x, y: x * y, (None, 0)), (0, None))
    np.testing.assert_allclose(f(A[0], A[1]), np.outer(A[0], A[1]))


def test_keyword_arguments_are_mapped_over_axis_0():
    np.testing.assert_allclose(polyax.vmap(lambda x, y: x + y)(A, y=A), 2 * A)


def test_axis_size_alone():
    assert polyax.vmap(lambda: jnp.ones(2), axis_size=3)().shape == (3, 2)


def test_a_jitted_function_is_mapped_as_a_program():
    f = polyax.jit(lambda x: jnp.sin(x) + 1)
    closed = polyax.make_jaxpr(polyax.vmap(f))(A)
    assert [e.primitive.name for e in closed.eqns] == ["jit"]
    np.testing.assert_allclose(polyax.vmap(f)(A), np.sin(A) + 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: polyax.vmap(jnp.add)(A, A[:2]),
            r"inconsistent sizes .*\n.*size 3: .*float32\[3,4\];\n.*size 2: .*float32\[2,4\]",
        ),
        (
            lambda: polyax.vmap(lambda x, y: x)(A, y={"k": A[:2]}),
            r"size 2: axis 0 of kwargs\['y'\]\['k'\] of type float32",
        ),
        (lambda: polyax.vmap(jnp.add, (0,))(A, A), r"len\(in_axes\)=1, len\(args\)=2"),
        (lambda: polyax.vmap(jnp.sin, 2)(A), r"rank should be at least 3, but is only 2 \(its shape is \(3, 4\)\)"),
        (lambda: polyax.vmap(jnp.sin, None)(A), "at least one non-None value in in_axes"),
        (lambda: polyax.vmap(jnp.sin, out_axes=None)(A), "mapped output but out_axes is None"),
        (lambda: polyax.vmap(lambda p: p, ({"a": 0},))({"b": A}), "in_axes specification must be a tree prefix"),
    ],
)
def test_errors_show_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_axes_of_the_wrong_type():
    with pytest.raises(TypeError, match="in_axes must be an int, None, or"):
        polyax.vmap(jnp.sin, in_axes="0")


MOVING = {
    "slices": lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 2)),
    "updates": lambda x, i: lax.dynamic_update_slice(x, x[:1], (i, 0)),
    "rows": lambda x, i: x[i],
    "additions": lambda x, i: x.at[i].add(1),
    "loops": lambda x, i: lax.fori_loop(0, 2, lambda n, c: c.at[i].set(c[n]), x),
}


@pytest.mark.parametrize("name", MOVING)
def test_batches_of_nobody(name):
    fun = MOVING[name]
    x, i = jnp.zeros((0, 3, 2)), jnp.zeros(0, jnp.int32)
    shape = polyax.eval_shape(fun, x.sum(0), jnp.int32(0)).shape
    assert polyax.vmap(fun)(x, i).shape == (0, *shape)
    assert polyax.vmap(fun, (0, None))(x, 1).shape == (0, *shape)
    assert polyax.vmap(fun, (None, 0))(x.sum(0), i).shape == (0, *shape)


def test_what_is_passed_whole_may_be_anything() -> None:
    apply = polyax.vmap(lambda f, x: f(x), (None, 0))
    np.testing.assert_array_equal(apply(lambda x: x + 1, np.arange(3)), [1, 2, 3])
    with pytest.raises(TypeError, match="is not a valid JAX type: Argument f of vmap"):
        polyax.vmap(lambda f, x: f(x))(lambda x: x, np.arange(3))


def test_axes_that_differ_are_counted() -> None:
    one, two = np.ones(1, np.float32), np.ones(2, np.float32)
    with pytest.raises(ValueError) as error:
        polyax.vmap(lambda x, y, z: x)(two, z=one, y=two)
    text = "most axes (2 of them) had size 2, e.g. axis 0 of argument x of type float32[2];\n"
    assert text + "  * one axis had size 1: axis 0 of kwargs['z'] of type float32[1]" in str(error.value)


def test_a_bool_is_no_axis():
    with pytest.raises(TypeError, match="vmap in_axes must be an int, None, or a tuple of entries"):
        polyax.vmap(lambda x: x, in_axes=True)(np.ones((2, 2)))


def test_calls_without_anything_to_map() -> None:
    with pytest.raises(ValueError, match=r"or axis_size must be specified, got empty \*args=\({},\) and \*\*kwargs={}"):
        polyax.vmap(lambda x: x)({})
    with pytest.raises(ValueError, match="at least one non-None value in in_axes or axis_size must be specified"):
        polyax.vmap(lambda x: x, in_axes=None)(1.0)
    with pytest.raises(TypeError, match=r"in_axes must be an int, None, or \(nested\) container.*got \(True,\)"):
        polyax.vmap(lambda x: x, in_axes=(True,))(np.ones(3))


def test_indices_of_a_batch_may_be_equal() -> None:
    """One index alone is promised to be unique; those of a batch aren't, and what meets in one place is added up."""
    x, places = jnp.ones((3, 4)), np.random.default_rng(0).integers(0, 5, (3, 24))
    at = polyax.vmap(polyax.vmap(lambda row, k: row.at[k].get(mode="fill", fill_value=0), in_axes=(None, 0)))
    counts = [np.bincount(row, minlength=5)[:4] for row in places]
    np.testing.assert_array_equal(polyax.grad(lambda x: at(x, places).sum())(x), counts)
