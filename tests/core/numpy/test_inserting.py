"""Slices deleted and inserted, at positions that are known or traced."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

ROWS = np.arange(6, dtype=np.int32).reshape(3, 2)
LINE = np.arange(6, dtype=np.int32)

POSITIONS = [2, -1, [1, 1, 5], [5, 0], [0]]


@pytest.mark.parametrize("positions", POSITIONS, ids=str)
@pytest.mark.parametrize("apply", [lambda f: f, polyax.jit], ids=["known", "traced"])
def test_insert_before_positions(positions: object, apply: object) -> None:
    places = np.array(positions)
    values = np.arange(10, 10 + max(places.size, 1), dtype=np.int32)
    inserted = apply(lambda x, at, v: jnp.insert(x, at, v))(LINE, places, values)  # type: ignore[operator]
    np.testing.assert_array_equal(inserted, np.insert(LINE, places, values))


def test_one_position_takes_all_slices() -> None:
    np.testing.assert_array_equal(
        jnp.insert(ROWS, 1, np.array([7, 8, 9]), axis=1), np.insert(ROWS, 1, np.array([7, 8, 9]), axis=1)
    )


def test_positions_beyond_the_ends_mean_the_ends() -> None:
    assert jnp.insert(jnp.arange(3), jnp.array([9, -9]), jnp.array([7, 8])).tolist() == [8, 0, 1, 2, 7]


@pytest.mark.parametrize("places", [True, np.array([True, False]), 1.5, np.array([[1, 2]])], ids=str)
def test_insert_refuses_positions_that_are_none(places: object) -> None:
    with pytest.raises(ValueError, match="integer typed|one-dimensional"):
        jnp.insert(jnp.arange(3), places, 1)


def test_insert_refuses_lists() -> None:
    with pytest.raises(TypeError, match="insert requires ndarray or scalar arguments"):
        jnp.insert(jnp.arange(3), [1, 2], 1)


@pytest.mark.parametrize("size", [2, 4])
def test_masks_of_delete_have_the_size_of_the_axis(size: int) -> None:
    with pytest.raises(ValueError, match=r"a mask must have shape \(3,\)"):
        jnp.delete(jnp.arange(3), np.ones(size, bool))


def test_delete_refuses_floats_and_what_is_out_of_bounds() -> None:
    with pytest.raises(ValueError, match="integers or bools, got float64"):
        jnp.delete(jnp.arange(3), 1.5)
    with pytest.raises(ValueError, match="index 3 is out of bounds for axis 0 with size 3"):
        jnp.delete(jnp.arange(3), 3)


def test_insert_keeps_the_type_of_the_array() -> None:
    weak = jnp.broadcast_to(jnp.asarray(2), (3,))
    assert jnp.insert(weak, 0, np.float16(3)).weak_type and jnp.insert(weak, np.array([0]), 3).weak_type
    assert not jnp.insert(LINE, 0, 3).weak_type


@pytest.mark.parametrize("apply", [lambda f: f, polyax.jit], ids=["known", "traced"])
@pytest.mark.parametrize("place", [1, np.array([1]), np.zeros(0, int)], ids=str)
def test_nothing_can_be_inserted(apply: object, place: object) -> None:
    got = apply(lambda x, at: jnp.insert(x, at, np.zeros(0, np.int32)))(LINE, place)  # type: ignore[operator]
    np.testing.assert_array_equal(got, LINE)
