"""Types of less than 16 bits, as ``float32`` is one: callables that make arrays, and stand for dtypes.

Numbers are kept in them, a byte each; what computes with them does so in wider types and rounds each result.
"""

from __future__ import annotations

import ml_dtypes

from polyax.numpy.types import scalar_type

__all__ = [
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int1",
    "int2",
    "int4",
    "uint1",
    "uint2",
    "uint4",
]

float4_e2m1fn = scalar_type("float4_e2m1fn", ml_dtypes.float4_e2m1fn)
float6_e2m3fn = scalar_type("float6_e2m3fn", ml_dtypes.float6_e2m3fn)
float6_e3m2fn = scalar_type("float6_e3m2fn", ml_dtypes.float6_e3m2fn)
float8_e3m4 = scalar_type("float8_e3m4", ml_dtypes.float8_e3m4)
float8_e4m3 = scalar_type("float8_e4m3", ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = scalar_type("float8_e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = scalar_type("float8_e4m3fn", ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = scalar_type("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = scalar_type("float8_e5m2", ml_dtypes.float8_e5m2)
float8_e5m2fnuz = scalar_type("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = scalar_type("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu)
int1 = scalar_type("int1", ml_dtypes.int1)
int2 = scalar_type("int2", ml_dtypes.int2)
int4 = scalar_type("int4", ml_dtypes.int4)
uint1 = scalar_type("uint1", ml_dtypes.uint1)
uint2 = scalar_type("uint2", ml_dtypes.uint2)
uint4 = scalar_type("uint4", ml_dtypes.uint4)
