"""Error functions that ONNX has no operators for, by others: in float64, as exact as float32 and float16 are."""

from __future__ import annotations

import math
from functools import reduce

from polyax.backend import Eqn
from polyax_onnx.rules.table import RULES
from polyax_onnx.writer import NotInOnnx, Tensor

_ERFC = (0.28208827747, 0.28225805764, 0.24512253754, 0.18591641453, 0.053728409164, 0.038117865345,
         -0.026246349958, -0.28509943733, 0.37842328519, -0.18988233709, 0.035573280931)  # fmt: skip
_NEAR = (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
         3.43273939e-07, 2.81022636e-08)  # fmt: skip
_FAR = (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
        0.000100950558, -0.000200214257)  # fmt: skip


def _poly(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    total, *rest = map(x.like, coefficients[::-1])
    return reduce(lambda total, c: total * x + c, rest, total)


def _erfc(x: Tensor) -> Tensor:
    """exp(-a^2) t p(t) with a = |x| and t = 1 / (1 + a / 2), where p varies little; below 0, 2 minus that."""
    a = x.op("Abs").op("Min", 30)
    t = a.like(1) / (a * 0.5 + 1)
    result = (-(a * a)).op("Exp") * t * _poly(t, _ERFC)
    return (x < 0).where(2 - result, result)


def _erf_inv(x: Tensor) -> Tensor:
    """M. Giles, "Approximating the erfinv function" (2010), single precision."""
    w = -((1 - x) * (1 + x)).op("Log")
    result = (w < 5).where(_poly(w - 2.5, _NEAR), _poly(w.op("Sqrt") - 3, _FAR)) * x
    return (x.op("Abs") == 1).where(x * math.inf, result)


def _in_double(eqn: Eqn, x: Tensor) -> Tensor:
    if x.bits == 64:
        raise NotInOnnx("ONNX has no operator for it, and its formula here is no more exact than float32")
    return (_erfc if eqn.primitive.name == "erfc" else _erf_inv)(x.cast("float64")).cast(x.dtype)


RULES.update(erfc=_in_double, erf_inv=_in_double)
