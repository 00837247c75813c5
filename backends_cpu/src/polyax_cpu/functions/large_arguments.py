"""Sine, cosine and tangent of any float32. Large arguments are rare: an out-of-line call corrects their results, and
loops call its vector variants, which cost one test when no lane is large.
"""

from __future__ import annotations

import math

from polyax_cpu.functions.lanes import with_variants
from polyax_cpu.llvm import IrValue, Module
from polyax_kernels.emit.functions import circular
from polyax_kernels.emit.functions.blocks import INF, NAN, absolute, bits, select
from polyax_kernels.emit.functions.circular import NEAR, quadrant, sin_cos, tan_of


def sin(x: IrValue) -> IrValue:
    return _far("sin", x, circular.sin(x))


def cos(x: IrValue) -> IrValue:
    return _far("cos", x, circular.cos(x))


def tan(x: IrValue) -> IrValue:
    return _far("tan", x, circular.tan(x))


TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439042  # 192 bits after the point


def _reduce_far(x: IrValue) -> tuple[IrValue, IrValue]:
    """Payne and Hanek's reduction: x = m 2^e times 2/pi modulo 4, in 256-bit fixed point with 192 bits of fraction."""
    b, n = x.b, bits(x)
    mantissa = b.convert("zext", (n & 0x7FFFFF) | 0x800000, "i256")
    exponent = b.convert("zext", ((n >> 23) & 0xFF) - 145, "i256")  # e + 5, not negative beyond NEAR
    product = (mantissa * TWO_OVER_PI) << exponent
    turns = b.convert("trunc", product >> 135, "i64")  # two integer bits, 62 of the fraction
    fraction = turns << 2
    quadrant = b.convert("trunc", ((turns >> 62) + select(fraction < 0, 1, turns.like(0))), "i32")
    r = b.convert("sitofp", fraction, "double") * (math.pi / 2 * 2.0**-64)
    r = select(n < 0, -r, r)
    return r, select(n < 0, -quadrant, quadrant)


def _exact(kind: str, x: IrValue) -> IrValue:
    r, n = _reduce_far(x)
    s, c = sin_cos(r, single=False)
    value = tan_of(s, c, n) if kind == "tan" else quadrant(s, c, n + (kind == "cos"))
    return select(absolute(x) < INF, x.b.convert("fptrunc", value, "float"), NAN)


_PURE = "nounwind willreturn memory(none)"
_KEEP = "preserve_allcc"  # the callee saves all registers: a call that is almost never made costs its caller none
_LANES = (8, 16)
"""Of AVX2 and AVX-512; narrower vectors call once for each element. Not 4: LLVM ends a function that returns no wide
vector with ``vzeroupper``, which spoils the registers that ``preserve_allcc`` has it keep."""
KINDS = ("sin", "cos", "tan")
EXACT = tuple(f"polyax_{kind}_exact{width}" for kind in KINDS for width in ("", *(f"_v{w}" for w in _LANES)))
"""Functions ``f(x, near)`` of one element and of several, which ``source`` defines and kernels call."""


def source() -> str:
    """The text of the functions for all arguments, compiled once for all kernels."""
    module = Module(EXACT)
    for kind in KINDS:
        name = f"polyax_{kind}_exact"
        b = module.function("float", name, [("float", "x"), ("float", "near")], f"noinline {_PURE}")
        x, near = b.args
        b.ret(select(absolute(x) >= NEAR, _exact(kind, x), near))
        for width in _LANES:
            _define_lanes(module, name, width)
    return module.text()


def _define_lanes(module: Module, exact: str, width: int) -> None:
    vector = f"<{width} x float>"
    params = [(vector, "x"), (vector, "near")]
    b = module.function(f"{_KEEP} {vector}", f"{exact}_v{width}", params, f"noinline {_PURE}")
    result = b.args[1]
    for lane in range(width):
        operands = (b.emit("float", f"extractelement {v}, i64 {lane}") for v in b.args)
        result = b.emit(vector, f"insertelement {result}, {b.call('float', exact, *operands)}, i64 {lane}")
    b.ret(result)


def _far(kind: str, x: IrValue, near: IrValue) -> IrValue:
    """``near``, unless ``x`` is so large that it is wrong."""
    name, module = f"polyax_{kind}_far", x.b.module
    if name not in module.functions:
        _define_far(module, f"polyax_{kind}_exact", name)
    return x.b.call("float", name, x, near)


def _define_far(module: Module, exact: str, name: str) -> None:
    """``far(x, near)`` and, for the loop vectoriser, the same for several lanes: one test when all are near."""
    params = [("float", "x"), ("float", "near")]
    far = module.function("float", name, params, f"noinline {_PURE} {with_variants(name, 2, _LANES)}")
    x, near = far.args
    far.ret(far.choose(absolute(x) >= NEAR, lambda: far.call("float", exact, x, near), near))
    for width in _LANES:
        _define_test(module, f"{exact}_v{width}", f"{name}_v{width}", width)
    module.keep(*(f"{name}_v{w}" for w in _LANES))


def _define_test(module: Module, exact: str, name: str, width: int) -> None:
    vector = f"<{width} x float>"
    b = module.function(vector, name, [(vector, "x"), (vector, "near")], f"alwaysinline {_PURE}")
    x, near = b.args
    size = b.call(vector, f"llvm.fabs.v{width}f32", x)
    limit = ", ".join([f"float {b.const(NEAR, 'float').name}"] * width)
    mask = b.emit(f"<{width} x i1>", f"fcmp oge {size}, <{limit}>")
    some = b.convert("bitcast", mask, f"i{width}").compare("!=", 0)
    declared = f"{_KEEP} {vector} @{exact}({vector}, {vector}) cold {_PURE}"
    module.declare(exact, declared)
    b.ret(b.choose(some, lambda: b.emit(vector, f"call {_KEEP} {vector} @{exact}({x}, {near})"), near))
