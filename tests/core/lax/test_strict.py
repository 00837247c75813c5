"""Operands that must have one dtype: Python scalars have their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax

HALF, SINGLE, WHOLE = (np.ones(3, d) for d in (np.float16, np.float32, np.int32))

REFUSED = {
    "two scalars": (lambda: lax.add(1, 2.0), "lax.add requires arguments to have the same dtypes, got int32, float32."),
    "an integer beside floats": (lambda: lax.mul(SINGLE, 2), "got float32, int32"),
    "a float beside narrower ones": (lambda: lax.mul(HALF, 0.5), "got float16, float32"),
    "a boolean beside integers": (lambda: lax.bitwise_and(WHOLE, True), "lax.and .* got int32, bool"),
    "by keyword": (lambda: lax.sub(x=1, y=SINGLE), "got int32, float32"),
    "comparisons": (lambda: lax.lt(WHOLE, 0.5), "jnp.less is a similar function"),
    "bounds": (lambda: lax.clamp(0, SINGLE, 1), "lax.clamp .* got int32, float32, int32"),
    "cases": (lambda: lax.select(True, 1, 2.0), "lax.select.* got float32, int32"),
    "padding": (lambda: lax.pad(SINGLE, 0, [(1, 1, 0)]), "must be same dtype: got float32 and int32"),
    "exponents": (lambda: lax.pow(HALF, 0.5), "lax.pow .* got float16, float32"),
    "special functions": (lambda: lax.polygamma(1, SINGLE), "polygamma does not accept dtype int32 at position 0"),
}


@pytest.mark.parametrize(("call", "text"), REFUSED.values(), ids=REFUSED)
def test_python_scalars_have_a_dtype_of_their_own(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_python_scalars_of_the_same_dtype_are_weak_beside_arrays() -> None:
    made = [lax.add(1, 2), lax.add(SINGLE, 1.0), lax.max(2.0, polyax.numpy.asarray(1.0)), lax.pow(2.0, 0.5)]
    assert [(x.dtype.name, x.weak_type) for x in made] == [
        ("int32", True), ("float32", False), ("float32", True), ("float32", True)
    ]  # fmt: skip


def test_exponents_may_be_integers() -> None:
    assert lax.pow(2.0, np.array([1, 3])).tolist() == [2.0, 8.0]
    assert lax.pow(HALF, 2).dtype == np.float16


def test_products_in_another_dtype_take_any() -> None:
    assert lax.mul(WHOLE, 2, out_dtype=np.float32).dtype == np.float32


def test_dtypes_are_those_of_the_setting() -> None:
    with polyax.enable_x64(True), pytest.raises(TypeError, match="got float32, float64"):
        lax.add(SINGLE, 1.0)


def test_imaginary_parts_are_dropped_with_a_warning():
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        assert lax.convert_element_type(np.array([1 + 1j]), "float32").tolist() == [1]
    with pytest.warns(np.exceptions.ComplexWarning):
        assert lax.convert_element_type(np.array([1j, 1 + 1j]), bool).tolist() == [False, True]
