"""Cases of JAX's own tests of numpy that once came out differently."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import errors

CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_lines_keep_their_places_among_three_dimensions(axis: int) -> None:
    np.testing.assert_array_equal(
        jnp.apply_along_axis(lambda x: x * x[0], axis, CUBE), np.apply_along_axis(lambda x: x * x[0], axis, CUBE)
    )


def test_pad_by_a_function_of_lines() -> None:
    def ends(vector: object, width: tuple[int, int], axis: int, kwargs: dict[str, int]) -> object:
        vector = vector.at[: width[0]].set(kwargs["padder"])  # type: ignore[attr-defined]
        return vector.at[-width[1] :].set(kwargs["padder"])

    padded = jnp.pad(CUBE, 1, ends, padder=100)
    np.testing.assert_array_equal(padded, np.pad(CUBE, 1, constant_values=100))


def test_ramps_of_integers_are_floors() -> None:
    x = np.array([[-3, 2, 7], [4, -8, 1]], np.int32)
    np.testing.assert_array_equal(jnp.pad(x, 3, "linear_ramp", end_values=5), np.pad(x, 3, "linear_ramp", end_values=5))


RAMPS = {
    "float64": np.array([1.1, 2.2, 3.3]),
    "int64 beyond float32": np.array([2**30 + 1, 7]),
    "complex64": np.array([1 + 2j, 3 - 1j], np.complex64),
}


@pytest.mark.parametrize("name", RAMPS)
def test_ramps_are_as_precise_as_the_array(name: str) -> None:
    with polyax.enable_x64(True):
        ramp = jnp.pad(RAMPS[name], (5, 7), "linear_ramp", end_values=(0, 3))
    expected = np.pad(RAMPS[name], (5, 7), "linear_ramp", end_values=(0, 3))
    np.testing.assert_allclose(ramp, expected, rtol=1e-6 if name == "complex64" else 1e-14)


@pytest.mark.parametrize("mode", ["constant", "empty", "edge", "mean", "wrap", "linear_ramp"])
def test_padding_keeps_weak_types(mode: str) -> None:
    assert jnp.pad(jnp.array(1.0)[None], 0, mode).weak_type


def test_pad_width_must_be_known() -> None:
    with pytest.raises(errors.ConcretizationTypeError, match="pad_width argument of jnp.pad"):
        polyax.jit(jnp.pad)(jnp.arange(3), 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, "bfloat16", np.complex64])
@pytest.mark.parametrize("decimals", [45, 1000])
def test_decimals_beyond_all_numbers_round_nothing(dtype: object, decimals: int) -> None:
    x = jnp.array([1.25, -3e-5, 4096.0], dtype)
    np.testing.assert_array_equal(jnp.round(x, decimals), x)


def test_halves_are_rounded_in_single_precision() -> None:
    assert jnp.round(jnp.array([1.234, 12345.0], np.float16), 3).tolist() == pytest.approx([1.234, 12345.0], rel=1e-3)


def test_remainders_of_a_division_by_zero_are_no_numbers() -> None:
    assert np.isnan(jnp.polydiv(jnp.array([1.0]), jnp.array([0.0]))[1]).all()


def test_few_coefficients_have_no_roots_even_where_traced() -> None:
    assert polyax.jit(jnp.roots)(jnp.array([3.0])).shape == (0,)


def test_covariances_of_columns_have_a_last_dimension() -> None:
    x, y = np.arange(6.0), np.ones((6, 5))
    assert jnp.polyfit(x, y, 1, cov="unscaled")[1].shape == (2, 2, 1)
    assert jnp.polyfit(x, y, 1, cov=True)[1].shape == (2, 2, 5)
    assert jnp.polyfit(x, y[:, 0], 1, cov=True)[1].shape == (2, 2)
    assert jnp.polyfit(x, y, 1, rcond=1e-3, full=True)[4].dtype == np.float32


def test_conditions_of_compress() -> None:
    with pytest.raises(ValueError, match="entries that are out of bounds"):
        jnp.compress(np.array([0, 0, 0, 1]), CUBE, axis=1)
    with pytest.raises(ValueError, match="condition must be a 1D array"):
        jnp.compress(np.array([[1, 0]]), CUBE, axis=0)
    assert jnp.compress(np.array([1, 0, 0, 0, 0]), CUBE, axis=1).shape == (2, 1, 4)


@pytest.mark.parametrize("repeats", [[1, 2], 1.5], ids=["list", "float"])
def test_repeats_are_arrays_of_integers(repeats: object) -> None:
    with pytest.raises(TypeError):
        jnp.repeat(jnp.arange(2), repeats)


def test_scalar_types_need_a_value() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        jnp.float32()


def test_mantissas_have_the_power_as_derivative() -> None:
    slopes = polyax.grad(lambda x: jnp.frexp(x)[0].sum())(jnp.array([1.0, 5.0, -0.25]))
    assert slopes.tolist() == [0.5, 0.125, 2.0]


def test_ldexp_leaves_what_is_not_finite() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0], np.float16)
    np.testing.assert_array_equal(jnp.ldexp(x, -1000), x)


def test_interpolation_between_complex_numbers() -> None:
    assert complex(jnp.interp(1.5, jnp.array([1.0, 2.0]), jnp.array([1j, 2.0]))) == 1 + 0.5j
    with pytest.raises(ValueError, match="complex x values not supported"):
        jnp.interp(1j, jnp.array([1.0, 2.0]), jnp.array([1j, 2.0]))


def test_differences_take_the_dtype_of_what_is_joined() -> None:
    joined = jnp.diff(jnp.arange(3), prepend=0.5)
    assert joined.dtype == np.float32
    assert joined.tolist() == [-0.5, 1.0, 1.0]


def test_weights_of_histograms_count_as_floats() -> None:
    counts, _, _ = jnp.histogram2d(jnp.arange(4), jnp.arange(4), bins=2, weights=jnp.arange(4))
    assert counts.dtype == np.float32
    with pytest.raises(ValueError, match="a bin for each dimension"):
        jnp.histogram2d(jnp.arange(4), jnp.arange(4), bins=[2])


def test_empty_like_is_as_weak_as_its_prototype() -> None:
    assert jnp.empty_like(2.0).weak_type


def test_lists_are_compared_as_arrays() -> None:
    assert jnp.array_equal([1, 2], [1, 2])
    assert not jnp.array_equal([1, 2], [1, 2, 3])
    assert jnp.array_equiv([1, 2], [[1, 2], [1, 2]])


def test_keys_and_infinite_tolerances_are_close() -> None:
    assert jnp.isclose(polyax.random.key(0), polyax.random.key(0))
    assert jnp.isclose(np.inf, 1.0, rtol=np.inf)
    assert not jnp.isclose(1.0, np.inf, rtol=np.inf)


def test_astype_copies_where_asked() -> None:
    x = jnp.arange(3)
    x.astype(x.dtype, copy=True).delete()
    assert not x.is_deleted()


def test_host_arrays_are_converted_as_those_of_devices() -> None:
    x = np.array([1e10, -1e10, np.nan], np.float32)
    np.testing.assert_array_equal(jnp.astype(x, "int32"), jnp.asarray(x).astype("int32"))


def test_choices_are_integers() -> None:
    with pytest.raises(ValueError, match="must be integer typed"):
        jnp.choose(jnp.array([0.0]), [1], mode="clip")


def test_positions_may_be_complex() -> None:
    """In kernels as well, though these count in real numbers."""
    found = polyax.lax.broadcasted_iota(np.complex64, (2, 3), 1)
    np.testing.assert_array_equal(found, np.array([[0, 1, 2]] * 2, np.complex64), strict=True)
