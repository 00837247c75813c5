"""Reading an array at one position after the other compiles once, not once for each position."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.runtime.running import dispatch


@pytest.mark.parametrize(
    "rows", [lambda i: i, lambda i: slice(i, i + 3), lambda i: (slice(None), slice(i % 3, i % 3 + 1))]
)
def test_all_positions_share_a_program(rows) -> None:
    x = jnp.arange(80.0).reshape(16, 5)
    x[rows(1)]
    before = len(dispatch._eager)
    for i in range(2, 12):
        np.testing.assert_array_equal(x[rows(i)], np.asarray(x)[rows(i)])
    assert len(dispatch._eager) == before


def test_traced_programs_keep_static_slices() -> None:
    assert "dynamic" not in str(jax.make_jaxpr(lambda x: x[3, 1:2])(jnp.ones((4, 5))))


def test_iteration_cuts_rows_on_the_host(platform):
    x = jnp.arange(6, dtype=jnp.float32).reshape(3, 2)
    rows = list(x)
    assert [r.tolist() for r in rows] == [[0, 1], [2, 3], [4, 5]]
    assert [r.tolist() for r in reversed(x)] == [[4, 5], [2, 3], [0, 1]]
    assert {r.device for r in rows} == {x.device}
    assert [int(v) for v in jnp.arange(3)] == [0, 1, 2]
    assert next(iter(jnp.asarray([1, 2]) * 1)).dtype == jnp.int32


def test_iteration_over_a_scalar_is_an_error():
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(jnp.float32(1))
