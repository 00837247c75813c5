"""Python numbers as arrays: what a dtype can hold is taken as it is, and what it can't is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

BIG = 3340417016  # fits unsigned integers of 32 bits, and no signed ones

HELD = {
    "the type itself": lambda: jnp.uint32(BIG),
    "asarray": lambda: jnp.asarray(BIG, jnp.uint32),
    "array": lambda: jnp.array(BIG, "uint32"),
    "full": lambda: jnp.full((), BIG, jnp.uint32),
    "full_like": lambda: jnp.full_like(jnp.uint32(0), BIG),
    "lax.full": lambda: lax.full((), BIG, jnp.uint32),
    "convert_element_type": lambda: lax.convert_element_type(BIG, jnp.uint32),
    "an update": lambda: jnp.zeros((), jnp.uint32).at[()].set(BIG),
}


@pytest.mark.parametrize("way", HELD)
def test_unsigned_integers_beyond_the_signed_ones(way: str) -> None:
    x = HELD[way]()
    assert x.dtype == np.uint32 and int(x) == BIG and not x.weak_type


def test_large_integers_as_floats() -> None:
    assert jnp.float32(2**40) == np.float32(2**40) and jnp.asarray(2**40, "float32") == np.float32(2**40)


def test_integers_of_numpy_that_arrays_cannot_hold_wrap_around_before_they_meet_floats() -> None:
    large = np.int64(2**40 + 5)
    assert (jnp.ones(2) * large).tolist() == [5, 5] and jnp.add(1.5, np.uint64(large)) == 6.5
    assert jax.jit(lambda x: jnp.maximum(x, np.array([large, -(2**33) - 1])))(jnp.zeros(2)).tolist() == [5, 0]
    assert jnp.concatenate([jnp.ones(1), np.array([large])]).tolist() == [1, 5]
    assert jnp.asarray(large, "float32") == np.float32(large)


@pytest.mark.parametrize("fill", [-1, 300])
def test_filling_wraps_around(fill: int) -> None:
    wanted = np.uint8(fill % 256)
    assert jnp.full((), fill, "uint8") == wanted and lax.full((), fill, jnp.uint8) == wanted
    assert lax.full_like(jnp.uint8(0), fill) == wanted and lax.convert_element_type(fill, jnp.uint8) == wanted


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a negative number": (lambda: jnp.uint32(-1), OverflowError, "-1 out of bounds for uint32"),
    "too large": (lambda: jnp.asarray(300, "uint8"), OverflowError, "300 out of bounds for uint8"),
    "a negative float": (lambda: jnp.asarray(-3.7, "uint32"), OverflowError, "-3 out of bounds for uint32"),
    "nan": (lambda: jnp.int32(float("nan")), ValueError, "cannot convert float NaN to integer"),
    "a complex number": (lambda: jnp.float32(1j), TypeError, "not 'complex'"),
    "without a dtype": (lambda: jnp.asarray(BIG), OverflowError, f"{BIG} too large to convert to int32"),
    "as an operand": (lambda: jnp.uint32(1) + BIG, OverflowError, f"{BIG} too large to convert to int32"),
    "beside floats": (lambda: jnp.float32(1) * 2**31, OverflowError, f"{2**31} too large to convert to int32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_told(case: str) -> None:
    make, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        make()


def test_numpy_scalars_are_cast_as_arrays_are() -> None:
    assert jnp.asarray(np.float64(-1), "uint8") == 255 and jnp.uint8(np.int64(300)) == 44


@pytest.mark.parametrize("function, wanted", [(jnp.shape, ()), (jnp.ndim, 0), (jnp.size, 1)])
def test_none_has_the_shape_of_a_scalar(function: Any, wanted: Any) -> None:
    with pytest.warns(DeprecationWarning, match="requires ndarray or scalar arguments, got <class 'NoneType'>"):
        assert function(None) == wanted


@pytest.mark.parametrize("function, wanted", [(jnp.shape, (1, 2)), (jnp.ndim, 2), (jnp.size, 2)])
def test_lists_still_have_a_shape(function: Any, wanted: Any) -> None:
    with pytest.warns(DeprecationWarning, match="requires ndarray or scalar arguments, got <class 'list'>"):
        assert function([[1, 2]]) == wanted


UNARY = [n for n in dir(np) if isinstance(f := getattr(np, n), np.ufunc) and f.nin == 1 and hasattr(jnp, n)]


@pytest.mark.parametrize("name", UNARY)
def test_elementwise_functions_take_python_numbers(name: str) -> None:
    """As they take arrays."""
    fun, oracle = getattr(jnp, name), getattr(np, name)
    for x in (0.5, float("inf"), 2, 0.5 + 1j):
        try:
            of_array = fun(jnp.asarray(x))
        except (TypeError, ValueError) as e:
            with pytest.raises(type(e)):
                fun(x)
            continue
        got = fun(x)
        np.testing.assert_array_equal(got, of_array)
        if name.startswith("is"):
            assert bool(got) == oracle(x)


def test_types_take_sequences_with_traced_numbers():
    def listed(x):
        return jnp.float32([x.sum(), 1]), jnp.bool_([[x[0], 2], [0, x[1]]])

    for run in (listed, jax.jit(listed)):
        floats, bools = run(jnp.arange(3))
        assert floats.tolist() == [3, 1] and floats.dtype == jnp.float32
        assert bools.tolist() == [[False, True], [False, True]]
    assert jnp.int8([1.0, 2.7]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="None is not a valid value"):
        jnp.float32(None)


INTS = np.arange(1, 4)
WEAK = {
    "hypot": (lambda: jnp.hypot(INTS, 1.0), False),
    "hypot of numbers": (lambda: jnp.hypot(1, 2.0), True),
    "logaddexp2": (lambda: jnp.logaddexp2(1.0, INTS > 1), False),
    "logaddexp2 of numbers": (lambda: jnp.logaddexp2(1, jnp.int32(2) * 1.0), True),
    "heaviside": (lambda: jnp.heaviside(INTS, 1.0), False),
    "heaviside of a number": (lambda: jnp.heaviside(1.0, INTS), True),
    "power": (lambda: jnp.power(2, INTS > 1), False),
    "power, traced": (lambda: jax.jit(jnp.power)(2, 3), False),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_beside_numbers(name: str) -> None:
    """As JAX has them: what it selects beside a number that is spread loses its weak type."""
    made, weak = WEAK[name]
    assert made().weak_type == weak


def test_texts_are_parsed_where_a_type_is_given() -> None:
    assert jnp.float32("1.5") == 1.5 and jnp.int32(b"2") == 2 and jnp.array("1j", "complex64") == 1j
    assert jnp.float32("1.5").dtype == jnp.float32 and not jnp.bool_("") and jnp.bool_("0")
    with pytest.raises(ValueError, match="could not convert string to float: 'one'"):
        jnp.float32("one")
    with pytest.raises(TypeError, match="with dtype <U3 is not a valid JAX array type"):
        jnp.asarray("1.5")


def test_bytes_of_arrays_are_read_anew() -> None:
    x = jnp.arange(4, dtype="float32").reshape(2, 2)
    assert jnp.frombuffer(x, "float32").tolist() == [0, 1, 2, 3]
    assert jnp.frombuffer(x, "int32", count=2, offset=4).tolist() == [0x3F800000, 0x40000000]
    assert jnp.frombuffer(x.T, "float32").tolist() == [0, 2, 1, 3]
    with pytest.raises(TypeError, match="a bytes-like object is required"):
        jax.jit(lambda x: jnp.frombuffer(x, "float32"))(x)


@pytest.mark.parametrize("divide", [jnp.floor_divide, jnp.divmod, lambda x, y: x // y])
def test_no_floors_of_complex_numbers(divide) -> None:
    with pytest.raises(TypeError, match="does not support complex-valued inputs"):
        divide(jnp.array(1j), 2)


LARGE = 2**40 + 5  # more than integers of 32 bits are


@pytest.mark.parametrize(
    "use",
    (
        lambda n: jnp.zeros(2, jnp.int32).at[0].set(n),
        lambda n: jnp.zeros(2, jnp.float32).at[0].add(n),
        lambda n: jnp.zeros(2, jnp.uint8).at[0].set(n),
        lambda n: jnp.linspace(0, n, 2)[1:],
        lambda n: jnp.take(jnp.arange(8), n),
    ),
)
def test_large_integers_are_refused_and_those_of_numpy_wrap_around(use: Any) -> None:
    with pytest.raises(OverflowError, match=rf"Python int {LARGE} too large to convert to int32"):
        use(LARGE)
    assert use(np.int64(LARGE)).ravel()[0] == 5


def test_large_integers_of_numpy_become_floats_that_are_asked_for() -> None:
    assert lax.convert_element_type(np.int64(2**40), jnp.float32) == np.float32(2**40)
    assert lax.convert_element_type(np.int64(2**40 + 7), jnp.int32) == 7
