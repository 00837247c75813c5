"""Creation, shapes, joining, products and selection against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

R = np.random.default_rng(3)
V = R.standard_normal(4).astype(np.float32)
F = R.standard_normal((3, 4)).astype(np.float32)
G = R.standard_normal((3, 4)).astype(np.float32)
T = R.standard_normal((2, 3, 4)).astype(np.float32)
I = R.integers(-5, 6, (3, 4)).astype(np.int32)

SAME_CALL = {
    "reshape": lambda np: np.reshape(T, (4, -1)),
    "reshape in columns": lambda np: np.reshape(T, (4, 6), order="F"),
    "ravel": lambda np: np.ravel(T),
    "transpose": lambda np: np.transpose(T, (1, 2, 0)),
    "swapaxes": lambda np: np.swapaxes(T, 0, -1),
    "moveaxis": lambda np: np.moveaxis(T, (0, 1), (2, 0)),
    "rollaxis": lambda np: np.rollaxis(T, 2),
    "squeeze": lambda np: np.squeeze(F[None, :, None]),
    "expand_dims": lambda np: np.expand_dims(F, (0, 2)),
    "atleast_3d": lambda np: np.atleast_3d(F),
    "flip": lambda np: np.flip(T, 1),
    "rot90": lambda np: np.rot90(F, 3),
    "roll": lambda np: np.roll(F, (1, -2), (0, 1)),
    "roll flat": lambda np: np.roll(F, 3),
    "split": lambda np: np.split(T, [1, 3], axis=2),
    "array_split": lambda np: np.array_split(T, 3, axis=2),
    "hsplit": lambda np: np.hsplit(F, 2),
    "tile": lambda np: np.tile(F, (2, 1, 3)),
    "repeat": lambda np: np.repeat(F, 2, axis=1),
    "repeat each": lambda np: np.repeat(F, np.array([1, 0, 2]), axis=0),
    "concatenate": lambda np: np.concatenate([F, G], axis=1),
    "concatenate flat": lambda np: np.concatenate([F, V], axis=None),
    "stack": lambda np: np.stack([F, G], axis=-1),
    "vstack": lambda np: np.vstack([V, F]),
    "hstack": lambda np: np.hstack([V, V]),
    "dstack": lambda np: np.dstack([F, G]),
    "column_stack": lambda np: np.column_stack([V, V]),
    "block": lambda np: np.block([[F, G], [G, F]]),
    "append": lambda np: np.append(F, V),
    "resize": lambda np: np.resize(F, (2, 7)),
    "linspace": lambda np: np.linspace(-3, 3, 7),
    "linspace open": lambda np: np.linspace(0, 2, 5, endpoint=False),
    "linspace of arrays": lambda np: np.linspace(V, V + 1, 3, axis=1),
    "logspace": lambda np: np.logspace(0, 2, 5),
    "geomspace": lambda np: np.geomspace(1, 100, 5),
    "arange": lambda np: np.arange(2, 11, 3),
    "arange down": lambda np: np.arange(5, 0, -2),
    "arange of fractions": lambda np: np.arange(0.0, 1.0, 0.25),
    "eye": lambda np: np.eye(3, 4, 1),
    "tri": lambda np: np.tri(3, 4, -1),
    "tril": lambda np: np.tril(T),
    "triu": lambda np: np.triu(F, 1),
    "diag": lambda np: np.diag(V, -1),
    "diagonal": lambda np: np.diagonal(T, 1, 0, 2),
    "trace": lambda np: np.trace(F),
    "meshgrid": lambda np: np.meshgrid(V, np.arange(3)),
    "meshgrid sparse": lambda np: np.meshgrid(V, np.arange(3), sparse=True, indexing="ij"),
    "indices": lambda np: np.indices((2, 3)),
    "ix_": lambda np: np.ix_(np.arange(2), np.arange(3)),
    "tril_indices": lambda np: np.tril_indices(3, 1),
    "broadcast_arrays": lambda np: np.broadcast_arrays(V, F),
    "dot": lambda np: np.dot(F, G.T),
    "dot of vectors": lambda np: np.dot(V, V),
    "dot of stacks": lambda np: np.dot(T, G.T),
    "matmul": lambda np: np.matmul(T, G.T),
    "matmul with a vector": lambda np: np.matmul(T, V),
    "matmul of a vector": lambda np: np.matmul(V, G.T),
    "matmul of stacks": lambda np: np.matmul(T[:, None], np.swapaxes(T, 1, 2)),
    "matmul of outer stacks": lambda np: np.matmul(T[:, None], np.swapaxes(T, 1, 2)[None]),
    "vdot": lambda np: np.vdot(F, G),
    "inner": lambda np: np.inner(F, G),
    "outer": lambda np: np.outer(F, V),
    "tensordot": lambda np: np.tensordot(T, F, ((1, 2), (0, 1))),
    "tensordot of none": lambda np: np.tensordot(V, F, 0),
    "kron": lambda np: np.kron(F, V),
    "cross": lambda np: np.cross(F[:, :3], G[:, :3]),
    "where": lambda np: np.where(F > 0, F, 0.0),
    "where positions": lambda np: np.where(F > 0),
    "select": lambda np: np.select([F < 0, F < 1], [F, np.ones_like(F)], 7),
    "piecewise": lambda np: np.piecewise(F, [F < 0, F >= 0], [lambda x: -x, 2.0]),
    "clip": lambda np: np.clip(F, -0.5, 0.5),
    "nonzero": lambda np: np.nonzero(I),
    "argwhere": lambda np: np.argwhere(I),
    "sort": lambda np: np.sort(F, axis=0),
    "sort flat": lambda np: np.sort(F, axis=None),
    "argsort": lambda np: np.argsort(I, axis=1, kind="stable") if np.__name__ == "numpy" else np.argsort(I, axis=1),
    "lexsort": lambda np: np.lexsort((I[0], I[1])),
    "searchsorted": lambda np: np.searchsorted(np.sort(V), F),
    "searchsorted right": lambda np: np.searchsorted(np.array([1, 2, 2, 3]), np.array([0, 2, 3, 4]), side="right"),
    "digitize": lambda np: np.digitize(F, np.array([-1.0, 0.0, 1.0])),
    "digitize falling": lambda np: np.digitize(F, np.array([1.0, 0.0, -1.0]), right=True),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_CALL)
def test_agrees_with_numpy(name):
    got, want = SAME_CALL[name](jnp), SAME_CALL[name](np)
    pairs = zip(got, want, strict=True) if isinstance(want, (list, tuple)) else [(got, want)]
    for a, b in pairs:
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "mode", ["constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "linear_ramp"]
)
def test_padding(mode):
    np.testing.assert_allclose(
        jnp.pad(F, ((1, 2), (0, 3)), mode=mode), np.pad(F, ((1, 2), (0, 3)), mode=mode), rtol=1e-6
    )


EINSUMS = [
    ("ij,kj->ik", F, G), ("ij->ji", F), ("ii->i", F[:, :3]), ("ii", F[:, :3]), ("ij,ij", F, G), ("i,j,k->ijk", V, V, V),
    ("bij,bkj->bik", T, T), ("...ij,j", T, V), ("ijk->", T), ("ab,cb,cd->ad", F, F, G), ("ij,ij->j", F, G),
    ("bi...,i->b...", T, V[:3]), ("ij,ik,il->jkl", F, F, G),
]  # fmt: skip


@pytest.mark.parametrize("call", EINSUMS, ids=[c[0] for c in EINSUMS])
def test_einsum(call):
    np.testing.assert_allclose(jnp.einsum(*call), np.einsum(*call), rtol=1e-4, atol=1e-5)


def test_einsum_with_numbered_axes():
    np.testing.assert_allclose(jnp.einsum(F, [0, 1], G, [2, 1], [0, 2]), F @ G.T, rtol=1e-5)


ARRAYS = [
    (1, "int32", True), (2.5, "float32", True), (True, "bool", False),
    ([1, 2], "int32", False), ([1, 2.5], "float32", False),
    ([], "float32", False), (np.float64(1), "float32", False), (1j, "complex64", True),
    ([[True], [False]], "bool", False),
    ((1, np.float16(2)), "float16", False), (np.arange(3), "int32", False),
]  # fmt: skip


@pytest.mark.parametrize(("data", "dtype", "weak"), ARRAYS)
def test_dtype_of_data(data, dtype, weak):
    x = jnp.array(data)
    assert (str(x.dtype), x.weak_type) == (dtype, weak)
    np.testing.assert_array_equal(x, np.asarray(data))


def test_traced_scalars_in_lists():
    got = polyax.jit(lambda x: jnp.array([[x, 1], [2, x * 2]]))(3.0)
    np.testing.assert_array_equal(got, [[3, 1], [2, 6]])


def test_scalar_types_convert():
    assert jnp.float32(1).dtype == np.float32
    assert jnp.int32(2.7).item() == 2
    assert not jnp.float32(1).weak_type
    assert jnp.float32 == np.dtype("float32")
    assert jnp.asarray([1, 2], dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_sizes_known_in_advance():
    got = polyax.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-1)[0])(jnp.array([0, 1, 0, 2]))
    assert got.tolist() == [1, 3, -1]
    got = polyax.jit(lambda x, r: jnp.repeat(x, r, total_repeat_length=4))(V, jnp.array([0, 2, 1, 1]))
    np.testing.assert_array_equal(got, np.repeat(V, [0, 2, 1, 1]))


def test_methods_and_properties():
    x = jnp.asarray(F)
    assert x.T.shape == (4, 3)
    assert x.reshape(2, 6).shape == x.reshape((2, -1)).shape == (2, 6)
    assert x.astype(int).dtype == jnp.int32
    assert [a.shape for a in x] == [(4,)] * 3
    np.testing.assert_array_equal(x.view(jnp.int32), F.view(np.int32))
    np.testing.assert_allclose(x.sum(0).mean(), F.sum(0).mean(), rtol=1e-6)
    assert (x == None) is False or not np.any(x == None)  # noqa: E711


class Foreign:
    def __radd__(self, other):
        return "added by the other operand"


def test_foreign_operands_get_their_turn():
    assert jnp.ones(2) + Foreign() == "added by the other operand"
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Array' and 'list'"):
        jnp.ones(2) + [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.reshape(F, (5, 2)), TypeError, "cannot reshape array of shape (3, 4) (size 12) into shape (5, 2)"),
        (lambda: polyax.jit(lambda n: jnp.zeros(n))(3), TypeError, "Shapes must be 1D sequences of concrete values of"),
        (lambda: jnp.ones((2.5,)), TypeError, "Shapes must be 1D sequences of concrete values of integer type, got (2"),
        (lambda: jnp.asarray(V) + V[:3], TypeError, "add got incompatible shapes for broadcasting: (4,), (3,)."),
        (lambda: jnp.asarray(F) + V[:3], ValueError, "Incompatible shapes for broadcasting"),
        (lambda: jnp.dot(F, G), TypeError, "dot_general requires contracting dimensions to have the same shape"),
        (lambda: jnp.matmul(F, 2), ValueError, "matmul input operand 1 must have ndim at least 1, but it has ndim 0"),
        (lambda: jnp.concatenate([]), ValueError, "Need at least one array to concatenate."),
        (lambda: jnp.block([V, [V]]), ValueError, "Mismatched list depths in jax.numpy.block"),
        (lambda: jnp.block([[V], []]), ValueError, "jax.numpy.block does not allow empty list arguments"),
        (lambda: jnp.stack([V, V[:3]]), ValueError, "All input arrays must have the same shape. Got (4,), (3,)."),
        (lambda: jnp.stack([V, V, V[0]]), ValueError, "different numbers of dimensions: got (4,), (4,), ()."),
        (lambda: jnp.split(F, 2), ValueError, "array split does not result in an equal division"),
        (lambda: jnp.squeeze(F, 0), ValueError, "cannot select an axis to squeeze out which has size not equal to one"),
        (lambda: polyax.jit(jnp.arange)(3), polyax.errors.ConcretizationTypeError, "jnp.arange argument 'stop'"),
        (lambda: polyax.jit(lambda x: jnp.nonzero(x))(V), polyax.errors.ConcretizationTypeError, "size argument of jn"),
        (lambda: jnp.array("text"), TypeError, "Only arrays of numeric types are supported by JAX."),
        (lambda: jnp.array([1, None]), ValueError, "None is not a valid value for jnp.array"),
        (lambda: jnp.where(F > 0, 1.0), TypeError, "where requires ndarray or scalar arguments, got <class 'NoneType'"),
        (lambda: jnp.einsum("ij,jk", F, G), ValueError, "Size of label 'j'"),
        (lambda: jnp.clip(F + 1j, 0, 1), ValueError, "Clip received a complex value"),
        (lambda: jnp.ones(2, dtype="U3"), TypeError, "dtype"),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_roll_along_no_axis_and_twice_along_one():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jnp.roll(x, 1, axis=()), x)
    np.testing.assert_array_equal(jnp.roll(x, (1, 1), axis=(1, 1)), np.roll(x, 2, 1))
    np.testing.assert_array_equal(jnp.fft.fftshift(x, axes=()), x)


def test_filled_arrays_take_over_the_weak_type():
    weak = jnp.asarray(2.0)
    for x in (2.0, weak):
        assert jnp.zeros_like(x).weak_type and jnp.ones_like(x, shape=(2,)).weak_type and jnp.full_like(x, 3).weak_type
        assert not jnp.zeros_like(x, dtype=np.float32).weak_type
    assert not jnp.ones_like(jnp.ones(2)).weak_type


def test_complex_number_in_a_real_array():
    with pytest.raises(TypeError, match="can't hold the complex number 1j"):
        jnp.full((2,), 1j, dtype=np.float32)


def test_conditions_of_a_scalar_in_piecewise():
    assert jnp.piecewise(np.float32(2), [np.True_], [1, 2]).shape == ()


def test_sorted_as_complex_numbers_of_the_width_of_floats():
    with polyax.enable_x64(True):
        assert jnp.sort_complex(np.int32([2, 1])).dtype == np.complex64
        assert jnp.sort_complex(np.int64([2, 1])).dtype == np.complex128


EMPTY = np.zeros((0,), np.float32)


def test_diagonals_without_elements():
    x = np.zeros((2, 0, 2), np.float32)
    assert jnp.diagonal(x).shape == (2, 0) and jnp.trace(x).tolist() == [0, 0]
    assert jnp.linalg.diagonal(x).shape == (2, 0) and jnp.diag(np.zeros((0, 3), np.float32)).shape == (0,)


def test_sets_without_elements():
    assert jnp.intersect1d(EMPTY, np.float32([1])).shape == jnp.intersect1d(EMPTY, EMPTY).shape == (0,)
    assert jnp.intersect1d(EMPTY, np.float32([1]), size=2).tolist() == [0, 0]
    assert jnp.unique(EMPTY, size=2, fill_value=7).tolist() == [7, 7]
    assert jnp.unique(np.zeros((0, 3)), axis=0, size=2, fill_value=1).tolist() == [[1] * 3] * 2
    with pytest.raises(ValueError, match="needs a fill_value"):
        jnp.unique(EMPTY, size=2)
    with polyax.enable_x64(True):
        assert jnp.intersect1d(np.arange(3), np.arange(2), return_indices=True)[1].dtype == np.int64


def test_bincount_of_unsigned_numbers():
    assert jnp.bincount(np.uint8([1, 2, 2])).tolist() == [0, 1, 2]
    assert jnp.bincount(np.uint8([])).shape == (0,)


@pytest.mark.parametrize("trim", ["fb", "f", "b", "x"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), -1])
def test_trim_zeros_of_matrices(trim, axis):
    x = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 3, 0], [0, 0, 0, 0]])
    axes = range(2) if axis is None else [a % 2 for a in np.atleast_1d(axis)]
    cut = {"fb": slice(1, 3), "f": slice(1, None), "b": slice(0, 3), "x": slice(None)}[trim]
    np.testing.assert_array_equal(
        jnp.trim_zeros(x, trim, axis=axis), x[tuple(cut if d in axes else slice(None) for d in range(2))]
    )


def test_trim_zeros_of_nothing_else():
    assert jnp.trim_zeros(np.zeros((2, 3))).shape == (0, 0) and jnp.trim_zeros(np.zeros((2, 3)), axis=0).shape == (0, 3)
    assert jnp.trim_zeros(np.zeros(3), "b").shape == (0,) and jnp.trim_zeros(np.zeros(())).shape == ()
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        jnp.trim_zeros(np.zeros((2, 3)), axis=5)


def test_put_wraps_positions():
    x = np.int32([1, 2, 3])
    assert jnp.put(x, np.array([0, -1, 7]), np.int32([4, 5, 6]), mode="wrap", inplace=False).tolist() == [4, 6, 5]


def test_angles_of_integers_and_unwrapping_nothing():
    with polyax.enable_x64(True):
        assert jnp.angle(np.int8([-1])).dtype == jnp.angle(True).dtype == np.float64
    assert jnp.unwrap(EMPTY).shape == (0,)


@pytest.mark.parametrize("error", [ValueError, IndexError, np.exceptions.AxisError])
def test_an_axis_out_of_bounds_is_both_errors(error) -> None:
    for call in (lambda: jnp.argmax(EMPTY, 5), lambda: jnp.swapaxes(EMPTY, 0, 5), lambda: jnp.add.reduce(EMPTY, 5)):
        with pytest.raises(error, match="axis 5 is out of bounds for array of dimension"):
            call()


def test_what_only_tells_of_an_array_has_a_shape():
    told = polyax.ShapeDtypeStruct((2, 3), jnp.float32)
    assert (jnp.shape(told), jnp.ndim(told), jnp.size(told), jnp.size(told, 1)) == ((2, 3), 2, 6, 3)
    made = polyax.eval_shape(lambda: {"w": jnp.ones((4, 2))})
    assert polyax.tree.map(jnp.shape, made) == {"w": (4, 2)}
    with pytest.warns(DeprecationWarning, match="shape requires ndarray or scalar arguments, got <class 'str'>"):
        assert jnp.shape("text") == ()


@pytest.mark.parametrize(
    ("have", "wanted", "text"),
    [
        ((2, 3), (3,), "Cannot broadcast to shape with fewer dimensions: arr_shape=(2, 3) shape=(3,)"),
        ((3,), (4, 2), "Incompatible types for broadcasting: input type=int8[3] and requested type=int8[4,2]"),
    ],
)
def test_what_does_not_broadcast(have, wanted, text):
    with pytest.raises(ValueError) as caught:
        jnp.broadcast_to(jnp.ones(have, "int8"), wanted)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jnp.meshgrid(2, np.arange(3)), ValueError, r"meshgrid must be 1D, got shapes \[\(\), \(3,\)\]"),
        (lambda: jnp.indices(3), TypeError, "'int' object is not iterable"),
        (lambda: jnp.tril_indices(2.5), TypeError, "'float' object cannot be interpreted as an integer"),
        (lambda: jnp.triu_indices(2, 0, 2.5), TypeError, "'float' object cannot be interpreted as an integer"),
    ],
    ids=["meshgrid", "indices", "tril_indices", "triu_indices"],
)
def test_grids_of_what_has_no_such_shape(call, error, words):
    with pytest.raises(error, match=words):
        call()
