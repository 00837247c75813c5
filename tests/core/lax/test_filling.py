"""What scalars become in arrays of another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax.numpy as jnp
from polyax import lax


@pytest.mark.parametrize("full", [lax.full, jnp.full])
def test_floats_become_integers_as_devices_make_them(full: Any) -> None:
    want = {np.nan: 0, np.inf: 2147483647, -np.inf: -2147483648, 1e50: 2147483647, -3.7: -3}
    assert {x: full((), x, np.int32).item() for x in want} == want
    assert [full((), x, np.uint8).item() for x in (-3.7, 300.5, np.nan)] == [0, 255, 0]
    assert full((), 300, np.uint8) == 44


REFUSED: dict[str, Any] = {
    "lax.full": lambda: lax.full((), 1j, np.float32),
    "lax.full_like": lambda: lax.full_like(np.ones(2, np.int32), 1j),
    "jnp.full": lambda: jnp.full((2,), 1j, np.uint8),
    "convert_element_type": lambda: lax.convert_element_type(1j, np.float32),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=list(REFUSED))
def test_real_arrays_hold_no_complex_numbers(call: Any) -> None:
    with pytest.raises(TypeError, match="can't hold the complex number 1j"):
        call()


def test_what_is_not_zero_is_true() -> None:
    assert jnp.array([1j, 0, 1]).astype(bool).tolist() == [True, False, True]
    assert jnp.full((), 1j, bool).item() is True
    assert not jnp.asarray(1.0).astype(bool).weak_type
