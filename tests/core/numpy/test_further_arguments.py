"""Arguments of NumPy's functions that are seldom given, against NumPy."""

import io

import ml_dtypes
import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 7)).astype(np.float32)
WEIGHTS = RNG.uniform(size=(4, 7)).astype(np.float32)
FRACTIONS = np.array([0.0, 0.1, 0.5, 0.9, 1.0], np.float32)


@pytest.mark.parametrize("keepdims", [False, True], ids=["", "keepdims"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)], ids=str)
def test_quantiles_of_weighted_elements(axis, weights, keepdims):
    given = {"axis": axis, "weights": weights, "method": "inverted_cdf", "keepdims": keepdims}
    np.testing.assert_array_equal(jnp.quantile(X, FRACTIONS, **given), np.quantile(X, FRACTIONS, **given))
    np.testing.assert_array_equal(jnp.percentile(X, 30, **given), np.percentile(X, 30, **given))


def test_quantiles_with_a_weight_for_each_place_along_the_axis():
    given = {"axis": 1, "weights": WEIGHTS[0], "method": "inverted_cdf"}
    np.testing.assert_array_equal(jnp.quantile(X, 0.4, **given), np.quantile(X, 0.4, **given))


def test_quantiles_of_weighted_elements_and_nan():
    spoilt = np.where(X > 1.5, np.nan, X)
    given = {"axis": 0, "weights": WEIGHTS, "method": "inverted_cdf"}
    np.testing.assert_array_equal(jnp.nanquantile(spoilt, 0.6, **given), np.nanquantile(spoilt, 0.6, **given))
    np.testing.assert_array_equal(jnp.quantile(spoilt, 0.6, **given), np.quantile(spoilt, 0.6, **given))


def test_weights_need_the_method_for_them():
    with pytest.raises(NotImplementedError, match="linear doesn't support weights"):
        jnp.quantile(X, 0.5, weights=WEIGHTS)
    with pytest.raises(ValueError, match=r"Weights shape \(3,\)"):
        jnp.quantile(X, 0.5, axis=0, weights=WEIGHTS[0, :3], method="inverted_cdf")


@pytest.mark.parametrize("points", [(), (2.0,), (2.0, 3.0), (np.arange(4.0) ** 2, np.arange(7.0) ** 1.5)])
def test_derivatives_at_distances_and_at_coordinates(points):
    for ours, numpys in zip(jnp.gradient(X, *points), np.gradient(X.astype(float), *points), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-4, atol=1e-5)


def test_coordinates_must_be_as_many_as_elements():
    with pytest.raises(ValueError, match="same length as the dimension"):
        jnp.gradient(X, np.arange(3.0), axis=1)
    with pytest.raises(ValueError, match="1D arrays or scalars"):
        jnp.gradient(X, X, axis=1)


@pytest.mark.parametrize("period", [5, -5.0])
def test_interpolation_of_periodic_functions(period):
    x, xp, fp = np.linspace(-20, 20, 41), [3.0, 1, 7, 11], [2.0, 3, 1, 5]
    expected = np.interp(x, xp, fp, period=period)
    np.testing.assert_allclose(jnp.interp(x, np.array(xp), np.array(fp), period=period), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="period must be a scalar"):
        jnp.interp(x, np.array(xp), np.array(fp), period=x)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[1.0, 2, 3], [3.0, 2, 1]], ids=str)
def test_bins_in_either_order_and_what_lies_on_their_edges(bins, right):
    x = np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5])
    np.testing.assert_array_equal(jnp.digitize(x, np.array(bins), right), np.digitize(x, bins, right))


def test_polynomials_of_matrices_and_many_polynomials_at_once():
    matrix = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 3]])
    np.testing.assert_allclose(jnp.poly(matrix), np.poly(matrix), rtol=1e-4)
    np.testing.assert_array_equal(jnp.poly(1), [1, -1])
    with pytest.raises(ValueError, match="non-empty square"):
        jnp.poly(np.ones((2, 3)))
    low, many = np.array([[1, 2, 3]]), np.array([[4, 5, 6], [7, 8, 9]])
    np.testing.assert_array_equal(jnp.polyadd(low, many), [[4, 5, 6], [8, 10, 12]])
    np.testing.assert_array_equal(jnp.polysub(many, low), [[4, 5, 6], [6, 6, 6]])


def test_numbers_at_equal_ratios_between_arrays():
    start, stop = np.array([1.0, 1000.0]), np.array([27.0, 1.0])
    for axis in (0, 1, -1):
        ours = jnp.geomspace(start, stop, 4, axis=axis)
        np.testing.assert_allclose(ours, np.geomspace(start, stop, 4, axis=axis), rtol=1e-5)


def test_functions_of_coordinates_see_one_place_at_a_time():
    seen = []
    given = jnp.fromfunction(lambda i, j: seen.append(i.shape) or i * jnp.arange(4.0) + j, (2, 3))
    assert seen == [()]
    assert given.shape == (2, 3, 4)
    np.testing.assert_array_equal(given[1, 2], [2, 3, 4, 5])


