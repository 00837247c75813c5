"""Operations that are atomic on GPUs, and names of kernels for one maker's devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.experimental import pallas as pl
from polyax.experimental.pallas import tpu, triton

ROWS = np.random.default_rng(0).integers(0, 50, (3, 4)).astype(np.int32)
COMBINED = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "xchg": lambda _, new: new,
}  # fmt: skip


@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("masked", [False, True])
def test_each_place_adds_to_what_the_ones_before_left(name: str, masked: bool) -> None:
    mask = np.arange(4) % 2 == 0
    atomic = getattr(triton, f"atomic_{name}")

    def kernel(x: Any, _: Any, o: Any, before: Any) -> None:
        n = pl.program_id(0)
        before[n] = atomic(o, (slice(None),), x[n], mask=mask if masked else None)

    types = (jax.ShapeDtypeStruct((4,), np.int32), jax.ShapeDtypeStruct((3, 4), np.int32))
    found, seen = pl.pallas_call(kernel, types, grid=3, input_output_aliases={1: 0})(ROWS, jnp.full(4, 20))
    wanted, before = np.full(4, 20, np.int32), []
    for row in ROWS:
        before.append(wanted)
        new = COMBINED[name](wanted, row)
        wanted = np.where(mask, new, wanted) if masked else new
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(seen, before)


def test_what_is_added_in_one_place_adds_up() -> None:
    ref = jax.new_ref(jnp.zeros(4))
    triton.atomic_add(ref, jnp.array([3, 1, 3]), jnp.array([7.0, 1.0, 33.0]), mask=jnp.array([True, False, True]))
    assert ref[...].tolist() == [0, 0, 0, 40]


@pytest.mark.parametrize(("name", "wanted"), [("max", [5, 0, 0, 7]), ("min", [-2, 0, 0, -9])])
def test_extrema_in_one_place_are_those_of_all(name: str, wanted: list[int]) -> None:
    ref, atomic = jax.new_ref(jnp.zeros(4)), getattr(triton, f"atomic_{name}")
    places, mask = jnp.array([3, 0, 3, 0, 3]), jnp.array([True, True, True, True, False])
    atomic(ref, places, jnp.array([7.0, 5.0, -9.0, -2.0, 99.0 if name == "max" else -99.0]), mask=mask)
    assert ref[...].tolist() == wanted


@pytest.mark.parametrize(("name", "masked"), [("and", False), ("or", True), ("xor", False), ("xchg", True)])
def test_what_is_not_combined_in_one_place_is_refused(name: str, masked: bool) -> None:
    ref, places = jax.new_ref(jnp.arange(4)), jnp.array([1, 1])
    with pytest.raises(NotImplementedError, match=f"atomic_{name}.* at arrays of indices.*one by one, in a loop"):
        getattr(triton, f"atomic_{name}")(ref, places, 1, mask=jnp.array([True, False]) if masked else None)
    assert ref[...].tolist() == [0, 1, 2, 3]


def test_compare_and_swap() -> None:
    ref = jax.new_ref(1)
    assert triton.atomic_cas(ref, 0, 2) == 1 and ref[...] == 1
    assert triton.atomic_cas(ref, 1, 2) == 1 and ref[...] == 2
    assert triton.debug_barrier() is None and triton.max_contiguous(ref, 4) is ref


def test_loads_and_stores_with_masks() -> None:
    ref, mask = jax.new_ref(jnp.arange(3.0)), jnp.array([False, True, True])
    assert tpu.load(ref.at[1:], mask=mask[:2]).tolist() == [0, 2] and tpu.load(ref).tolist() == [0, 1, 2]
    tpu.store(ref, 9.0, mask=mask)
    assert ref[...].tolist() == [0, 9, 9]


def test_the_product_has_moved() -> None:
    x = jnp.arange(6, dtype="int8").reshape(2, 3)
    with pytest.warns(DeprecationWarning, match="dot was moved to polyax.experimental.pallas.triton"):
        product = pl.__getattr__("dot")
    assert product is triton.dot and product(x, x, trans_b=True).tolist() == [[5, 14], [14, 50]]
