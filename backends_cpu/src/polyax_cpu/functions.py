"""The table of elementary functions: which code computes each for float32, which code or C function for float64.

A module gets one definition of each function that it uses; LLVM inlines it, and since it has no branches, loops over it
vectorise. Within 2 ulp (``erf_inv`` apart, which follows XLA's).
"""

from __future__ import annotations

from polyax_cpu import large_arguments
from polyax_cpu.llvm import Builder, IrValue
from polyax_kernels.emit.functions import exponential
from polyax_kernels.emit.functions.blocks import Function
from polyax_kernels.emit.functions.table import TABLE


def _sqrt(x: IrValue) -> IrValue:
    return x.b.intrinsic("sqrt", x)


def _rsqrt(x: IrValue) -> IrValue:
    return 1.0 / x.b.intrinsic("sqrt", x)


FLOAT: dict[str, Function] = TABLE | {
    "sin": large_arguments.sin,
    "cos": large_arguments.cos,
    "tan": large_arguments.tan,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
}
DOUBLE: dict[str, Function] = {
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "exp": exponential.exp64,
    "log": exponential.log64,
    "logistic": exponential.logistic64,
}
LIBM = frozenset(FLOAT) - {"erf_inv", "digamma", *DOUBLE}
"""The C library's functions; they bear our names."""


def supports(name: str, type: str) -> bool:
    return name in FLOAT if type == "float" else type == "double" and (name in DOUBLE or name in LIBM)


def call(name: str, *args: IrValue) -> IrValue:
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
