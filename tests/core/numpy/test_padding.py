"""Padding against NumPy: what is reflected oddly, statistics of a few elements, functions."""

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

VECTOR = np.arange(5.0, dtype=np.float32) ** 2
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2


@pytest.mark.parametrize("x", [VECTOR, MATRIX], ids=["vector", "matrix"])
@pytest.mark.parametrize("width", [2, 9, (3, 0)], ids=str)
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_odd_reflections_are_turned_around_the_edge(mode, width, x):
    expected = np.pad(x.astype(np.float64), width, mode, reflect_type="odd")
    np.testing.assert_allclose(jnp.pad(x, width, mode, reflect_type="odd"), expected, rtol=1e-5)


@pytest.mark.parametrize("lengths", [2, ((1, 2), (3, 9)), None], ids=str)
@pytest.mark.parametrize("mode", ["maximum", "mean", "median", "minimum"])
@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_statistics_of_the_elements_at_the_ends(kind, mode, lengths):
    x = MATRIX.astype(kind)
    given = jnp.pad(x, ((1, 2), (2, 0)), mode, stat_length=lengths)
    assert given.dtype == kind
    np.testing.assert_allclose(given, np.pad(x, ((1, 2), (2, 0)), mode, stat_length=lengths), rtol=1e-6)


def test_a_function_gets_each_line_with_its_widths_axis_and_other_arguments():
    def ours(line, widths, axis, given):
        return line.at[: widths[0]].set(given["value"] + axis)

    def numpys(line, widths, axis, given):
        line[: widths[0]] = given["value"] + axis

    np.testing.assert_array_equal(jnp.pad(MATRIX, 2, ours, value=7), np.pad(MATRIX, 2, numpys, value=7))


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"mode": "reflect", "reflect_type": "strange"}, ValueError),
        ({"mode": "mean", "stat_length": 0}, ValueError),
        ({"mode": "edge", "stat_length": 2}, ValueError),
        ({"mode": "strange"}, NotImplementedError),
    ],
    ids=str,
)
def test_bad_options(kwargs, error):
    with pytest.raises(error):
        jnp.pad(VECTOR, 1, **kwargs)


@pytest.mark.parametrize(
    ("width", "error", "words"),
    [
        (((1, 2, 3),), ValueError, r"pad_width with nd=2 has unsupported shape \(1, 3\). Valid shapes are \(2, 2\)"),
        ((1, 2, 3), ValueError, r"unsupported shape \(3,\)"),
        (((1,), (2,)), ValueError, r"unsupported shape \(2, 1\)"),
        ((), ValueError, r"unsupported shape \(0,\)"),
        (((1,), (1, 2)), TypeError, "`pad_width` entries must be the same shape"),
        (1.5, TypeError, "`pad_width` must be of integral type"),
    ],
    ids=str,
)
def test_widths_of_no_shape_that_means_something(width, error, words):
    with pytest.raises(error, match=words):
        jnp.pad(MATRIX, width)


@pytest.mark.parametrize(("mode", "option"), [("linear_ramp", "end_values"), ("mean", "stat_length")])
def test_options_of_no_shape_that_means_something(mode, option):
    with pytest.raises(ValueError, match=rf"jnp.pad: {option} with nd=2 has unsupported shape \(3,\)"):
        jnp.pad(MATRIX, 1, mode, **{option: (1, 2, 3)})


@pytest.mark.parametrize("values", [((1, 2), (3, 4)), (7, 8), ((7, 8),), (7,)], ids=str)
def test_constants_of_each_end(values):
    expected = np.pad(MATRIX, 1, constant_values=values)
    np.testing.assert_array_equal(jnp.pad(MATRIX, 1, constant_values=values), expected)
    traced = polyax.jit(lambda v: jnp.pad(MATRIX, 1, constant_values=v))(np.float32(values))
    np.testing.assert_array_equal(traced, expected)


def test_constants_are_converted_as_arrays_are():
    assert jnp.pad(np.uint32([3]), 1, constant_values=np.float32([0.5, -2])).tolist() == [0, 3, 0]
    with pytest.raises(ValueError, match=r"constant_values has unsupported shape \(3,\)"):
        jnp.pad(MATRIX, 1, constant_values=(7, 8, 9))
