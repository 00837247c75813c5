"""Arguments whose values decide: they may be traced where somebody knows the value, and are named where nobody does."""

import copy
import io

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.errors import ConcretizationTypeError


def test_a_number_that_is_differentiated_still_decides_about_shapes():
    (parts, _) = polyax.jvp(lambda n: jnp.split(jnp.zeros((12, 2)), n), (2.0,), (1.0,))
    assert [p.shape for p in parts] == [(6, 2), (6, 2)]
    (parts, _) = polyax.jvp(lambda n: jnp.split(jnp.zeros((12, 2)), (1, n.astype(np.int32))), (2.0,), (1.0,))
    assert [p.shape for p in parts] == [(1, 2), (1, 2), (10, 2)]
    assert polyax.jvp(lambda n: jnp.arange(n), (3.0,), (1.0,))[0].tolist() == [0, 1, 2]
    assert polyax.jvp(lambda n: 1.0 * len(jnp.mgrid[:n]), (3.0,), (1.0,))[0] == 3


@pytest.mark.parametrize("sections", [lambda n: n, lambda n: [2, n]])
def test_a_number_of_parts_that_nobody_knows(sections):
    with pytest.raises(ConcretizationTypeError, match="Abstract tracer value.*\n.*numpy.split"):
        polyax.jit(lambda n: jnp.split(jnp.zeros((12, 2)), sections(n)))(2)


@pytest.mark.parametrize("name", ["mgrid", "ogrid", "r_", "c_"])
def test_a_traced_slice_is_named(name):
    with pytest.raises(ConcretizationTypeError, match=f"slice start of jnp.{name}"):
        polyax.jit(lambda a, b: getattr(jnp, name)[a:b])(0, 2)


def test_a_grid_of_nothing():
    assert (jnp.mgrid[()].shape, jnp.mgrid[()].dtype, jnp.ogrid[()]) == ((0,), np.int32, [])


def test_bytes_of_what_is_traced():
    with pytest.raises(ConcretizationTypeError, match=r"The tobytes\(\) method was called on traced array"):
        polyax.jit(lambda x: x.tobytes())(np.ones(3))
    seen = []
    polyax.grad(lambda x: seen.append(x.tobytes()) or x)(1.0)
    assert seen == [np.float32(1).tobytes()]


@pytest.mark.parametrize("make", [jnp.ones, jnp.zeros, jnp.empty])
def test_a_shape_in_two_arguments(make):
    with pytest.raises(TypeError, match=r"Did you accidentally write `jax.numpy.\w+\(2, 3\)` when you meant"):
        make(2, 3)


@pytest.mark.parametrize("kind", [int, float, np.int32, np.float32])
def test_counting_copies_nothing_to_the_device(kind):
    with polyax.transfer_guard("disallow"):
        assert jnp.arange(kind(5)).shape == (5,)


def test_a_range_ends_after_a_broken_number():
    assert (jnp.arange(2.5).tolist(), jnp.arange(-1.5).tolist()) == ([0, 1, 2], [])


def test_functions_of_pieces_are_traced_once():
    traced = []

    def piece(x):
        traced.append(x)
        return x

    x = jnp.arange(10.0)
    for _ in range(5):
        assert jnp.piecewise(x, [x < 2], [piece, 7.0]).tolist() == [0, 1] + [7] * 8
    assert len(traced) == 1


def test_pieces_take_further_arguments():
    x = jnp.arange(4.0)
    functions = [lambda x, k, m=0: x + k + m, -1]
    expected = [12, 13, -1, -1]
    assert jnp.piecewise(x, [x < 2], functions, 2, m=10).tolist() == expected
    assert polyax.jit(lambda x: jnp.piecewise(x, [x < 2], functions, 2, m=10))(x).tolist() == expected


def test_positions_in_a_number_of_a_known_size():
    assert jnp.argwhere(1.0, size=3).shape == (3, 0)
    assert polyax.jit(lambda x: jnp.argwhere(x, size=2))(0.0).shape == (2, 0)


def test_loading_what_only_numpy_has():
    with io.BytesIO() as file:
        np.save(file, np.array([1, "a"], object))
        file.seek(0)
        assert jnp.load(file, allow_pickle=True).tolist() == [1, "a"]


def test_the_same_axis_twice():
    with pytest.raises(ValueError, match=r"repeated axis: \(0, 0\)"):
        jnp.size(np.zeros((2, 3, 4)), (0, -3))


def test_types_without_a_number_of_bits_are_those_of_numpy():
    found = jnp.int_, jnp.uint, jnp.float_, jnp.complex_
    assert found == (np.int64, np.uint64, np.float64, np.complex128)


@pytest.mark.parametrize(
    "shape, distances, axis",
    [((3, 10), (3, 1), -1), ((2, 3), (3,), 0), ((3, 4, 5), (3, 5), 1), ((3, 4, 5), (2, 4, 5), 0), ((3, 4), (), 0)],
)
def test_distances_that_differ(shape, distances, axis):
    y = np.random.default_rng(0).random(shape).astype(np.float32)
    dx = np.random.default_rng(1).random(distances).astype(np.float32)
    aligned = dx.reshape((1,) * (len(shape) - dx.ndim) + dx.shape)
    halves = (np.moveaxis(y, axis, -1)[..., 1:] + np.moveaxis(y, axis, -1)[..., :-1]) / 2
    expected = (halves * np.moveaxis(aligned, axis, -1)).sum(-1)
    np.testing.assert_allclose(jnp.trapezoid(y, dx=dx, axis=axis), expected, rtol=1e-5)


@pytest.mark.parametrize("made", [jnp.copy, jnp.array, copy.copy, copy.deepcopy, lambda x: x.copy()])
def test_a_copy_is_another_array_under_transformations(made):
    assert [e.primitive.name for e in polyax.make_jaxpr(made)(1.0).eqns] == ["copy"]
    for transformed in (polyax.vmap(made), lambda x: polyax.jvp(made, (x,), (x,))[0], lambda x: polyax.vjp(made, x)[0]):
        x = jnp.ones(3)
        transformed(x).delete()
        assert x.tolist() == [1, 1, 1]


def test_the_mask_of_an_array_is_left_behind_by_copies_only():
    masked = np.ma.array([1, 2], mask=[True, False])
    assert jnp.array(masked).tolist() == [1, 2]
    with pytest.raises(ValueError, match="masked arrays are not supported"):
        jnp.asarray(masked)


@pytest.mark.parametrize("descending", [False, True])
def test_positions_of_a_dtype(descending):
    found = jnp.argsort(np.array([2.0, 1.0, 3.0]), dtype="int16", descending=descending)
    assert (found.dtype, found.tolist()) == (np.int16, [2, 0, 1] if descending else [1, 0, 2])
