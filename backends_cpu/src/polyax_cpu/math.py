"""The table of elementary functions: which code computes each for float32, which C function for float64.

A module gets one definition of each function that it uses; LLVM inlines it, and since it has no branches, loops over it
vectorise. Within 2 ulp for float32 (``erf_inv`` apart, which follows XLA's).
"""

from __future__ import annotations

from polyax_cpu.functions import circular, exponential, special
from polyax_cpu.functions.blocks import Function, to64
from polyax_cpu.llvm import Builder, Value


def _logistic64(x: Value) -> Value:
    e = call("exp", -x.b.intrinsic("fabs", x))
    return x.b.select(x < 0.0, e, x.like(1.0)) / (e + 1.0)


def _sqrt(x: Value) -> Value:
    return x.b.intrinsic("sqrt", x)


def _rsqrt(x: Value) -> Value:
    return 1.0 / x.b.intrinsic("sqrt", x)


FLOAT: dict[str, Function] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": exponential.log,
    "log1p": exponential.log1p,
    "logistic": exponential.logistic,
    "tanh": exponential.tanh,
    "sinh": to64(exponential.sinh64),
    "cosh": to64(exponential.cosh64),
    "asinh": to64(exponential.asinh64),
    "acosh": to64(exponential.acosh64),
    "atanh": to64(exponential.atanh64),
    "pow": to64(exponential.pow64),
    "cbrt": to64(exponential.cbrt64),
    "sin": circular.sin,
    "cos": circular.cos,
    "tan": circular.tan,
    "asin": to64(circular.asin64),
    "acos": to64(circular.acos64),
    "atan": to64(circular.atan64),
    "atan2": to64(circular.atan2_64),
    "erf": to64(special.erf64),
    "erfc": to64(special.erfc64),
    "erf_inv": special.erf_inv,
    "lgamma": to64(special.lgamma64),
    "digamma": to64(special.digamma64),
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
}
DOUBLE: dict[str, Function] = {"sqrt": _sqrt, "rsqrt": _rsqrt, "logistic": _logistic64}
LIBM = frozenset(FLOAT) - {"erf_inv", "digamma", *DOUBLE}
"""The C library's functions; they bear our names."""


def supports(name: str, type: str) -> bool:
    return name in FLOAT if type == "float" else type == "double" and (name in DOUBLE or name in LIBM)


def call(name: str, *args: Value) -> Value:
    """Applies a function to float32 or float64 operands, defining it in the module at its first use."""
    b, type = args[0].b, args[0].type
    if type == "double" and name not in DOUBLE:
        return b.call("double", name, *args)
    symbol = f"polyax_{name}_{type}"
    if symbol not in b.module.functions:
        _define(b, symbol, (FLOAT if type == "float" else DOUBLE)[name], type, len(args))
    return b.call(type, symbol, *args)


def _define(b: Builder, symbol: str, function: Function, type: str, arity: int) -> None:
    params = [(type, f"x{i}") for i in range(arity)]
    inner = b.module.function(type, symbol, params, "alwaysinline nounwind willreturn memory(none)")
    inner.ret(function(*inner.args))
