"""Circular functions: sine and cosine in float32, the others in float64 inside.

Arguments up to 2^18 are reduced with three float32 parts of pi/2. Larger ones are rare: an out-of-line call corrects
them, and loops call its vector variants, which cost one test when no lane is large.
"""

from __future__ import annotations

import math

from polyax_cpu.functions.blocks import (
    INF,
    NAN,
    absolute,
    bits,
    fma,
    from_bits,
    nearest,
    poly,
    select,
    with_sign,
)
from polyax_cpu.llvm import Module, Value

_PIO2 = (1.570796251296997, 7.549789415861596e-08, 5.390302858158119e-15)  # float32 parts of pi/2, all positive,
# so that a negative zero survives the reduction
_PIO2_64 = (1.57079632679489655800, 6.12323399573676603587e-17)
_SIN = (-0.16666653471182169686, 0.0083320834536926213221, -0.00019504316575822674606)
_COS = (0.041666644383203397917, -0.0013887242975655563958, 0.000024423912859978469997)
_SIN64 = (-0.16666666666623967326, 0.0083333333238977590843, -0.00019841263069263312272, 2.7555197362514171603e-6,
          -2.4750030938352527675e-8)  # fmt: skip
_COS64 = (0.041666666666588180821, -0.0013888888876456604622, 0.000024801580175390447971, -2.7555423244902636544e-7,
          2.0638536209204317923e-9)  # fmt: skip
NEAR = 2.0**18
"""Up to here three float32 parts of pi/2 suffice. Beyond, ``far`` does it with 192 bits of 2/pi."""


def sin_cos(r: Value, single: bool = True) -> tuple[Value, Value]:
    """Sine and cosine on [-pi/4, pi/4]."""
    t = r * r
    s = fma(r * t, poly(t, *(_SIN if single else _SIN64)), r)
    c = fma(t * t, poly(t, *(_COS if single else _COS64)), fma(t, -0.5, 1.0))
    return s, c


def _quadrant(s: Value, c: Value, n: Value) -> Value:
    """Swaps sine and cosine in odd quadrants and turns the sign in the lower half."""
    value = select((n & 1).compare("==", 0), s, c)
    n = n if n.type == "i32" else n.b.convert("trunc", n, "i32")
    flip = (n & 2) << 30
    if value.type == "float":
        return from_bits(bits(value) ^ flip)
    return select(flip.compare("==", 0), value, -value)


def _wave(x: Value, shift: int) -> Value:
    n, n_bits = nearest(x, 2 / math.pi)
    r = fma(n, -_PIO2[2], fma(n, -_PIO2[1], fma(n, -_PIO2[0], x)))
    s, c = sin_cos(r)
    return _quadrant(s, c, n_bits + shift)


def _keep_zero(x: Value, result: Value) -> Value:
    """Odd functions keep the sign of zero, which a sum of products loses."""
    return select(x.compare("==", 0.0), x, result)


def sin(x: Value) -> Value:
    return _far("sin", x, _keep_zero(x, _wave(x, 0)))


def cos(x: Value) -> Value:
    return _far("cos", x, _wave(x, 1))


def tan(x: Value) -> Value:
    wide = x.b.convert("fpext", x, "double")
    n, n_bits = nearest(wide, 2 / math.pi)
    s, c = sin_cos(fma(n, -_PIO2_64[1], fma(n, -_PIO2_64[0], wide)), single=False)
    return _far("tan", x, _keep_zero(x, x.b.convert("fptrunc", _tan_of(s, c, n_bits), "float")))


TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439042  # 192 bits after the point


def _reduce_far(x: Value) -> tuple[Value, Value]:
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


def _tan_of(s: Value, c: Value, n: Value) -> Value:
    odd = (n & 1).compare("!=", 0)
    return select(odd, -c, s) / select(odd, s, c)


def _exact(kind: str, x: Value) -> Value:
    r, n = _reduce_far(x)
    s, c = sin_cos(r, single=False)
    value = _tan_of(s, c, n) if kind == "tan" else _quadrant(s, c, n + (kind == "cos"))
    return select(absolute(x) < INF, x.b.convert("fptrunc", value, "float"), NAN)


_PURE = "nounwind willreturn memory(none)"
_KEEP = "preserve_allcc"  # the callee saves all registers: a call that is almost never made costs its caller none
_LANES = (8, 16)
"""Of AVX2 and AVX-512; narrower vectors call once for each element. Not 4: LLVM ends a function that returns no wide
vector with ``vzeroupper``, which spoils the registers that ``preserve_allcc`` has it keep."""
KINDS = ("sin", "cos", "tan")
EXACT = tuple(f"polyax_{kind}_exact{width}" for kind in KINDS for width in ("", *(f"_v{w}" for w in _LANES)))
"""Functions ``f(x, near)`` of the native runtime, of one element and of several, that ``define_exact`` writes."""


