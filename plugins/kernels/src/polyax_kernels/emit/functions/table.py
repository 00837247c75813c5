"""The table of elementary functions for float32: within 2 ulp, ``erf_inv`` apart, which follows XLA's."""

from __future__ import annotations

from polyax_kernels.emit.functions import circular, exponential, special
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
