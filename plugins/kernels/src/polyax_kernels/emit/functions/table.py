"""The tables of elementary functions: within 2 ulp, ``erf_inv`` apart, which follows XLA's in float32, and is within 4
in float64.

``sin``, ``cos`` and ``tan`` are NaN from 2^51 on in float32, and from 2^30 on in float64: an emitter that has a way of
its own for such angles uses it there. For float64 there is no ``lgamma``, and ``digamma`` is decomposed.
"""

from __future__ import annotations

from functools import partial

from polyax_kernels.emit.functions import (
    circular,
    circular_double,
    exponential,
    exponential_double,
    special,
    special_double,
)
from polyax_kernels.emit.functions.blocks import Function, to64

TABLE: dict[str, Function] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": exponential.log,
    "log1p": exponential.log1p,
    "logistic": exponential.logistic,
    "tanh": exponential.tanh,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "asinh": exponential.asinh,
    "acosh": exponential.acosh,
    "atanh": to64(exponential.atanh64),
    "pow": to64(exponential.pow64),
    "cbrt": to64(exponential.cbrt64),
    "sin": circular.sin_wide,
    "cos": circular.cos_wide,
    "tan": circular.tan_wide,
    "asin": to64(circular.asin64),
    "acos": to64(circular.acos64),
    "atan": to64(circular.atan64),
    "atan2": to64(circular.atan2_64),
    "erf": special.erf,
    "erfc": special.erfc,
    "erf_inv": special.erf_inv,
    "lgamma": to64(special.lgamma64),
    "digamma": to64(special.digamma64),
}
DOUBLE: dict[str, Function] = {
    "exp": exponential.exp64,
    "exp2": exponential_double.exp2,
    "expm1": exponential_double.expm1,
    "log": exponential.log64,
    "log1p": exponential_double.log1p,
    "logistic": exponential.logistic64,
    "tanh": exponential_double.tanh,
    "sinh": exponential_double.sinh,
    "cosh": exponential_double.cosh,
    "asinh": exponential_double.asinh,
    "acosh": exponential_double.acosh,
    "atanh": exponential_double.atanh,
    "pow": exponential_double.pow,
    "cbrt": exponential_double.cbrt,
    "sin": partial(circular_double.inside, "sin"),
    "cos": partial(circular_double.inside, "cos"),
    "tan": partial(circular_double.inside, "tan"),
    "asin": circular_double.asin,
    "acos": circular_double.acos,
    "atan": circular_double.atan,
    "atan2": circular_double.atan2,
    "erf": special_double.erf,
    "erfc": special_double.erfc,
    "erf_inv": special_double.erf_inv,
}
FUNCTIONS = {"float": TABLE, "double": DOUBLE}
"""By the types that a ``Value`` has. Each is a function of values, which writes the code for them."""
