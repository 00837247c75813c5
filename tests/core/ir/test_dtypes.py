"""The promotion lattice against JAX's documented table, and canonical types."""

import itertools

import numpy as np
import pytest

from polyax.ir import dtypes
from polyax.ir.config import config

NAMES = ["bool", "uint8", "uint16", "uint32", "int8", "int16", "int32", "bfloat16", "float16", "float32", "complex64"]
# "JAX Type Promotion Semantics", the table of binary promotion, 64-bit columns left out
TABLE = """
b1 u1 u2 u4 i1 i2 i4 bf f2 f4 c4
u1 u1 u2 u4 i2 i2 i4 bf f2 f4 c4
u2 u2 u2 u4 i4 i4 i4 bf f2 f4 c4
u4 u4 u4 u4 i8 i8 i8 bf f2 f4 c4
i1 i2 i4 i8 i1 i2 i4 bf f2 f4 c4
i2 i2 i4 i8 i2 i2 i4 bf f2 f4 c4
i4 i4 i4 i8 i4 i4 i4 bf f2 f4 c4
bf bf bf bf bf bf bf bf f4 f4 c4
f2 f2 f2 f2 f2 f2 f2 f4 f2 f4 c4
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 c4
c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4
"""
SHORT = {"b1": "bool", "bf": "bfloat16", "f2": "float16", "f4": "float32", "c4": "complex64"}


def _dtype(short: str) -> np.dtype:
    name = SHORT.get(short) or {"u": "uint", "i": "int"}[short[0]] + str(8 * int(short[1]))
    return dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


def _named(name: str) -> np.dtype:
    return dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


def test_promotion_is_the_documented_table():
    rows = [line.split() for line in TABLE.split("\n") if line]
    with config.override(enable_x64=True):
        for (i, a), (j, b) in itertools.product(enumerate(NAMES), repeat=2):
            assert dtypes.promote_types(_named(a), _named(b)) == _dtype(rows[i][j]), (a, b)


def test_promotion_without_64_bit_types():
    assert dtypes.promote_types("uint32", "int32") == np.dtype("int32")


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([("int32", False), ("float64", True)], ("float32", True)),
        ([("float32", False), ("int32", True)], ("float32", False)),
        ([("bfloat16", False), ("float32", True)], ("bfloat16", False)),
        ([("int32", True), ("bool", False)], ("int32", True)),
        ([("float32", True), ("float32", True)], ("float32", True)),
        ([("uint8", False), ("int32", True)], ("uint8", False)),
        ([("complex64", True), ("float16", False)], ("complex64", False)),
    ],
)
def test_weak_types(types, expected):
    dtype, weak = dtypes.promote_weak(*((_named(n), w) for n, w in types))
    assert (dtype.name, weak) == expected


@pytest.mark.parametrize("spelling", [float, "f8", np.float64, np.dtype("float64"), "float64"])
def test_canonical_types_follow_the_setting(spelling):
    assert dtypes.canonicalize(spelling) == np.float32
    with config.override(enable_x64=True):
        assert dtypes.canonicalize(spelling) == np.float64


def test_unsupported_dtype_is_named():
    with pytest.raises(TypeError, match="does not support dtype.*U3"):
        dtypes.canonicalize("U3")


def test_short_names():
    names = ["bool", "int32", "uint8", "bfloat16", "float32", "complex64"]
    assert [dtypes.short_name(_named(n)) for n in names] == ["bool", "i32", "u8", "bf16", "f32", "c64"]


def test_strict_promotion_refuses_and_names_both():
    with config.override(numpy_dtype_promotion="strict"), pytest.raises(TypeError, match="float32, int32"):
        dtypes.promote_weak((np.dtype("int32"), False), (np.dtype("float32"), False))
