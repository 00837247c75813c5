"""``preferred_element_type``: which dtypes are refused, and what the others answer."""

from __future__ import annotations

import numpy as np
import pytest

import polyax.numpy as jnp
from polyax import lax
from polyax.ir.dtypes import as_dtype, bfloat16

DOTS = [
    ("float32", "bfloat16"), ("float32", "float16"), ("float32", "int32"), ("float16", "int8"), ("int8", "float16"),
    ("int32", "complex64"), ("int32", "float32"), ("bfloat16", "float32"), ("complex64", "float32"), ("bool", "int32"),
    ("bool", "complex64"), ("uint8", "int8"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "preferred"), DOTS)
def test_dots_answer_in_any_dtype_that_is_no_narrower(own: str, preferred: str) -> None:
    x = np.array([1, 2, 0], dtype=bfloat16 if own == "bfloat16" else own)
    answer = jnp.dot(x, x, preferred_element_type=preferred)
    assert answer.dtype.name == preferred
    assert complex(answer) == (2 if own == "bool" else 5)


@pytest.mark.parametrize(("own", "preferred"), [("int32", "int8"), ("int32", "float16"), ("complex64", "bfloat16")])
def test_dots_refuse_narrower_dtypes_but_of_floats(own: str, preferred: str) -> None:
    with pytest.raises(
        TypeError, match=f"must not be narrower than the original type; got {preferred} for {own}: convert"
    ):
        jnp.dot(np.ones(2, own), np.ones(2, own), preferred_element_type=preferred)


def test_sums_of_floats_are_rounded_once() -> None:
    x = np.full(1000, 1.0, np.float32)  # summed in bfloat16 they would end at 256
    assert float(jnp.dot(x, x, preferred_element_type="bfloat16")) == 1000.0


OF_TWO_TYPES = [
    ("int8", "uint8", "int32", -127, 200), ("uint8", "int8", "int32", 200, -127), ("int8", "uint8", "float32", -3, 255),
    ("float16", "bfloat16", "float32", 1.125, 1.001), ("float8_e5m2", "float8_e4m3fn", "float32", 1.5, 1.375),
    ("float8_e4m3fn", "float8_e5m2", "float32", 1.375, 40960.0),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "preferred", "a", "b"), OF_TWO_TYPES)
def test_numbers_of_two_types_are_multiplied_as_what_is_asked_for(
    left: str, right: str, preferred: str, a: float, b: float
) -> None:
    x, y = np.array([a], as_dtype(left)), np.array([b], as_dtype(right))
    want = np.dot(x.astype(preferred), y.astype(preferred))
    assert lax.dot(x, y, preferred_element_type=np.dtype(preferred)) == want


def test_of_narrow_floats_the_one_that_reaches_further_is_the_common_type() -> None:
    x, y = np.ones(2, as_dtype("float8_e4m3fn")), np.ones(2, as_dtype("float8_e5m2"))
    assert lax.dot(x, y).dtype == lax.dot(y, x).dtype == y.dtype


REFUSED = [
    ("float32", "bfloat16", "narrower"),
    ("float32", "int32", "Input type is incompatible"),
    ("int32", "complex64", "Input type is incompatible"),
    ("int8", "uint8", "same signedness"),
]


@pytest.mark.parametrize(("own", "preferred", "why"), REFUSED)
def test_convolutions_refuse_other_kinds(own: str, preferred: str, why: str) -> None:
    x = np.ones((1, 1, 3), own)
    with pytest.raises(TypeError, match=why):
        lax.conv_general_dilated(x, x, (1,), "VALID", preferred_element_type=preferred)


@pytest.mark.parametrize(("own", "preferred"), [("int8", "int8"), ("int8", "int32"), ("bool", "complex64")])
def test_convolutions_of_integers_stay_so_where_asked(own: str, preferred: str) -> None:
    x = np.ones(3, own)
    convolved = jnp.convolve(x, x, preferred_element_type=preferred)
    assert convolved.dtype.name == preferred
    expected = [1, 2, 3, 2, 1]
    assert np.asarray(convolved).real.tolist() == expected