def test_a_condition_for_each_function():
    x = np.arange(-4, 5)
    conditions = [x < -2, x > 2, np.abs(x) < 2]
    ours = jnp.piecewise(x, conditions, [lambda x: 10 * x, 7, lambda x: -x, 99])
    np.testing.assert_array_equal(ours, np.piecewise(x, conditions, [lambda x: 10 * x, 7, lambda x: -x, 99]))


def test_deleted_places_that_are_traced():
    deleted = polyax.jit(lambda places: jnp.delete(np.arange(8), places, assume_unique_indices=True))
    np.testing.assert_array_equal(deleted(np.array([-1, 2, 5])), np.delete(np.arange(8), [-1, 2, 5]))


def test_diagonals_are_filled_by_turns():
    ours = jnp.fill_diagonal(np.zeros((4, 5)), np.array([3, 4]), inplace=False)
    np.testing.assert_array_equal(np.diagonal(ours), [3, 4, 3, 4])
    with pytest.raises(ValueError, match="equal length"):
        jnp.fill_diagonal(np.zeros((2, 3, 2)), 1, inplace=False)
    with pytest.raises(NotImplementedError, match="in-place"):
        jnp.fill_diagonal(np.zeros((2, 2)), 1)


def test_partitions_are_ordered_as_far_as_they_are_needed():
    x = np.array([3, 9, 1, 7, 2, 8])
    assert jnp.partition(x, 2).tolist() == [1, 2, 3, 9, 8, 7]
    assert jnp.argpartition(x, -4).tolist() == [2, 4, 0, 1, 3, 5]
    with pytest.raises(NotImplementedError, match="complex"):
        jnp.partition(x * 1j, 1)


FAR = [2**31 - 1, -(2**31), 2**32, -(2**32), 2**70, -(2**70)]


@pytest.mark.parametrize("k", FAR)
def test_diagonals_far_beyond_a_matrix_are_empty(k):
    """As in NumPy; where k comes back to 0 in int32 it is no other diagonal. ``tri`` takes default integers alone."""
    ones = np.ones((2, 3), np.float32)
    below = ones * (k > 0)
    assert not np.any(jnp.eye(2, 3, k=k))
    np.testing.assert_array_equal(jnp.tril(ones, k), below)
    np.testing.assert_array_equal(jnp.triu(ones, k), 1 - below)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint64, np.uint8])
def test_diagonals_given_by_tracers(dtype):
    limits = np.iinfo(dtype)
    with polyax.enable_x64(True):
        for k in (limits.min, 0, 1, limits.max):
            near = min(max(k, -2), 2)
            for ours, numpys in ((jnp.eye, np.eye), (jnp.tri, np.tri)):
                found = polyax.jit(lambda k, f=ours: f(2, k=k))(dtype(k))
                np.testing.assert_array_equal(found, numpys(2, k=near))


def test_which_diagonal_is_an_integer():
    assert jnp.eye(2, k=jnp.asarray(1)).tolist() == jnp.eye(2, k=np.int8(1)).tolist() == [[0, 1], [0, 0]]
    for bad in (1.5, np.array([1]), jnp.asarray([1, 2])):
        with pytest.raises(ValueError, match="k must be a scalar integer; got"):
            jnp.eye(2, k=bad)
    with pytest.raises(TypeError, match="eye requires ndarray or scalar arguments, got <class 'NoneType'>"):
        jnp.eye(2, k=None)
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        jnp.tri(2, k=1.5)


def test_files_of_bfloat16():
    file = io.BytesIO()
    jnp.save(file, jnp.arange(3, dtype=jnp.bfloat16))
    file.seek(0)
    assert jnp.load(file).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("call", [jnp.angle, jnp.signbit, jnp.spacing])
def test_parts_of_python_numbers_are_of_a_strong_type(call):
    assert not call(2).weak_type and jnp.unique(2).weak_type


def test_interpolation_meets_the_type_of_the_places():
    places, values = jnp.arange(3), jnp.ones(3, "float16")
    assert jnp.interp(places, places, values).dtype == np.float32
    assert jnp.interp(places, jnp.arange(3, dtype="float16"), values).dtype == np.float16


def test_complex_bins_are_in_lexical_order():
    assert jnp.digitize(jnp.array([1, 2.0]), jnp.array([1j, 2])).tolist() == [1, 2]


def test_what_is_written_into_a_real_array_loses_its_imaginary_part():
    with pytest.warns(np.exceptions.ComplexWarning), pytest.warns(FutureWarning, match="incompatible types"):
        assert jnp.ones(2, bool).at[0].set(1j).tolist() == [False, True]


def test_vectorized_functions_take_lists():
    assert jnp.vectorize(lambda x: x + 1)([1, 2]).tolist() == [2, 3]
