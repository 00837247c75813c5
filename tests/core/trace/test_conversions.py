"""Python's conversions of traced arrays: what the shape or dtype forbids is told first, as of arrays."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import polyax
import polyax.numpy as jnp

SEVERAL, NONE, ONE, FLOAT = jnp.arange(3), jnp.arange(0), jnp.int32(1), jnp.float32(1)
CASES: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "an index of several": (operator.index, SEVERAL, TypeError, "^Only integer scalar arrays"),
    "an index of a float": (operator.index, FLOAT, TypeError, "^Only integer scalar arrays"),
    "a hexadecimal number of several": (hex, SEVERAL, TypeError, "^Only integer scalar arrays"),
    "an int of several": (
        int,
        SEVERAL,
        TypeError,
        "^Only scalar arrays can be converted to Python scalars; got arr.ndim=1",
    ),
    "a float of several": (float, SEVERAL, TypeError, "^Only scalar arrays"),
    "a complex of none": (complex, NONE, TypeError, "^Only scalar arrays"),
    "a bool of several": (bool, SEVERAL, ValueError, "with more than one element is ambiguous"),
    "a bool of none": (bool, NONE, ValueError, "of an empty array is ambiguous"),
}


@pytest.mark.parametrize("case", CASES)
def test_arrays_and_tracers_refuse_alike(case: str) -> None:
    convert, x, error, message = CASES[case]
    for f in (convert, polyax.jit(convert)):
        with pytest.raises(error, match=message):
            f(x)


@pytest.mark.parametrize("convert", [operator.index, int, float, bool])
def test_one_number_needs_its_value(convert: Any) -> None:
    assert convert(ONE) == 1
    with pytest.raises((polyax.errors.ConcretizationTypeError, polyax.errors.TracerIntegerConversionError)):
        polyax.jit(convert)(ONE)
