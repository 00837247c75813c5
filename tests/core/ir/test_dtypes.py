"""The promotion lattice against JAX's documented table, and canonical types."""

import itertools
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
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
    wide = {
        ("bool", "int64"): "int64",
        ("int8", float): "float64",
        ("uint64", "int8"): "float64",
        (int, "int8"): "int8",
    }
    for pair, expected in wide.items():
        assert dtypes.promote_types(*pair) == np.dtype(expected) and jnp.result_type(*pair).itemsize <= 4


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
    with (
        config.override(numpy_dtype_promotion="strict"),
        pytest.raises(dtypes.TypePromotionError, match="'float32', 'int32'"),
    ):
        dtypes.promote_weak((np.dtype("int32"), False), (np.dtype("float32"), False))


NARROW = {**dtypes.NARROW_FLOATS, **dtypes.NARROW_INTS}


FEW = {"int1": [-1, -1, 0], "uint1": [1, 1, 0], "int2": [1, 1, 0], "uint2": [1, 1, 0]}
"""What they can hold."""


@pytest.mark.parametrize("name", NARROW)
def test_narrow_types_are_kept_and_converted(name: str) -> None:
    """Through every construct that moves values, and back."""
    dtype, kind = NARROW[name], getattr(jnp, name)
    numbers = np.float32(FEW.get(name, [1, 2, 1]))
    want = numbers.astype(dtype)
    x = jnp.asarray(numbers).astype(kind)
    assert x.dtype == dtype == np.dtype(kind) and x.nbytes == 3 and np.asarray(x).dtype == dtype
    for y in (jnp.array(numbers, kind), jnp.asarray(want), polyax.jit(lambda v: v)(x), polyax.device_put(want), +x[:]):
        np.testing.assert_array_equal(np.asarray(y).view("uint8"), want.view("uint8"))
    moved = polyax.jit(lambda v: jnp.concatenate([v[::-1], v.reshape(3, 1)[:, 0]]))(x)
    np.testing.assert_array_equal(moved.astype("float32"), np.concatenate([numbers[::-1], numbers]))
    _, rows = lax.scan(lambda c, v: (c, v.astype("int32")), 0, x)
    np.testing.assert_array_equal(rows, numbers)
    np.testing.assert_array_equal(polyax.vmap(lambda v: v.astype("float32") * 2)(x), numbers * 2)


def test_conversions_to_narrow_types() -> None:
    x = jnp.array([1.7, -3.2, -30, 30, np.nan])
    assert x.astype(jnp.int4).tolist() == [1, -3, -8, 7, 0] and x.astype(jnp.uint4).tolist() == [1, 0, 0, 15, 0]
    assert jnp.array([1, -3, 9]).astype(jnp.int4).astype("int32").tolist() == [1, -3, -7]
    assert float(jnp.float8_e4m3fn(1.3)) == 1.25 and jnp.full(2, 3, jnp.int4).tolist() == [3, 3]
    loss = lambda x: (x.astype(jnp.float8_e4m3fn).astype("float32") * 3).sum()
    assert polyax.grad(loss)(jnp.array([1.3, 2.0])).tolist() == [3, 3]


def test_promotion_of_narrow_types() -> None:
    assert jnp.promote_types(jnp.float8_e4m3fn, "int32") == jnp.float8_e4m3fn
    assert jnp.result_type(jnp.int4, 1) == jnp.int4 and jnp.promote_types(jnp.float8_e5m2, float) == jnp.float8_e5m2
    for pair in ((jnp.float8_e4m3fn, jnp.float16), (jnp.int4, jnp.int8), (jnp.float8_e5m2, jnp.float8_e4m3fn)):
        with pytest.raises(polyax.dtypes.TypePromotionError, match="no available implicit dtype promotion path"):
            jnp.promote_types(*pair)
    with polyax.numpy_dtype_promotion("strict"), pytest.raises(polyax.dtypes.TypePromotionError, match="=strict"):
        jnp.promote_types("int32", "float32")


@pytest.mark.parametrize("dtype", ["S", "U3", "M8[s]", object])
def test_no_promotion_of_what_is_no_number(dtype: object) -> None:
    with pytest.raises(ValueError, match=f"dtype={re.escape(repr(np.dtype(dtype)))} is not a valid dtype for JAX type"):
        jnp.promote_types("float32", dtype)


@pytest.mark.parametrize(("own", "number"), [(bool, 1), ("int8", 1.0), ("uint8", 1j), ("float32", 1j)])
def test_strictly_no_other_kind_of_number(own: Any, number: Any) -> None:
    x = jnp.ones(2, own)
    assert (x + number).shape == (2,)
    with polyax.numpy_dtype_promotion("strict"):
        assert (x + np.asarray(1, own)).dtype == own
        with pytest.raises(polyax.dtypes.TypePromotionError, match="=strict"):
            x + number
    with polyax.numpy_dtype_promotion("strict"):
        assert (jnp.ones(2) + 1).dtype == "float32" and (jnp.ones(2, "complex64") * 2.0).dtype == "complex64"


