"""Reading and writing elements against NumPy, for all kinds of indices; out of bounds as JAX does."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.errors import NonConcreteBooleanIndexError

X = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
MASK = X > 0

INDICES = {
    "integer": 1,
    "negative integer": -1,
    "slice": slice(1, 3),
    "reversed": slice(None, None, -1),
    "steps": (slice(None, None, 2), slice(3, 0, -2)),
    "empty slice": slice(2, 2),
    "ellipsis": (..., 0),
    "new axes": (None, 1, None, ..., None),
    "array": np.array([0, 2, 1]),
    "negative array": np.array([-1, -3]),
    "matrix": np.array([[0, 1], [1, 2]]),
    "list in tuple": (slice(None), [0, -1]),
    "arrays together": (np.array([0, 1]), np.array([2, 3])),
    "arrays broadcast": (np.array([[0], [1]]), np.array([2, 3])),
    "arrays apart": (np.array([0, 1]), slice(None), np.array([1, 2])),
    "array and integer apart": (0, slice(1, 3), np.array([1, 2])),
    "array and integer together": (slice(None), 1, np.array([1, 2])),
    "array, new axis, array": (np.array([1]), None, np.array([1])),
    "array after ellipsis": (1, ..., np.array([0])),
    "array and steps": (np.array([0, 2]), slice(None, None, 2), slice(None, None, -1)),
    "repeated positions": (np.array([0, 0, 1]),),
    "true": True,
    "false": False,
    "mask": MASK,
    "mask of rows": MASK[:, 0, 0],
    "mask of two axes": (MASK[:, :, 0],),
    "mask and slice": (MASK[:, 0, 0], slice(1, 3)),
    "zero-dimensional array": np.array(1),
    "all axes": (2, 3, 4),
}


@pytest.mark.parametrize("name", INDICES)
def test_reading(name):
    want = X[INDICES[name]]
    got = jnp.asarray(X)[INDICES[name]]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", INDICES)
def test_reading_under_jit(name):
    np.testing.assert_array_equal(polyax.jit(lambda x: x[INDICES[name]])(X), X[INDICES[name]])


@pytest.mark.parametrize("name", INDICES)
def test_setting(name):
    want = X.copy()
    want[INDICES[name]] = 7.0
    np.testing.assert_array_equal(jnp.asarray(X).at[INDICES[name]].set(7.0), want)


@pytest.mark.parametrize("name", [n for n in INDICES if n != "repeated positions"])
def test_setting_arrays(name):
    values = np.random.default_rng(2).standard_normal(X[INDICES[name]].shape).astype(np.float32)
    want = X.copy()
    want[INDICES[name]] = values
    np.testing.assert_array_equal(jnp.asarray(X).at[INDICES[name]].set(values), want)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize(
    ("method", "ufunc"), [("add", np.add), ("multiply", np.multiply), ("min", np.minimum), ("max", np.maximum)]
)
def test_combining_counts_repeated_positions(name, method, ufunc):
    want = X.copy()
    ufunc.at(want, INDICES[name], np.float32(0.5))
    got = getattr(jnp.asarray(X).at[INDICES[name]], method)(0.5)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_other_updates():
    x = jnp.arange(1.0, 5.0)
    np.testing.assert_allclose(x.at[1].divide(4.0), [1, 0.5, 3, 4])
    np.testing.assert_allclose(x.at[1:3].power(2.0), [1, 4, 9, 4])
    np.testing.assert_allclose(x.at[0].subtract(1.0), [0, 2, 3, 4])
    np.testing.assert_allclose(x.at[jnp.array([0, 3])].apply(jnp.negative), [-1, 2, 3, -4])
    assert x.at[1].get().item() == 2.0
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("wrap", [lambda i: i, np.asarray, jnp.asarray], ids=["python", "numpy", "array"])
def test_out_of_bounds_reads_clamp_and_writes_drop(wrap):
    x = jnp.arange(5)
    assert x[wrap(10)].item() == 4
    assert x[wrap(-10)].item() == 0
    assert x.at[wrap(10)].set(9).tolist() == [0, 1, 2, 3, 4]
    assert x.at[wrap(10)].set(9, mode="clip").tolist() == [0, 1, 2, 3, 9]
    assert x.at[wrap(10)].get(mode="fill", fill_value=-1).item() == -1


def test_traced_indices():
    x = jnp.asarray(X)
    np.testing.assert_array_equal(polyax.jit(lambda x, i: x[i])(x, -1), X[-1])
    np.testing.assert_array_equal(polyax.jit(lambda x, i: x[1, i, ::-1])(x, 7), X[1, 3, ::-1])
    np.testing.assert_array_equal(polyax.jit(lambda x, i: x[:, i])(x, jnp.array([1, -1, 9])), X[:, [1, -1, 3]])
    want = X.copy()
    want[2, 1:] = 3.0
    np.testing.assert_array_equal(polyax.jit(lambda x, i: x.at[i, 1:].set(3.0))(x, 2), want)
    np.testing.assert_array_equal(polyax.jit(lambda x, i: x.at[i].set(3.0))(x, 7), X)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64])
def test_positions_of_narrow_types(dtype):
    """The size of the dimension is more than they can hold."""
    table, at = np.arange(600, dtype=np.float32).reshape(300, 2), np.array([[0, 120], [7, 3]], dtype)
    x = jnp.asarray(table)
    for got in (x[at], polyax.jit(lambda i: x[i])(at), jnp.take(x, at, axis=0), x.at[at].get()):
        np.testing.assert_array_equal(got, table[at])
    changed = table.copy()
    changed[at] = -1
    np.testing.assert_array_equal(x.at[at].set(-1.0), changed)
    if dtype is np.int8:
        np.testing.assert_array_equal(x[np.array([-1, -128], dtype)], table[[-1, -128]])


def test_batched_indices():
    got = polyax.vmap(lambda x, i: x[i])(jnp.asarray(X), jnp.array([0, -1, 9]))
    np.testing.assert_array_equal(got, X[[0, 1, 2], [0, -1, 3]])
    got = polyax.vmap(lambda x, i: x.at[i].set(0.0))(jnp.asarray(X), jnp.array([0, -1, 9]))
    want = X.copy()
    want[[0, 1], [0, -1]] = 0.0
    np.testing.assert_array_equal(got, want)


def test_gradients():
    x = jnp.arange(1.0, 5.0)
    np.testing.assert_allclose(polyax.grad(lambda x: jnp.sum(x[jnp.array([0, 0, 2])] ** 2))(x), [4, 0, 6, 0])
    np.testing.assert_allclose(polyax.grad(lambda x: jnp.sum(x.at[1].set(0.0) ** 2))(x), [2, 0, 6, 8])
    np.testing.assert_allclose(polyax.grad(lambda x: jnp.sum(x.at[1:3].multiply(x[:2])))(x), [3, 4, 2, 1])


def test_dtype_of_the_array_is_kept():
    x = jnp.arange(3)
    assert x.at[0].set(2).dtype == jnp.int32
    with pytest.warns(FutureWarning, match="scatter inputs have incompatible types"):
        assert x.at[0].add(jnp.float32(2.5)).tolist() == [2, 1, 2]


def test_taking():
    indices = np.array([[0, 2], [1, 1]])
    np.testing.assert_array_equal(jnp.take(X, indices, axis=1), np.take(X, indices, axis=1))
    np.testing.assert_array_equal(jnp.take(X, indices), np.take(X, indices))
    assert np.isnan(jnp.take(X[0, 0], 9)).all()
    np.testing.assert_array_equal(jnp.take(X, 9, axis=0, mode="clip"), X[-1])
    np.testing.assert_array_equal(jnp.take(X, 7, axis=0, mode="wrap"), X[1])
    order = np.argsort(X, axis=1)
    np.testing.assert_array_equal(jnp.take_along_axis(X, order, axis=1), np.take_along_axis(X, order, axis=1))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 1, 4), (1, 2, 3), (2, 1, 1), (0, 2, 3)])
def test_taking_along_an_axis_with_indices_of_other_shapes(shape, axis):
    """Dimensions of size 1 stretch, in the array and in the indices."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    n, others = shape[axis], [k for i, k in enumerate(shape) if i != axis]
    for given in (others, [1, others[1]], [others[0], 1], [max(others[0], 1), max(others[1], 1)]):
        whole = list(np.broadcast_shapes(tuple(given), tuple(others)))
        at = lambda sizes, count: (*sizes[:axis], count, *sizes[axis:])
        indices = rng.integers(-n, n, at(given, 3)) if n else np.zeros(at(given, 0), int)
        stretched = np.broadcast_to(x, at(whole, n)), np.broadcast_to(indices, at(whole, indices.shape[axis]))
        expected = np.take_along_axis(*stretched, axis)
        np.testing.assert_array_equal(jnp.take_along_axis(x, indices, axis), expected)
        np.testing.assert_array_equal(polyax.jit(lambda a, i: jnp.take_along_axis(a, i, axis))(x, indices), expected)


