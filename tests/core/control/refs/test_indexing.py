"""What indices of references mean, against NumPy's arrays, which change as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.errors import NonConcreteBooleanIndexError

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
ROWS, TABLE = np.array([1, 0]), np.array([[0, 2, 1], [2, 2, 0]])
INDICES: dict[str, Any] = {
    "all": ...,
    "nothing": (),
    "a row": 1,
    "from the end": -1,
    "an element": (1, 2, 3),
    "behind dots": (..., 1),
    "a slice": (slice(None), slice(1, 3)),
    "a slice from the end": (0, slice(-2, None)),
    "every other": (slice(None), slice(0, 3, 2), slice(1, None, 2)),
    "nothing in it": (slice(1, 1),),
    "rows": ROWS,
    "columns": (slice(None), slice(None), ROWS),
    "a table": (0, TABLE),
    "side by side": (slice(None), TABLE, TABLE),
    "apart": (ROWS, slice(None), ROWS),
    "a number apart": (0, slice(None), ROWS),
    "rows of a slice": (slice(0, 1), ROWS[:, None], slice(0, 4, 3)),
    "of every other": (slice(None), ROWS, slice(0, 4, 2)),
    "a mask": (X[:, 0, 0] > 3,),
    "a mask behind": (slice(None), np.array([True, False, True])),
    "NumPy's integer": (np.int64(1), np.int32(2)),
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", INDICES)
def test_as_in_numpy(name: str, jitted: bool) -> None:
    index, want = INDICES[name], X.copy()
    there = want[index]
    new = np.arange(there.size, dtype=np.float32).reshape(there.shape) + 100

    def steps(ref: Any) -> Any:
        read = ref[index]
        ref[index] = new
        jax.ref.addupdate(ref, index, new)
        return read, jax.ref.swap(ref, index, new * 3)

    ref = jax.new_ref(X)
    read, old = (jax.jit(steps) if jitted else steps)(ref)
    np.testing.assert_array_equal(read, there)
    want[index] = new
    np.add.at(want, index, new)
    np.testing.assert_array_equal(old, want[index])
    want[index] = new * 3
    np.testing.assert_array_equal(ref[...], want)


@pytest.mark.parametrize("at", [0, 2, -1, 7])
def test_computed_places(at: int) -> None:
    """A place is clamped into the array; negative ones count from the end."""
    ref = jax.new_ref(X)
    place = min(at, 2) if at >= 0 else at + 3
    np.testing.assert_array_equal(jax.jit(lambda i: ref[:, i])(at), X[:, place])
    jax.jit(lambda i: ref.__setitem__((0, i), jnp.zeros(4)))(at)
    assert ref[0, place].sum() == 0 and ref[...].sum() == X.sum() - X[0, place].sum()


@pytest.mark.parametrize("start", [0, 1, 5])
def test_computed_slices(start: int) -> None:
    ref = jax.new_ref(np.arange(8.0))

    @jax.jit
    def step(i):
        ref[jax.ds(i, 2, 2)] = ref[jax.ds(i, 2, 2)] * 10

    step(start)
    want = np.arange(8.0)
    want[start : start + 3 : 2] *= 10
    np.testing.assert_array_equal(ref[...], want)


def test_places_out_of_bounds_of_computed_arrays() -> None:
    ref = jax.new_ref(jnp.arange(3.0))
    assert ref[jnp.array([5, -1])].tolist() == [2.0, 2.0]
    ref[jnp.array([5, 0])] = jnp.array([9.0, 8.0])
    assert ref[...].tolist() == [8.0, 1.0, 2.0]


def test_views_of_views() -> None:
    ref = jax.new_ref(X)
    view = ref.at[1].at[1:]
    assert (view.shape, view.dtype, view.ndim) == ((2, 4), np.float32, 2)
    np.testing.assert_array_equal(view[0], X[1, 1])
    view[1, ::2] = jnp.zeros(2)
    want = X.copy()
    want[1, 2, ::2] = 0
    np.testing.assert_array_equal(ref[...], want)
    jax.ref.addupdate(ref.at[0], (0, 0), 5.0)
    assert ref[0, 0, 0] == 5.0


BAD = {
    "too many": ((0, 0, 0, 0), ValueError, r"`indices` must not be longer than `shape`: indices=\(0, 0, 0, 0\)"),
    "out of bounds": (2, ValueError, "Out of bound indexer: idx=2, dim=2."),
    "far from the end": ((0, -4), ValueError, "Out of bound indexer: idx=-4, dim=3."),
    "backwards": (slice(None, None, -1), ValueError, r"slice must have a step >= 1 \(found: -1\)"),
    "a float": (1.5, TypeError, "Indexer must have integer or boolean type, got indexer with type float32"),
    "a word": ("a", TypeError, "not a valid JAX type"),
    "a new axis": (None, IndexError, "read it first"),
    "two dots": ((..., ...), ValueError, "Only one ellipsis"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_indices(name: str) -> None:
    index, kind, text = BAD[name]
    ref = jax.new_ref(X)
    with pytest.raises(kind, match=text):
        ref[(index,) if index is None else index]
    with pytest.raises(kind, match=text):
        ref[(index,) if index is None else index] = 1.0


def test_masks_have_to_be_known() -> None:
    ref = jax.new_ref(jnp.arange(3.0))
    with pytest.raises(NonConcreteBooleanIndexError, match=r"got bool\[3\]"):
        jax.jit(lambda m: ref[m])(jnp.array([True, False, True]))
