"""Elementwise functions against NumPy, and the dtypes and weak types that they give."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

F = np.array([[-2.5, -0.5, 0.25], [0.75, 1.5, 3.0]], np.float32)
INSIDE = F / 4
POSITIVE = np.abs(F)
I = np.array([[-7, -2, 3], [4, 5, 9]], np.int32)
J = np.array([3, -2, 4], np.int32)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], np.float32)

UNARY = {
    "sin": F, "cos": F, "tan": F, "arcsin": INSIDE, "arccos": INSIDE, "arctan": F, "sinh": F, "cosh": F, "tanh": F,
    "arcsinh": F, "arccosh": POSITIVE + 1, "arctanh": INSIDE, "exp": F, "exp2": F, "expm1": F, "log": POSITIVE,
    "log1p": POSITIVE, "log2": POSITIVE, "log10": POSITIVE, "sqrt": POSITIVE, "cbrt": F, "deg2rad": F, "rad2deg": F,
    "reciprocal": F, "sinc": F, "negative": F, "positive": F, "square": F, "absolute": F, "fabs": F, "sign": F,
    "floor": F, "ceil": F, "trunc": F, "rint": F, "isnan": SPECIAL, "isinf": SPECIAL, "isfinite": SPECIAL,
    "isposinf": SPECIAL, "isneginf": SPECIAL, "signbit": SPECIAL, "logical_not": SPECIAL, "nan_to_num": SPECIAL,
    "bitwise_not": I, "bitwise_count": I,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_function_agrees_with_numpy(name):
    x = UNARY[name]
    got, want = getattr(jnp, name)(x), getattr(np, name)(x)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


BINARY = {
    "add": (F, F[0]), "subtract": (I, J), "multiply": (F, 2.0), "true_divide": (I, J), "maximum": (F, 0.5),
    "minimum": (I, J), "power": (POSITIVE, F[0]), "floor_divide": (I, J), "remainder": (I, J), "fmod": (I, J),
    "arctan2": (F, F[0]), "hypot": (F, F[0]), "logaddexp": (F, F[0]), "logaddexp2": (F, F[0]), "fmax": (SPECIAL, 0.5),
    "fmin": (SPECIAL, 0.5), "heaviside": (SPECIAL, 0.5), "copysign": (F, -1.0), "nextafter": (F, F[0]),
    "equal": (I, J), "not_equal": (I, J), "less": (F, F[0]), "less_equal": (I, J), "greater": (I, J),
    "greater_equal": (F, F[0]), "logical_and": (I, J > 0), "logical_or": (I, J > 0), "logical_xor": (I, J > 0),
    "bitwise_and": (I, J), "bitwise_or": (I, J), "bitwise_xor": (I, J), "left_shift": (I, 2), "right_shift": (I, 1),
    "ldexp": (F, J), "isclose": (F, F * 1.0000001),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_function_broadcasts_and_agrees_with_numpy(name):
    x, y = BINARY[name]
    got, want = getattr(jnp, name)(x, y), getattr(np, name)(x, y)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("divisor", [3, -3, 2.5, -2.5])
def test_divmod_agrees_with_python(divisor):
    quotient, rest = jnp.divmod(I, divisor)
    want = np.vectorize(divmod, otypes=[float, float])(I, divisor)
    np.testing.assert_allclose(quotient, want[0])
    np.testing.assert_allclose(rest, want[1], atol=1e-6)


def test_modf_and_round():
    for got, want in zip(jnp.modf(F), np.modf(F), strict=True):
        np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(jnp.round(F * 3.14159, 2), np.round(F * 3.14159, 2), rtol=1e-6)
    assert round(jnp.float32(2.5)).item() == 2


def test_complex_parts():
    z = (F + 1j * F[::-1]).astype(np.complex64)
    np.testing.assert_allclose(jnp.real(z), z.real)
    np.testing.assert_allclose(jnp.imag(z), z.imag)
    np.testing.assert_allclose(jnp.conj(z), z.conj())
    np.testing.assert_allclose(jnp.angle(z), np.angle(z), rtol=1e-6)
    np.testing.assert_allclose(jnp.absolute(z), np.abs(z), rtol=1e-6)
    np.testing.assert_array_equal(jnp.maximum(z, z[::-1]), np.maximum(z, z[::-1]))


# The table of "Type promotion semantics" in JAX's documentation, in part: (x, y) -> dtype, weak type.
PROMOTION = [
    (np.int32(1), 2, "int32", False),
    (np.int32(1), 2.0, "float32", True),
    (np.int8(1), 2.0, "float32", True),
    (np.float16(1), 2, "float16", False),
    (np.float16(1), 2.0, "float16", False),
    (np.float16(1), np.int32(2), "float16", False),
    (np.float16(1), np.float32(2), "float32", False),
    (np.uint8(1), np.int8(2), "int16", False),
    (np.uint32(1), np.int32(2), "int32", False),
    (np.bool_(True), 2, "int32", True),
    (np.int32(1), 2j, "complex64", True),
    (1, 2, "int32", True),
    (1, 2.0, "float32", True),
    (True, 2.0, "float32", True),
]


@pytest.mark.parametrize(("x", "y", "dtype", "weak"), PROMOTION)
def test_promotion(x, y, dtype, weak):
    x, y = (v if isinstance(v, (bool, int, float, complex)) else jnp.asarray(v) for v in (x, y))
    got = jnp.add(x, y)
    assert (str(got.dtype), got.weak_type) == (dtype, weak)


def test_integers_stay_integers_where_they_can_and_become_floats_where_not():
    assert (jnp.arange(3) * 2).dtype == jnp.int32
    assert (jnp.arange(3) / 2).dtype == jnp.float32
    assert (jnp.arange(3) ** 2).dtype == jnp.int32
    assert jnp.sin(jnp.arange(3)).dtype == jnp.float32
    assert (jnp.uint8(250) + 10).tolist() == 4


def test_integer_powers():
    np.testing.assert_array_equal(2 ** jnp.array([0, 1, 5]), [1, 2, 32])
    np.testing.assert_array_equal(jnp.power(jnp.array([0, 0, -2]), jnp.array([0, 3, 3])), [1, 0, -8])
    with pytest.raises(TypeError, match="Integers cannot be raised to negative powers"):
        jnp.arange(3) ** -1


JAXPRS = [
    (lambda x: x**2, "integer_pow[y=2] a"),
    (lambda x: 2 * x, "mul 2.0:f32[] a"),
    (lambda x: x**2.0, "pow a 2.0:f32[]"),
    (jnp.sum, "reduce_sum[axes=(0,)] a"),
    (jnp.max, "reduce_max[axes=(0,)] a"),
    (jnp.square, "square a"),
    (lambda x: jnp.ones(1), "broadcast_in_dim[broadcast_dimensions=() shape=(1,)] 1.0:f32[]"),
]


@pytest.mark.parametrize(("fun", "equation"), JAXPRS)
def test_simple_functions_are_one_equation(fun, equation):
    jaxpr = polyax.make_jaxpr(fun)(jnp.ones(3))
    assert len(jaxpr.eqns) == 1
    assert equation in str(jaxpr)


GRADIENTS = [
    (jnp.sinc, 0.0, 0.0),
    (lambda x: jnp.logaddexp(x, x), 1.0, 1.0),
    (lambda x: jnp.hypot(x, 3.0), 4.0, 0.8),
    (lambda x: x**0, 2.0, 0.0),
    (lambda x: jnp.power(x, jnp.array(2)), 0.0, 0.0),
    (lambda x: jnp.where(x > 0, x, 0.0), -1.0, 0.0),
    (lambda x: jnp.clip(x, -0.5, 0.5), 0.25, 1.0),
]


@pytest.mark.parametrize(("fun", "x", "want"), GRADIENTS)
def test_derivative_at_delicate_points(fun, x, want):
    assert polyax.grad(fun)(x).item() == pytest.approx(want)


def test_complex_numbers_of_arctan2_and_log_sums():
    x, y = np.complex64([1 + 2j, -1 - 1j, 0.5j]), np.complex64([2 - 2j, 1 + 1j, 3])
    angle = jnp.arctan2(x, y)
    assert angle.dtype == np.complex64
    np.testing.assert_allclose(jnp.tan(angle), x / y, atol=1e-6)
    assert jnp.arctan2(np.complex64(1), np.complex64(-1)).real == pytest.approx(3 * np.pi / 4)
    assert lax.atan2(np.complex64(1), np.complex64(-1)).real == pytest.approx(3 * np.pi / 4)
    np.testing.assert_allclose(jnp.logaddexp(x, y), np.log(np.exp(x) + np.exp(y)), rtol=1e-5)
    np.testing.assert_allclose(jnp.logaddexp2(x, y), np.log(2**x + 2**y) / np.log(2), rtol=1e-5)
    assert jnp.logaddexp(np.complex64(3j), np.complex64(3j + 4)).imag <= np.pi


def test_arctan2_of_half_precision_along_both_axes():
    x = np.float16([[0, 1, 0.5, 1.5]])
    np.testing.assert_allclose(jnp.arctan2(x.T, -x), np.arctan2(x.T, -x), atol=2e-3)


def test_booleans_are_numbers_of_32_bits():
    with polyax.enable_x64(True):
        yes = jnp.array([True, False])
        for result in (jnp.square(yes), yes**yes, yes << 1, jnp.remainder(yes, yes), jnp.positive(jnp.int32(1))):
            assert result.dtype in (np.int32, np.int64)
        assert jnp.square(yes).dtype == (yes**yes).dtype == jnp.right_shift(yes, True).dtype == np.int32
        assert jnp.sum(yes).dtype == jnp.cumsum(yes).dtype == np.int64


def test_rint_gives_the_default_floating_type():
    with polyax.enable_x64(True):
        assert jnp.rint(np.int8([1])).dtype == jnp.rint(True).dtype == np.float64
        assert not jnp.rint(3).weak_type and jnp.rint(2.5).weak_type
    assert jnp.rint(np.int32([3])).dtype == np.float32
    assert not jnp.log2(2.0).weak_type and not jnp.log10(2.0).weak_type


def test_integers_over_zero_as_xla_rounds_them():
    x = np.int32([-3, 0, 3])
    np.testing.assert_array_equal(jnp.floor_divide(x, np.int32(0)), [-2, -1, -2])
    quotient, rest = jnp.divmod(x, np.int32(0))
    np.testing.assert_array_equal(quotient, [-2, -1, -2])
    np.testing.assert_array_equal(rest, [0, 0, 0])


def test_spacing_of_half_precision_looks_upward():
    x = np.float16([1.0, -1.0, -2.0])
    np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))
    x = np.float32([1.0, -1.0, -0.0])
    np.testing.assert_array_equal(jnp.spacing(x[:2]), np.spacing(x[:2]))


def test_ldexp_refuses_complex_numbers_and_takes_booleans():
    with pytest.raises(ValueError, match="ldexp not supported"):
        jnp.ldexp(1j, 1)
    np.testing.assert_array_equal(jnp.ldexp(3.0, jnp.array([True, False])), [6.0, 3.0])


def test_ldexp_of_zero_stays_zero():
    np.testing.assert_array_equal(jnp.ldexp(np.float32([0, -0.0, 1]), 1000), [0, -0.0, np.inf])


def test_derivatives_at_zero() -> None:
    """That of the absolute value is taken from above; that of the even function I0 is 0."""
    grad = polyax.grad
    assert (grad(jnp.abs)(0.0), grad(jnp.abs)(-0.0), grad(jnp.abs)(-2.0)) == (1.0, 1.0, -1.0)
    assert grad(jnp.i0)(0.0) == 0.0
    assert grad(jnp.cbrt)(0.0) == np.inf
    assert grad(jnp.logaddexp)(0.0, 0.0) == 0.5


def test_complex_numbers_are_no_real_ones_and_truths_no_positions() -> None:
    for convert in (int, float):
        with pytest.raises(TypeError, match="or a real number, not 'complex'"):
            convert(jnp.array(1j))
    with pytest.raises(TypeError, match="Only integer scalar arrays"):
        jnp.array(True).__index__()
    with pytest.raises(TypeError, match="argmax does not support complex numbers"):
        jnp.argmax(jnp.array([1j]))


def test_spacing_is_a_staircase():
    assert polyax.grad(jnp.spacing)(jnp.float32(1.5)) == 0


@pytest.mark.parametrize("jac", [polyax.jacfwd, polyax.jacrev])
def test_second_derivatives_of_powers_of_zero(jac):
    """d/dy of y x^(y-1) is 1/x for y = 0."""
    found = jac(jac(polyax.lax.pow, (0, 1)), (0, 1))(4.0, 0.0)
    np.testing.assert_allclose(found, [[0, 1 / 4], [1 / 4, np.log(4) ** 2]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_masks_leave_nothing_of_what_they_cover(dtype: str) -> None:
    x, mask = jnp.array([np.nan, np.inf, 2, -3], dtype), jnp.array([False, False, False, True])
    expected = np.array([0, 0, 0, -3], dtype)
    for product in (jnp.multiply, lambda x, m: m * x):
        for run in (
            product,
            polyax.vmap(product),
            lambda x, m, f=product: polyax.jvp(lambda x: f(x, m), (x,), (x,))[1],
        ):
            np.testing.assert_array_equal(np.asarray(run(x, mask)), expected)
    np.testing.assert_array_equal(polyax.jit(lambda x, m: x * m)(x, mask), expected)
    np.testing.assert_array_equal(x * np.asarray(mask), expected)
    assert (mask * np.nan).weak_type and str(mask * np.nan) == "[ 0.  0.  0. nan]"


def test_masks_that_are_stretched_are_numbers() -> None:
    assert np.isnan(jnp.full((2, 3), jnp.nan) * jnp.zeros(3, bool)).all()
    assert (jnp.arange(3) * jnp.array([True, False, True])).dtype == "int32"