def assign():
    a = jnp.arange(3)
    a[0] = 9


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (assign, TypeError, "does not support item assignment. JAX arrays are immutable. Instead of ``x[idx] = y``"),
        (lambda: jnp.asarray(X)[1.5], TypeError, "Indexer must have integer or boolean type, got indexer with type fl"),
        (lambda: jnp.asarray(X)["a"], TypeError, "JAX does not support string indexing"),
        (lambda: jnp.asarray(X)[[0, 1]], TypeError, "use `arr[array(seq)]` instead of `arr[seq]`"),
        (lambda: jnp.asarray(X)[0, 0, 0, 0], IndexError, "Too many indices: array is 3-dimensional, but 4 were indexe"),
        (lambda: jnp.asarray(X)[..., ...], IndexError, "an index can only have a single ellipsis"),
        (lambda: jnp.asarray(X)[object()], IndexError, "only integers, slices"),
        (lambda: jnp.asarray(X)[MASK[:2]], IndexError, "boolean index did not match shape of indexed array"),
        (lambda: polyax.jit(lambda x: x[x > 0])(X), NonConcreteBooleanIndexError, "Array boolean indices must be conc"),
        (lambda: polyax.jit(lambda x, n: x[:n])(X, 2), IndexError, "Slice entries must be static integers. Got"),
        (lambda: list(jnp.array(1)), TypeError, "iteration over a 0-d array"),
        (lambda: jnp.asarray(X).at[0].set("a"), TypeError, "Value 'a' with dtype <U1 is not a valid JAX array"),
        (lambda: jnp.asarray(X).at[0].set(jnp.ones(3)), ValueError, "Incompatible types for broadcasting: input type="),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "key", [np.zeros(0, bool), np.zeros((3, 0), bool), (slice(None), np.zeros((4, 0), bool))], ids=str
)
def test_masks_without_elements_choose_nothing(key) -> None:
    got, want = jnp.asarray(X)[key], X[key]
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(jnp.asarray(X).at[key].set(5), X)


