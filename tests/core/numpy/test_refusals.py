"""What NumPy takes and JAX refuses, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

X = jnp.arange(4)
CONCRETE = polyax.errors.ConcretizationTypeError


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: jnp.arange(True), TypeError, "booleans"),
        (lambda: jnp.arange(2, dtype=bool), TypeError, "booleans"),
        (lambda: jnp.arange(None), TypeError, "must be a real number, not NoneType"),
        (lambda: jnp.asarray(2**31), OverflowError, "Python int 2147483648 too large to convert to int32"),
        (lambda: jnp.arange(jnp.array([3])), ValueError, "must be scalars; got stop"),
        (lambda: jnp.arange(1j, 3), ValueError, "Passing complex start/stop/step to jnp.arange is no longer supported"),
        (lambda: polyax.jit(jnp.arange)(3), CONCRETE, "jnp.arange argument 'stop'"),
        (lambda: polyax.jit(lambda n: jnp.arange(n, 3))(0), CONCRETE, "jnp.arange argument 'start'"),
        (lambda: jnp.tri(3, k=2**33), OverflowError, "Python int 8589934592 too large to convert to int32"),
        (lambda: jnp.trace(X.reshape(2, 2, 1), axis1=1, axis2=-2), ValueError, "axis1 and axis2 can not be same"),
        (lambda: jnp.round(X > 1), ValueError, "data type <class 'numpy.bool'> not inexact"),
        (lambda: jnp.diag_indices(-1), ValueError, "n argument to diag_indices must be nonnegative"),
        (lambda: jnp.diag_indices(1, -1), ValueError, "ndim argument to diag_indices must be nonnegative"),
        (lambda: jnp.fill_diagonal(jnp.eye(2), 1), NotImplementedError, "immutable, must use inplace=False"),
        (lambda: jnp.fill_diagonal(X, 1, True, inplace=False), NotImplementedError, "must use wrap=False"),
        (lambda: jnp.rot90(X), ValueError, "rot90 requires its first argument to have ndim at least two"),
        (lambda: jnp.interp(0.0, X, X, left="x"), ValueError, "of `left` is 'extrapolate', but got: 'x'"),
        (lambda: jnp.interp(0.0, X, X, right="x"), ValueError, "of `right` is 'extrapolate', but got: 'x'"),
        (lambda: jnp.unwrap(X * 1j), ValueError, "unwrap does not support complex inputs"),
        (lambda: jnp.cumulative_sum(jnp.eye(2)), ValueError, "only optional for one-dimensional arrays"),
        (lambda: jnp.cumulative_prod(1.0), ValueError, "take a cumulative product, however a scalar"),
        (lambda: jnp.nancumsum(X, out=X), NotImplementedError, "argument to jnp.nancumsum"),
        (lambda: jnp.nancumprod(X, out=X), NotImplementedError, "argument to jnp.nancumprod"),
        (lambda: jnp.nanargmax(X, out=X), NotImplementedError, "argument to jnp.nanargmax"),
        (lambda: jnp.searchsorted(X, 1, side="x"), ValueError, "invalid argument side='x', expected 'left' or 'right'"),
        (lambda: jnp.searchsorted(X, 1, method="x"), ValueError, "invalid argument method='x', expected one of"),
        (lambda: jnp.matvec(jnp.eye(2), X), ValueError, "inconsistent size for core dimension"),
        (lambda: jnp.vecmat(X, jnp.eye(2)), ValueError, "inconsistent size for core dimension"),
        (lambda: jnp.tensordot(X, X, ("ab", "cd")), TypeError, "both axes lists to be either ints, tuples or lists"),
        (lambda: jnp.tensordot(X, X, "abc"), TypeError, "axes argument must be an int, a pair of ints"),
        (lambda: jnp.tensordot(X, X, 1.0), TypeError, "axes argument must be an int, a pair of ints"),
        (lambda: jnp.extract(X > 1, X, size=5), ValueError, "size must be positive and not greater than the size"),
        (lambda: jnp.polyint(jnp.ones(2), -1), ValueError, "Order of integral must be positive"),
        (lambda: jnp.polyint(jnp.ones(2), 2, k=jnp.ones(3)), ValueError, "k must be a scalar or a rank-1 array of"),
        (lambda: jnp.polyfit(*(jnp.ones(2),) * 2, 1, w=jnp.eye(2)), TypeError, "expected a 1-d array for weights"),
        (lambda: jnp.take(jnp.ones(0), 0), IndexError, "Cannot do a non-empty jnp.take\\(\\) from an empty axis"),
        (lambda: jnp.sort(X, kind="quicksort"), TypeError, "'kind' argument to sort is not supported. Use stable="),
        (lambda: jnp.argsort(X, order="x"), TypeError, "'order' argument to argsort is not supported"),
        (lambda: X.at[X].get(fill_value=X), ValueError, "fill_value argument to indexed get\\(\\) must be a scalar"),
        (lambda: jnp.bincount(X, jnp.ones(3)), ValueError, "shape of weights must match shape of x"),
        (lambda: jnp.isclose([1], X), TypeError, "isclose requires ndarray or scalar arguments, got <class 'list'>"),
        (lambda: jnp.fft.fftfreq(4, d=None), TypeError, "fftfreq requires ndarray or scalar"),
        (lambda: jnp.fft.rfftfreq(4, d=[1.0]), ValueError, "only takes a single value"),
        (lambda: jnp.fft.fftfreq([4]), ValueError, "only takes an int"),
        (lambda: jnp.ix_(np.array([True, True])), NotImplementedError, "nonzero"),
        (lambda: jnp.quantile(X, 1), TypeError, "floating point numbers, got int32"),
        (lambda: 3 in X.reshape(2, 2), ValueError, "must be one-dimensional"),
        (lambda: "a" in X, TypeError, "Array.__contains__: unsupported operand type <class 'str'>"),
        (lambda: None in X.reshape(2, 2), TypeError, "Array.__contains__: unsupported operand type <class 'NoneType'>"),
        (lambda: [3] in X, TypeError, "Array.__contains__ requires ndarray or scalar arguments, got <class 'list'>"),
        (lambda: X in X, ValueError, r"query value must be a scalar, got query.shape=\(4,\)"),
        (lambda: X.astype(X), ValueError, "use dtype=arr.dtype"),
        (lambda: jnp.zeros(3, dtype=np.arange(3)), ValueError, "use dtype=arr.dtype"),
        (lambda: jnp.bitwise_or.reduce(jnp.ones(3)), ValueError, "integer argument required; got dtype=float32"),
        (lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(X, None), ValueError, "Cannot pass None"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_elements_are_sought_in_vectors():
    assert 3 in X and 7 not in X


def test_counts_of_repeats_have_any_shape():
    assert jnp.repeat(jnp.arange(3), np.array([[1], [2], [0]])).tolist() == [0, 1, 1]
    repeated = polyax.jit(lambda r: jnp.repeat(jnp.arange(3), r, total_repeat_length=4))
    assert repeated(np.array([[1, 2, 1]])).tolist() == [0, 1, 1, 2]


def test_a_scalar_is_repeated_as_a_vector_of_one():
    assert jnp.repeat(3, 2, axis=0).tolist() == [3, 3]


def test_of_nothing_all_positions_are_zero_whatever_fills_them():
    assert [p.tolist() for p in jnp.nonzero(jnp.ones((0, 2)), size=2, fill_value=7)] == [[0, 0], [0, 0]]


def test_indices_of_a_triangle_need_no_more_than_a_shape():
    for name in ("tril_indices_from", "triu_indices_from"):
        shaped, real = (getattr(jnp, name)(x) for x in (polyax.ShapeDtypeStruct((2, 3), "float32"), np.ones((2, 3))))
        assert [i.tolist() for i in shaped] == [i.tolist() for i in real]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod", "nancumsum", "trace"])
def test_reductions_to_real_numbers_warn(name):
    z = jnp.array([[2.0 + 1j]])
    with pytest.warns(np.exceptions.ComplexWarning, match="Casting complex values to real discards the imaginary part"):
        assert np.ravel(getattr(jnp, name)(z, dtype="float32")).tolist() == [2.0]


def test_complex_numbers_become_real_with_a_warning():
    with pytest.warns(DeprecationWarning, match="Casting from complex to real dtypes will soon raise a ValueError"):
        assert jnp.array(2 + 1.5j).astype("float32") == 2


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex64"])
def test_elements_along_an_axis_chosen_by_a_sum(dtype):
    x, i = jnp.arange(12).reshape(3, 4).astype(dtype), np.array([[0], [2], [-1]], "int8")
    found = jnp.take_along_axis(x, i, 1, mode="one_hot")
    assert found.dtype == dtype and found.tolist() == jnp.take_along_axis(x, i, 1).tolist()
    assert not jnp.take_along_axis(x, np.array([[9]]), 1, mode="one_hot").any()


@pytest.mark.parametrize("given", [(1, 5), (5, 1), (1, 9, 3), (5, 0, -1), (0.5, 3), (-2,)], ids=str)
def test_ranges_are_counted_in_the_program(given):
    assert jnp.arange(*given).tolist() == np.arange(*given).tolist()
    program = polyax.make_jaxpr(lambda: jnp.arange(*given))()
    assert program.eqns[0].primitive.name == "iota" and not program.consts


def test_nothing_repeated_is_nothing():
    assert jnp.repeat(jnp.zeros((0, 2)), 3, axis=0, total_repeat_length=4).shape == (0, 2)


@pytest.mark.parametrize("name", ["any", "all", "isin", "isclose", "isposinf"])
def test_truths_of_python_scalars_are_not_weak(name):
    arguments = (1.0, 1.0) if name in ("isin", "isclose") else (1.0,)
    assert not getattr(jnp, name)(*arguments).weak_type


def test_none_stands_for_a_scalar_of_a_signature():
    function = jnp.vectorize(lambda x, y: x if y is None else y, signature="(n),()->(n)")
    assert function(jnp.ones((2, 3)), None).shape == (2, 3)


def test_floats_are_unravelled_as_floats():
    row, column = jnp.unravel_index(jnp.array([3.0, 2.0]), (2, 3))
    assert (row.tolist(), column.tolist(), row.dtype) == ([1, 0], [0, 2], np.float32)
    assert jnp.unravel_index(True, (2, 3))[1].dtype == np.int32


def test_missing_common_elements_may_be_of_a_wider_type():
    assert jnp.intersect1d(jnp.array([1, 2]), jnp.array([2, 3]), size=2, fill_value=1.5).tolist() == [2, 1.5]
    assert jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]), size=3, fill_value=np.nan).dtype == np.float32


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_reductions_of_bits(name):
    x, mask = np.array([[6, 3, 9], [12, 5, 10]]), np.array([[True, False, True], [True, True, False]])
    ours, numpys = getattr(jnp, name), getattr(np, name)
    options = {"axis": 1, "where": mask, "initial": 7, "keepdims": True}
    np.testing.assert_array_equal(ours.reduce(x, **options), numpys.reduce(x, **options))
    assert ours.reduce(x > 5, axis=None) == numpys.reduce(x > 5, axis=None)


@pytest.mark.parametrize("numbers", [[1.7, -2.5], [1.7, 300.0], [float("inf")]])
def test_numbers_of_lists_fit_their_integers(numbers):
    with pytest.raises(OverflowError):
        jnp.array(numbers, "uint8")
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        jnp.array([float("nan")], "uint8")


def test_histograms_of_integers_need_no_promotion():
    with polyax.numpy_dtype_promotion("strict"):
        assert jnp.histogram(jnp.arange(3), 3)[0].tolist() == [1, 1, 1]


BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "left_shift": "shift_left"}


@pytest.mark.parametrize("name", BITWISE)
def test_operations_on_bits_refuse_floats_by_the_name_of_the_primitive(name):
    with pytest.raises(TypeError, match=f"{BITWISE[name]} does not accept dtype float32 at position 0"):
        getattr(jnp, name)(X, 1.5)


def test_types_that_are_narrowed_are_warned_of():
    with pytest.warns(UserWarning, match="Explicitly requested dtype int64 is not available"):
        assert jnp.result_type("int64", "int8") == np.int32


@pytest.mark.parametrize("jitted", [False, True])
def test_arrays_of_several_shapes_make_no_array(jitted: bool) -> None:
    made = polyax.jit(lambda *xs: jnp.array(list(xs))) if jitted else lambda *xs: jnp.array(list(xs))
    x = jnp.arange(3.0)
    with pytest.raises(TypeError, match=r"Cannot concatenate arrays with shapes that differ .* \(1, 3\), \(1, 2\)"):
        made(x, x[:2])
    with pytest.raises(TypeError, match=r"Cannot concatenate arrays with different numbers of dimensions"):
        made(x, 1.0)
    assert made(x, np.ones(3, np.float32)).shape == (2, 3)
