"""Pytrees as vectors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.flatten_util import ravel_pytree


def test_there_and_back() -> None:
    tree = {"w": jnp.arange(6.0).reshape(2, 3), "n": jnp.int32(7), "none": None}
    flat, unravel = ravel_pytree(tree)
    assert flat.dtype == np.float32 and flat.tolist() == [7, 0, 1, 2, 3, 4, 5]
    back = unravel(flat)
    assert back["n"].dtype == np.int32 and back["none"] is None
    np.testing.assert_array_equal(back["w"], tree["w"])


def test_under_transformations() -> None:
    flat, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    assert polyax.grad(lambda v: (unravel(v)["a"] * unravel(v)["b"]).sum())(flat).tolist() == [3, 3, 2]
    assert polyax.jit(lambda t: ravel_pytree(t)[0])({"a": jnp.ones(2), "b": 3.0}).tolist() == [1, 1, 3]
    assert ravel_pytree([])[0].shape == (0,)


def test_mixed_leaves_make_no_weak_vector() -> None:
    assert not ravel_pytree([2, 3.0])[0].weak_type and ravel_pytree([2.0, 3.0])[0].weak_type


def test_leaves_of_one_dtype_take_that_of_the_vector() -> None:
    flat, unravel = ravel_pytree([jnp.ones(2), jnp.ones(())])
    assert unravel(flat.astype(jnp.bfloat16))[0].dtype == jnp.bfloat16


def test_vectors_that_do_not_fit() -> None:
    _, unravel = ravel_pytree([jnp.ones(2), 1])
    with pytest.raises(ValueError, match=r"shape \(2,\), but expected \(3,\)"):
        unravel(jnp.ones(2))
    with pytest.raises(TypeError, match=r"dtype int32, but expected dtype float32.*int32\[3\]"):
        unravel(jnp.ones(3, int))


def test_the_way_back_is_a_static_argument() -> None:
    traced: list[int] = []

    @functools.partial(polyax.jit, static_argnums=1)
    def f(flat: Any, unravel: Any) -> Any:
        traced.append(0)
        return unravel(flat)

    for n in (1, 2):
        assert f(*ravel_pytree((jnp.full(2, n), n)))[1] == n
    f(*ravel_pytree((jnp.ones(2), 1)))
    assert len(traced) == 2