def define_exact(module: Module) -> None:
    """The functions for all arguments, compiled once for all kernels."""
    for kind in KINDS:
        name = f"polyax_{kind}_exact"
        b = module.function("float", name, [("float", "x"), ("float", "near")], f"noinline {_PURE}")
        x, near = b.args
        b.ret(select(absolute(x) >= NEAR, _exact(kind, x), near))
        for width in _LANES:
            _define_lanes(module, name, width)


def _define_lanes(module: Module, exact: str, width: int) -> None:
    vector = f"<{width} x float>"
    params = [(vector, "x"), (vector, "near")]
    b = module.function(f"{_KEEP} {vector}", f"{exact}_v{width}", params, f"noinline {_PURE}")
    result = b.args[1]
    for lane in range(width):
        operands = (b.emit("float", f"extractelement {v}, i64 {lane}") for v in b.args)
        result = b.emit(vector, f"insertelement {result}, {b.call('float', exact, *operands)}, i64 {lane}")
    b.ret(result)


def _far(kind: str, x: Value, near: Value) -> Value:
    """``near``, unless ``x`` is so large that it is wrong."""
    name, module = f"polyax_{kind}_far", x.b.module
    if name not in module.functions:
        _define_far(module, f"polyax_{kind}_exact", name)
    return x.b.call("float", name, x, near)


def _define_far(module: Module, exact: str, name: str) -> None:
    """``far(x, near)`` and, for the loop vectoriser, the same for several lanes: one test when all are near."""
    params = [("float", "x"), ("float", "near")]
    variants = ",".join(f"_ZGV_LLVM_N{w}vv_{name}({name}_v{w})" for w in _LANES)
    far = module.function("float", name, params, f'noinline {_PURE} "vector-function-abi-variant"="{variants}"')
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


# inverses -------------------------------------------------------------------------------------------------------------

_ATAN64 = (-0.33333333331673077101, 0.19999999681615358442, -0.1428569337352451801, 0.11110444181488515708,
           -0.090790573335113922773, 0.075679335840983061083, -0.058886970308375054217,
           0.030857636216348425109)  # fmt: skip
_ASIN64 = (0.16666666669695824373, 0.074999995255754512739, 0.044643112480339226339, 0.030375232992406359048,
           0.022471305446402321185, 0.0164777791602471983, 0.018630147376802322655, -0.0028575979982313664859,
           0.031958612522896151628)  # fmt: skip


def _atan_unit(z: Value) -> Value:
    """On [0, 1]; above tan(pi/8), pi/4 is split off."""
    far = z > math.tan(math.pi / 8)
    z = select(far, (z - 1.0) / (z + 1.0), z)
    t = z * z
    return fma(z * t, poly(t, *_ATAN64), z) + select(far, math.pi / 4, z.like(0.0))


def atan64(x: Value) -> Value:
    a = absolute(x)
    far = a > 1.0
    angle = _atan_unit(select(far, 1.0 / a, a))
    return with_sign(select(far, math.pi / 2 - angle, angle), x)


def atan2_64(y: Value, x: Value) -> Value:
    """The angle of (x, y), with C's values for zeros and infinities."""
    a, c = absolute(y), absolute(x)
    steep = a > c
    low, high = select(steep, c, a), select(steep, a, c)
    endless = low.compare("==", INF) & high.compare("==", INF)
    z = select((low + high).compare("==", 0.0), 0.0, select(endless, 1.0, low / high))
    angle = _atan_unit(z)
    angle = select(steep, math.pi / 2 - angle, angle)
    return with_sign(select(bits(x) < 0, math.pi - angle, angle), y)


def _asin_parts(x: Value) -> tuple[Value, Value]:
    """Whether |x| > 1/2, and then asin(sqrt((1 - |x|) / 2)), else asin(|x|)."""
    a = absolute(x)
    far = a > 0.5
    t = select(far, (1.0 - a) * 0.5, a * a)
    s = select(far, x.b.intrinsic("sqrt", t), a)
    return far, fma(s * t, poly(t, *_ASIN64), s)


def asin64(x: Value) -> Value:
    far, p = _asin_parts(x)
    return with_sign(select(far, fma(p, -2.0, math.pi / 2), p), x)


def acos64(x: Value) -> Value:
    far, p = _asin_parts(x)
    middle = math.pi / 2 - with_sign(p, x)
    return select(far, select(x < 0.0, fma(p, -2.0, math.pi), p * 2.0), middle)
