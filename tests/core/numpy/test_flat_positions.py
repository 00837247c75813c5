"""``unravel_index`` and ``ravel_multi_index``, in the dtypes of their positions."""

from __future__ import annotations

import numpy as np
import pytest

import polyax.numpy as jnp

PAIR = np.array([0, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_positions_keep_their_dtype(dtype: type) -> None:
    row, column = jnp.unravel_index(np.array([0, 7, 120], dtype), (20, 15))
    assert row.dtype == column.dtype == dtype
    assert (row.tolist(), column.tolist()) == ([0, 0, 8], [0, 7, 0])
    flat = jnp.ravel_multi_index((PAIR.astype(dtype),) * 2, (2, 3))
    assert (flat.dtype, flat.tolist()) == (dtype, [0, 4])


def test_positions_out_of_range_are_clipped() -> None:
    assert [x.tolist() for x in jnp.unravel_index(np.array([-1, -99, 99], np.int8), (2, 3))] == [[1, 0, 1], [2, 0, 2]]


def test_modes_and_dtype() -> None:
    assert int(jnp.ravel_multi_index((3, -1), (2, 3), mode="clip")) == 3
    assert int(jnp.ravel_multi_index((3, -1), (2, 3), mode="wrap", order="F")) == 5
    assert int(jnp.ravel_multi_index((3, -1), (2, 3), mode="ignore")) == 8
    flat = jnp.ravel_multi_index((PAIR, PAIR), (2, 3), dtype=np.int16)
    assert flat.dtype == np.int16
    assert not flat.weak_type


REFUSED = [
    ((PAIR, PAIR), (2, 3), {"order": "X"}, ValueError, "invalid order"),
    ((PAIR, PAIR), (2, 3), {"mode": "x"}, ValueError, "invalid mode"),
    ((PAIR * 1.0, PAIR), (2, 3), {}, ValueError, "only int indices"),
    ((PAIR, PAIR), (2, 3), {"dtype": np.float32}, ValueError, "not an integer type"),
    ((PAIR.astype(np.int8), PAIR.astype(np.int8)), (20, 30), {}, ValueError, "not large enough"),
    ((PAIR, PAIR, PAIR), (2, 3), {}, AssertionError, "len"),
]


@pytest.mark.parametrize(("places", "dims", "options", "error", "why"), REFUSED, ids=[r[-1] for r in REFUSED])
def test_refusals(places: tuple, dims: tuple, options: dict, error: type, why: str) -> None:
    with pytest.raises(error, match=why):
        jnp.ravel_multi_index(places, dims, **options)