def test_sequences_of_traced_indices() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    pick = polyax.jit(lambda i, j: jnp.asarray(x)[(i, j), ((j, i),)])
    np.testing.assert_array_equal(pick(0, 2), x[(0, 2), ((2, 0),)])


def test_lists_can_be_written():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.at[0].set([7, 8, 9])[0].tolist() == [7, 8, 9]
    assert x.at[:, 0].add([1, 2])[:, 0].tolist() == [1, 5]
    assert x.at[0].power([2.0, 1, 3]).tolist()[0] == [0, 1, 8]
    assert x.at[1, [0, 0]].min([2, 1]).tolist()[1] == [1, 4, 5]
    with pytest.raises(ValueError, match="None is not a valid value"):
        x.at[0].set(None)


@pytest.mark.parametrize("method", ["set", "add", "max"])
@pytest.mark.parametrize("index", [slice(None), 0, np.array([0])])
def test_writing_in_an_unknown_mode(method, index):
    with pytest.raises(ValueError, match="Unknown gather mode"):
        getattr(jnp.ones(3).at[index], method)(1, mode="nearest")


def test_take_reads_booleans_as_numbers():
    x = jnp.array([5.0, 7.0])
    assert jnp.take(x, jnp.array([True, False, True])).tolist() == [7, 5, 7]
    with pytest.raises(ValueError, match="indices must have an integer type"):
        jnp.take(x, np.float32([0.0]))


