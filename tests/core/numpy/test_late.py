"""Functions of ``polyax.numpy`` that are loaded when they are first asked for, against NumPy."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import dlpack
from polyax.errors import ConcretizationTypeError
from support.agreeing import Agreeing, agreeing, same

R = np.random.default_rng(8)
I, J = R.integers(-40, 40, (3, 4)), R.integers(-40, 40, 4)
BITS, BYTES = R.integers(0, 3, (3, 11)), R.integers(0, 256, (3, 2)).astype(np.uint8)
V, W, X = R.standard_normal(7), R.standard_normal(3) + 3, np.linspace(-1, 1, 9)
Y, YS = R.standard_normal(9), R.standard_normal((9, 2))
POINTS, WEIGHTS = R.uniform(0, 3, (40, 3)), R.uniform(0, 1, 40)
COLUMNS = POINTS[:, 0], POINTS[:, 1]
EDGES = np.array([0.0, 0.5, 2.0, 3.0])


def flat(result: Any) -> list[Any]:
    return [x for part in result for x in (part if isinstance(part, (list, tuple)) else [part])]


def both(name: str, *args: Any, order: int = 0, whole: tuple[int, ...] = (), **options: Any) -> Agreeing:
    """The function of that name in both libraries."""

    def call(np: Any) -> Any:
        def fun(*xs: Any) -> Any:
            result = getattr(np, name)(*xs, **options)
            return flat(result) if isinstance(result, (list, tuple)) else result

        return fun

    return agreeing(call(jnp), call(np), *args, order=order, whole=whole)


CASES: dict[str, Agreeing] = {
    "gcd": both("gcd", I, J),
    "gcd of zeros": both("gcd", np.array([0, 0, 5]), np.array([0, 7, 0])),
    "gcd of unsigned integers": both("gcd", np.array([12, 250], np.uint8), np.array([18, 100], np.uint8)),
    "lcm": both("lcm", I, J),
    "lcm of zeros": both("lcm", np.array([0, 0, 5]), np.array([0, 7, 0])),
    "packbits": both("packbits", BITS),
    "packbits along an axis": both("packbits", BITS, axis=1, bitorder="little"),
    "packbits along the first axis": both("packbits", BITS > 0, axis=0),
    "unpackbits": both("unpackbits", BYTES),
    "unpackbits along an axis": both("unpackbits", BYTES, axis=0, bitorder="little"),
    "unpackbits, cut": both("unpackbits", BYTES, axis=1, count=-3),
    "unpackbits, filled up": both("unpackbits", BYTES, axis=1, count=20),
    "polyfit": both("polyfit", X, Y, deg=3),
    "polyfit of columns": both("polyfit", X, YS, deg=2),
    "polyfit with weights": both("polyfit", X, Y, deg=2, w=np.arange(1.0, 10.0)),
    "covariance": both("polyfit", X, Y, deg=2, cov=True),
    "covariance of columns": both("polyfit", X, YS, deg=1, cov=True),
    "covariance, unscaled": both("polyfit", X, Y, deg=2, cov="unscaled"),
    "polydiv": agreeing(jnp.polydiv, lambda u, v: (np.polydiv(u, v)[0], padded(np.polydiv(u, v)[1], 7)), V, W, order=1),
    "polydiv by a longer one": agreeing(jnp.polydiv, lambda u, v: (np.zeros(1), u), W, V),
    "histogram2d": both("histogram2d", *COLUMNS, bins=4, range=[[0, 3], [0, 2.5]]),
    "histogram2d with edges": both("histogram2d", *COLUMNS, bins=[EDGES, 3], weights=WEIGHTS, density=True),
    "histogram2d with edges for both": both("histogram2d", *COLUMNS, bins=EDGES),
    "histogramdd": both("histogramdd", POINTS, bins=[2, 3, 4]),
    "histogramdd with a range": both("histogramdd", POINTS, bins=3, range=[(0, 1), (1, 2), (0.5, 3)], density=True),
    "i0": both("i0", np.linspace(-9, 9, 13), order=2),
    "kaiser": agreeing(lambda beta: jnp.kaiser(7, beta), lambda beta: np.kaiser(7, beta), np.float64(5.5), order=1),
}  # fmt: skip


def padded(x: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([np.zeros(size - len(x)), x])


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name: str) -> None:
    CASES[name].check()


COEFFICIENTS = {
    "simple": np.array([1.0, -6.0, 11.0, -6.0]),
    "complex pairs": np.array([2.0, 0.0, 1.0, 0.5]),
    "zeros around": np.array([0.0, 0.0, 1.0, -3.0, 2.0, 0.0]),
    "constant": np.array([0.0, 3.0]),
    "nothing": np.zeros(3),
}


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_roots(name: str) -> None:
    p = COEFFICIENTS[name]
    with polyax.enable_x64(True):
        found, want = np.asarray(jnp.roots(p)), np.roots(p).astype(complex)
        same(ordered(found), ordered(want))
        unstripped = np.asarray(polyax.jit(lambda p: jnp.roots(p, strip_zeros=False))(p))
    assert np.isnan(unstripped).sum() == len(p) - 1 - len(want)
    same(ordered(unstripped[~np.isnan(unstripped)]), ordered(want))


def test_roots_stand_in_the_order_of_jax() -> None:
    assert np.asarray(jnp.roots(np.float32([1, -3, 2, 0, 0]))).real.round(4).tolist() == [0, 0, 1, 2]
    unstripped = np.asarray(jnp.roots(np.float32([0, 1, -3, 2, 0]), strip_zeros=False)).real.round(4)
    assert unstripped[:3].tolist() == [1, 2, 0] and np.isnan(unstripped[3])


def ordered(x: np.ndarray) -> np.ndarray:
    return x[np.lexsort((x.imag.round(9), x.real.round(9)))]


def test_fits_tell_what_is_left() -> None:
    with polyax.enable_x64(True):
        got, want = jnp.polyfit(X, Y, 2, full=True), np.polyfit(X, Y, 2, full=True)
    same(list(got), [np.asarray(w) for w in want])


def test_remainders_can_be_trimmed() -> None:
    quotient, rest = jnp.polydiv(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]), trim_leading_zeros=True)
    assert quotient.tolist() == [1, 1] and rest.tolist() == [2]


WINDOWS = [jnp.bartlett, jnp.blackman, jnp.hamming, jnp.hanning, lambda M: jnp.kaiser(M, 3.0)]


@pytest.mark.parametrize("window", WINDOWS)
def test_small_windows(window: Any) -> None:
    assert window(1).tolist() == [1] and window(0).shape == window(-1).shape == (0,)
    with polyax.enable_x64(True):
        assert {window(points).dtype for points in (0, 1, 3)} == {np.dtype(float)}


@pytest.mark.parametrize("window", WINDOWS)
def test_lengths_of_windows_are_cut_to_integers(window: Any) -> None:
    assert window(3.7).shape == window(jnp.float32(3.7)).shape == (3,) and window(True).shape == (1,)
    with pytest.raises(TypeError, match="Only scalar arrays can be converted to Python scalars"):
        window(jnp.array([3, 4]))
    with pytest.raises(ConcretizationTypeError, match="M argument of jnp"):
        polyax.jit(window)(3)


class Elsewhere:
    """An array in memory that the host can't read."""

    def __dlpack__(self) -> Any:
        raise AssertionError("not to be asked")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_arrays_of_other_libraries() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1]
    device = polyax.devices("reference")[0]
    made = jnp.from_dlpack(x, device=device, copy=True)
    assert made.devices() == {device} and made.tolist() == x.tolist()
    assert dlpack.from_dlpack(np.ones(2, np.int64)).dtype == np.int32
    y = jnp.ones(2)
    same = dlpack.from_dlpack(y)
    assert same.unsafe_buffer_pointer() == y.unsafe_buffer_pointer() and np.from_dlpack(same).tolist() == [1, 1]
    assert dlpack.is_supported_dtype("bfloat16") and not dlpack.is_supported_dtype(np.dtype("U3"))


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "gcd of floats": (lambda: jnp.gcd(1.0, 2), ValueError, "Arguments to jax.numpy.gcd must be integers"),
    "lcm of booleans": (lambda: jnp.lcm(True, False), ValueError, "Arguments to jax.numpy.lcm must be integers"),
    "packed floats": (lambda: jnp.packbits(V), TypeError, "of integer or boolean data type"),
    "an order of bits": (lambda: jnp.packbits(BITS, bitorder="x"), ValueError, "'little' or 'big', got 'x'"),
    "unpacked integers": (lambda: jnp.unpackbits(I), TypeError, "of unsigned byte data type"),
    "roots of a matrix": (lambda: jnp.roots(np.ones((2, 2))), ValueError, "must be a rank-1 array"),
    "traced roots": (lambda: polyax.jit(jnp.roots)(V), ConcretizationTypeError, "strip_zeros=False"),
    "traced trimming": (
        lambda: polyax.jit(lambda u: jnp.polydiv(u, W, trim_leading_zeros=True))(V), ConcretizationTypeError,
        "jnp.polydiv with trim_leading_zeros",
    ),
    "a negative degree": (lambda: jnp.polyfit(X, Y, -1), ValueError, "deg >= 0, got -1"),
    "a broken degree": (lambda: jnp.polyfit(X, Y, 1.5), TypeError, "integer"),
    "other lengths": (lambda: jnp.polyfit(X, V, 1), TypeError, "x and y to have same length"),
    "a matrix of abscissas": (lambda: jnp.polyfit(YS, Y, 1), TypeError, "1D vector for x"),
    "no points": (lambda: jnp.polyfit(X[:0], Y[:0], 1), TypeError, "non-empty vector for x"),
    "a cube of ordinates": (lambda: jnp.polyfit(X, np.ones((9, 1, 1)), 1), TypeError, "1D or 2D array for y"),
    "other weights": (lambda: jnp.polyfit(X, Y, 1, w=V), TypeError, "w and y to have the same length"),
    "too few points": (lambda: jnp.polyfit(X[:3], Y[:3], 2, cov=True), ValueError, "must exceed order"),
    "bins for too few": (lambda: jnp.histogramdd(POINTS, bins=[2]), ValueError, "a bin for each dimension, got 1"),
    "ranges for too few": (lambda: jnp.histogramdd(POINTS, range=[(0, 1)]), ValueError, "a sequence of 3 pairs"),
    "a list of points": (lambda: jnp.histogramdd([V, V]), TypeError, "requires ndarray or scalar"),
    "a vector of points": (lambda: jnp.histogramdd(V), ValueError, r"the shape \[n, dimensions\]"),
    "coordinates of other lengths": (lambda: jnp.histogram2d(V, X), TypeError, "vectors of one length"),
    "i0 of complex numbers": (lambda: jnp.i0(1j), ValueError, "Unsupported input type to jnp.i0"),
    "no array": (lambda: jnp.from_dlpack(3), TypeError, "must have __dlpack__ and __dlpack_device__"),
    "no copy": (lambda: jnp.from_dlpack(V, copy=False), ValueError, "requires a copy"),
    "memory elsewhere": (lambda: jnp.from_dlpack(Elsewhere()), BufferError, r"DLPack device \(2, 0\)"),
    "an unknown name": (lambda: jnp.no_such_name, AttributeError, "has no attribute 'no_such_name'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_told(case: str) -> None:
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


def test_errors_of_what_is_loaded_late_end_at_the_users_line() -> None:
    with pytest.raises(TypeError) as raised:
        jnp.polyval(np.ones((2, 2, 2)), None)
    assert [frame.path.name for frame in raised.traceback] == ["test_late.py"]
    assert pickle.loads(pickle.dumps(jnp.polyval)) is jnp.polyval


def test_arguments_of_array_by_position_are_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="pass them by name"):
        assert jnp.array(1, None, True, "K", 2).shape == (1, 1)
    with pytest.raises(TypeError, match="takes from 1 to 5 positional"):
        jnp.array(1, None, True, "K", 2, 3)


def test_numbers_are_printed_as_set() -> None:
    before = jnp.get_printoptions()["precision"]
    jnp.set_printoptions(precision=3)
    try:
        assert str(jnp.asarray([1 / 3])) == "[0.333]"
    finally:
        jnp.set_printoptions(precision=before)


def test_parameters_have_numpys_names() -> None:
    assert jnp.real(1 + 2j) == 1 and jnp.imag(np.array([1 + 2j])).tolist() == [2] and jnp.imag(V[0]) == 0
    assert jnp.float_power(2, 3) == 8 and jnp.nextafter(1.0, 2.0) == np.nextafter(np.float32(1), np.float32(2))


@pytest.mark.parametrize("home", sorted(set(jnp._LATE.values()) - {"polyax.numpy.linalg"}))
def test_modules_that_load_late_offer_all_that_they_list(home: str) -> None:
    module = importlib.import_module(home)
    assert {name for name, at in jnp._LATE.items() if at == home} == set(module.__all__)
