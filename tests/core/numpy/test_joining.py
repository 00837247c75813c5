"""Sequences of other kinds whose arrays are joined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import polyax.numpy as jnp


class Blocks:
    """Arrays of its own, which can be gone through."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, n: int) -> Any:
        return self.arrays[n]


class Bag(Blocks):
    def __iter__(self) -> Iterator[Any]:
        return iter(self.arrays)


JOINS = ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "concat"]


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("kind", [Blocks, Bag, lambda *arrays: dict(enumerate(arrays)).values()])
def test_what_can_be_gone_through_is_joined(name: str, kind: Any) -> None:
    arrays = [jnp.arange(3.0), jnp.ones(3)]
    np.testing.assert_array_equal(getattr(jnp, name)(kind(*arrays)), getattr(np, name)([*map(np.asarray, arrays)]))


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("given", [None, 3.0, iter([np.ones(2)])])
def test_other_things_are_no_sequences(name: str, given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        getattr(jnp, name)(given)