def test_take_from_an_empty_axis():
    with pytest.raises(IndexError, match="empty axis"):
        jnp.take(np.zeros((2, 0)), np.array([0]), axis=1)
    assert jnp.take(np.zeros((2, 0)), np.zeros(0, np.int32), axis=1).shape == (2, 0)


def test_complex_fill_value():
    x = jnp.asarray(np.complex64([1 + 1j, 2]))
    i = np.array([0, 5])
    assert x.at[i].get(mode="fill", fill_value=9).tolist() == [1 + 1j, 9]
    assert x.at[i].get(mode="fill", fill_value=2 - 3j).tolist() == [1 + 1j, 2 - 3j]
    missing = jnp.take(x, i)[1].item()
    assert np.isnan(missing.real) and missing.imag == 0


def test_what_is_read_outside_has_no_derivative() -> None:
    """Unless the mode says that the nearest one is meant."""
    x, i = jnp.arange(6.0).reshape(3, 2), np.array([5, -7])
    assert x[i].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert not polyax.grad(lambda x: (x[i] ** 2).sum())(x).any()
    clipped = polyax.grad(lambda x: (x.at[i].get(mode="clip") ** 2).sum())(x)
    assert clipped.tolist() == [[0.0, 2.0], [0.0, 0.0], [8.0, 10.0]]


def test_static_indices_beyond_int32() -> None:
    with pytest.raises(OverflowError, match="Python int 2147483648 too large to convert to int32"):
        jnp.arange(4)[2**31]


def test_modes_of_take_and_put() -> None:
    x = jnp.arange(4)
    for mode in ("promise_in_bounds", "foo"):
        with pytest.raises(ValueError, match=f"Invalid mode '{mode}' for np.take"):
            jnp.take(x, np.array([0]), mode=mode)
    with pytest.raises(ValueError, match="mode should be one of 'wrap' or 'clip'; got mode='foo'"):
        jnp.put(x, np.array([0]), 1, mode="foo", inplace=False)
    assert jnp.put(x, np.array([0, 50]), np.array([9, 8]), inplace=False).tolist() == [9, 1, 2, 8]
    with pytest.raises(NotImplementedError, match="'raise' mode to jnp.put"):
        jnp.put(x, np.array([0]), 1, mode="raise", inplace=False)
    assert jnp.put(x, np.array([0]), np.array([]), mode="raise", inplace=False).tolist() == [0, 1, 2, 3]


def test_conditions_of_select_and_vectors_of_ix_need_not_be_booleans_and_integers() -> None:
    x = jnp.arange(4)
    assert jnp.select([x, x > 2], [x, x * 2], 9).tolist() == [9, 1, 2, 3]
    assert jnp.ix_(np.array([]), np.array([1]))[0].dtype == np.int32
    assert not jnp.choose(0, [1, 2.0]).weak_type


def test_nothing_is_as_weak_as_what_it_was_taken_from() -> None:
    weak = jnp.broadcast_to(jnp.asarray(2), (3,))
    assert weak[np.zeros(0, int)].weak_type and weak[np.zeros(3, bool)].weak_type and jnp.resize(weak, 0).weak_type
    assert jnp.extract(np.array([True, False]), np.array([1, 2]), size=0).shape == (0,)


@pytest.mark.skipif(polyax.config.jax_enable_x64, reason="indices have all of their bits")
def test_indices_of_numpy_keep_32_bits() -> None:
    """As arrays of them would; they name other elements than in NumPy, which has them all."""
    x, far = jnp.arange(5), 2**32 + 1
    assert x[np.int64(far)].item() == 1
    assert x[np.array([far, 2])].tolist() == [1, 2]
    assert x.at[np.int64(far)].set(7).tolist() == [0, 7, 2, 3, 4]
    assert x.at[np.array(far)].add(7).tolist() == [0, 8, 2, 3, 4]
