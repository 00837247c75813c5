"""The table of elementary functions: which code computes each for float32, and which for float64.

A module gets one definition of each function that it uses; LLVM inlines it, and since it has no branches, loops over it
vectorise. Where many would be inlined they are called instead, in loops by their variants for vectors. Within 2 ulp
(``erf_inv`` apart, which follows XLA's in float32, and is within 4 in float64).
"""

from __future__ import annotations

from collections.abc import Sequence

from polyax_cpu.functions import large_arguments
from polyax_cpu.functions.remainder import remainder
from polyax_cpu.functions.variants import variant, with_variants
from polyax_cpu.llvm import IrValue, Module, Params, vector
from polyax_cpu.processors import host
from polyax_kernels.emit.functions import table
from polyax_kernels.emit.functions.blocks import Function


def _sqrt(x: IrValue) -> IrValue:
    return x.b.intrinsic("sqrt", x)


def _rsqrt(x: IrValue) -> IrValue:
    return 1.0 / x.b.intrinsic("sqrt", x)


FLOAT: dict[str, Function] = table.TABLE | {
    **large_arguments.SINGLE.functions,
    "rem": remainder,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
}
DOUBLE: dict[str, Function] = table.DOUBLE | {
    **large_arguments.DOUBLE.functions,
    "rem": remainder,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
}
BRIEF = frozenset({"sqrt", "rsqrt"})
"""Functions of an instruction or two."""
LIBM = frozenset({"lgamma"})
"""The C library's functions for float64; they bear our names."""


def supports(name: str, type: str) -> bool:
    return name in FLOAT if type == "float" else type == "double" and (name in DOUBLE or name in LIBM)


def is_long(name: str, type: str) -> bool:
    """Whether it is code that fills a loop where it is inlined."""
    return name in _code(type) and name not in BRIEF


def _code(type: str) -> dict[str, Function]:
    return {"float": FLOAT, "double": DOUBLE}.get(type, {})


def call(name: str, *args: IrValue, shared: bool = False) -> IrValue:
    """Applies a function to float32 or float64 operands, defining it in the module at its first use. ``shared``: all
    uses of a long one call the same code."""
    b, type = args[0].b, args[0].type
    if type == "double" and name not in DOUBLE:
        return b.pieces(1, lambda *xs: b.call("double", name, *xs), *args)
    symbol, function = f"polyax_{name}_{type}", _code(type)[name]
    params = [(type, f"x{i}") for i in range(len(args))]
    if shared and is_long(name, type):
        return _call_shared(symbol, function, type, params, args)
    if any(x.lanes > 1 for x in args):
        return function(*b.level(*args))
    _define(b.module, symbol, function, type, params)
    return b.call(type, symbol, *args)


_PURE = "nounwind willreturn memory(none)"


def _define(module: Module, symbol: str, function: Function, type: str, params: Params) -> None:
    if symbol not in module.functions:
        inner = module.function(type, symbol, params, f"alwaysinline {_PURE}")
        inner.ret(function(*inner.args))


def _call_shared(symbol: str, function: Function, type: str, params: Params, args: Sequence[IrValue]) -> IrValue:
    """A call of the function that all uses share, or of its variant for vectors, of as many lanes as the first use."""
    b, name, lanes = args[0].b, f"{symbol}_shared", max(x.lanes for x in args)
    if lanes > 1:
        width = b.module.widths.setdefault(name, lanes)
        _define_lanes(b.module, variant(name, width), function, type, params, width)
        return b.pieces(width, lambda *xs: b.call_lanes(type, variant(name, width), *xs), *args)
    if name not in b.module.functions:
        width = host().vector_bits // (32 if type == "float" else 64)
        _define(b.module, symbol, function, type, params)
        one = b.module.function(type, name, params, f"noinline {_PURE} {with_variants(name, len(params), (width,))}")
        one.ret(one.call(type, symbol, *one.args))
        _define_lanes(b.module, variant(name, width), function, type, params, width)
        b.module.keep(variant(name, width))
    return b.call(type, name, *args)


def _define_lanes(module: Module, name: str, function: Function, type: str, params: Params, width: int) -> None:
    if name not in module.functions:
        wide = vector(type, width)
        lanes = module.function(wide, name, [(wide, param) for _, param in params], f"noinline {_PURE}")
        lanes.ret(function(*lanes.args))
