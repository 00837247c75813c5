"""``ds`` as an index of arrays: read, written, mixed with other entries, out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import ds

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Index = Callable[[int], Any]
READ: dict[str, tuple[Index, Any]] = {
    "rows": (lambda i: ds(i, 2), X[1:]),
    "both": (lambda i: (ds(i, 2), ds(0, 3)), X[1:, :3]),
    "with a new axis": (lambda i: (ds(i, 2), None), X[1:, None]),
    "with a number": (lambda i: (ds(i, 2), 0), X[1:, 0]),
    "behind a number": (lambda i: (0, ds(i, 2)), X[0, 1:3]),
    "behind dots": (lambda i: (..., ds(i, 2)), X[:, 1:3]),
    "before an array": (lambda i: (ds(i, 2), np.array([0, 2])), X[1:, [0, 2]]),
    "behind an array": (lambda i: (np.array([0, 1]), ds(i, 2)), X[:2, 1:3]),
    "before a slice": (lambda i: (ds(i, 2), slice(None, None, -1)), X[1:, ::-1]),
    "steps": (lambda i: (slice(None), ds(i, 2, 2)), X[:, 1::2]),
    "steps too far": (lambda i: (slice(None), ds(i + 2, 2, 2)), X[:, [3, 3]]),
    "too far": (lambda i: ds(i + 1, 2), X[1:]),
    "from the end": (lambda i: ds(i - 2, 1), X[2:]),
    "before the beginning": (lambda i: ds(i - 6, 2), X[:2]),
    "nothing": (lambda i: ds(i, 0), X[:0]),
}


@pytest.mark.parametrize("name", READ)
def test_read(name: str) -> None:
    index, expected = READ[name]
    for found in (jnp.asarray(X)[index(1)], jax.jit(lambda x, i: x[index(i)])(X, 1), jnp.asarray(X).at[index(1)].get()):
        np.testing.assert_array_equal(found, expected)


WRITTEN: dict[str, tuple[Index, Any]] = {
    "rows": (lambda i: ds(i, 2), np.s_[1:]),
    "both": (lambda i: (ds(i, 2), ds(0, 3)), np.s_[1:, :3]),
    "with a number": (lambda i: (ds(i, 2), 0), np.s_[1:, 0]),
    "with an array": (lambda i: (ds(i, 2), np.array([0, 2])), np.s_[1:, ::2]),
    "steps": (lambda i: (slice(None), ds(i, 2, 2)), np.s_[:, 1::2]),
    "too far": (lambda i: ds(i + 1, 2), np.s_[:0]),
    "longer": (lambda i: ds(i, 7), np.s_[:0]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    index, where = WRITTEN[name]
    changes = {
        "set": lambda v: 5.0,
        "add": lambda v: v + 5,
        "multiply": lambda v: v * 5,
        "min": lambda v: v.clip(max=5),
    }
    for method, change in changes.items():
        expected = X.copy()
        expected[where] = change(expected[where])
        write = lambda x, i, method=method: getattr(x.at[index(i)], method)(5.0)
        np.testing.assert_array_equal(write(jnp.asarray(X), 1), expected)
        np.testing.assert_array_equal(jax.jit(write)(X, 1), expected)


def test_derivatives_and_maps() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(jax.grad(lambda v: (v[ds(1, 2)] ** 2).sum())(x), np.r_[np.zeros((1, 4)), 2 * X[1:]])
    assert jax.vmap(lambda i: x[ds(i, 2)])(jnp.arange(2)).tolist() == [X[:2].tolist(), X[1:].tolist()]
    assert jnp.arange(4).at[ds(1, 2)].set(7).tolist() == [0, 7, 7, 3]


def test_what_it_is() -> None:
    assert repr(ds(1, 2)) == "Slice(start=1, size=2, stride=1)" and ds(3) == ds(0, 3) and ds(None) == slice(None)
    for error, call, text in (
        (TypeError, lambda: ds(1, -2), "size must be greater than or equal to zero, got -2"),
        (TypeError, lambda: ds(1, 2.5), "'float' object"),
        (ValueError, lambda: ds("a"), "a single argument is the size"),
        (TypeError, lambda: jnp.asarray(X)[ds("a", 2)], "start must be an integer, got 'a'"),
        (TypeError, lambda: jnp.asarray(X)[ds(0.5, 2)], "start must be an integer, got 0.5"),
        (IndexError, lambda: jnp.asarray(X)[0, 0, ds(0, 1)], "Too many indices: array is 2-dimensional"),
        (TypeError, lambda: jnp.asarray(X)[ds(0, 5)], "slice_sizes"),
    ):
        with pytest.raises(error, match=text):
            call()