def test_kinds_of_narrow_types() -> None:
    for dtype, kind in ((jnp.int4, "signed integer"), (jnp.uint2, "unsigned integer"), (jnp.int2, "integral")):
        assert jnp.isdtype(dtype, kind) and jnp.isdtype(dtype, "numeric") and not jnp.isdtype(dtype, "real floating")
    assert jnp.isdtype(jnp.float8_e5m2, ("bool", "real floating")) and not jnp.isdtype(jnp.uint4, "signed integer")
    assert [polyax.dtypes.scalar_type_of(t) for t in (jnp.int4, float, np.dtype(bool), "complex64")] == [
        int,
        float,
        bool,
        complex,
    ]


def test_answers_about_types() -> None:
    from_bits = [polyax.dtypes.itemsize_bits(d) for d in ("float32", bool, jnp.int4, jnp.float6_e2m3fn, "complex64")]
    assert from_bits == [32, 8, 4, 6, 64] and jnp.finfo(jnp.float8_e4m3fn).max == 448 and jnp.iinfo(jnp.int4).max == 7
    values = (1, 1.0, True, 2j, np.float16(1), np.int8(1), jnp.bfloat16(1), jnp.int4(1), jnp.float8_e5m2(1))
    kinds = [polyax.dtypes.scalar_type_of(x) for x in values]
    assert kinds == [int, float, bool, complex, float, int, float, int, float]
    assert jnp.issubdtype(jnp.float8_e5m2, jnp.floating) and jnp.issubdtype(jnp.uint4, jnp.unsignedinteger)
    assert not polyax.dtypes.issubdtype(a=jnp.int4, b=jnp.unsignedinteger)
    float0 = polyax.dtypes.float0
    assert [polyax.dtypes.issubdtype(float0, k) for k in (np.generic, float0, np.inexact)] == [True, True, False]
    assert polyax.dtypes.canonicalize_dtype("int64", allow_extended_dtype=True) == np.int32
    for bad in (None, polyax.float0):
        with pytest.raises(ValueError, match="dtype"):
            polyax.dtypes.itemsize_bits(bad)
    with pytest.raises(TypeError, match="Invalid scalar value x"):
        polyax.dtypes.scalar_type_of("x")


def test_limits_of_the_numbers_in_an_array() -> None:
    assert jnp.finfo(jnp.ones(2)).bits == 32 and jnp.iinfo(jnp.ones(2, jnp.int8)).max == 127
    assert jnp.finfo(float).bits == 64 and jnp.finfo("bfloat16").bits == 16


@pytest.mark.parametrize(
    "args, dtype, weak",
    [((1,), "int32", True), ((jnp.int8, 1.0), "float32", True), ((jnp.float32(1), 2), "float32", False)],
)
def test_result_types_and_weakness(args, dtype, weak):
    assert polyax.dtypes.result_type(*args, return_weak_type_flag=True) == (dtype, weak)
    assert polyax.dtypes.result_type(*args) == jnp.result_type(*args) == dtype
    with pytest.raises(ValueError, match="at least one array or dtype is required"):
        polyax.dtypes.result_type()


def test_the_type_of_bfloat16_makes_scalars():
    assert polyax.dtypes.bfloat16 is ml_dtypes.bfloat16 and polyax.dtypes.bfloat16(1.5) == 1.5
    assert np.dtype(polyax.dtypes.bfloat16) == dtypes.bfloat16


@pytest.mark.parametrize("a", [np.generic, np.number, np.integer, np.floating, np.complexfloating])
@pytest.mark.parametrize("b", [np.generic, np.number, np.inexact, np.signedinteger, np.float32, "float32"])
def test_classes_of_types_stand_below_others(a: type, b: Any) -> None:
    assert jnp.issubdtype(a, b) == np.issubdtype(a, b) == polyax.dtypes.issubdtype(a, b)


def test_arrays_are_of_the_kind_of_their_elements() -> None:
    for x in (jnp.ones(3), np.ones(3, np.float32)):
        assert jnp.isdtype(x, "real floating") and not jnp.isdtype(x, ("integral", "bool"))


def test_what_has_a_type_meets_others_in_it() -> None:
    class Named:
        """An array of a library, which can't be looked up."""

        __hash__ = None  # pyright: ignore[reportAssignmentType]
        dtype = np.dtype("float32")

    assert jnp.result_type(jnp.int8(1), Named()) == jnp.result_type(Named(), 1.0) == "float32"
