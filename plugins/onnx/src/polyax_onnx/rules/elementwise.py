"""Operations on each element, with results for all inputs as polyax has them: ONNX leaves many of these open."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax_onnx.rules.table import rule
from polyax_onnx.writer import NotInOnnx, Tensor

_SAME = ("floor", "ceil", "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
_unary = {name: name.capitalize() for name in (*_SAME, "asinh", "acosh", "atanh", "erf", "abs")}
_unary |= {"logistic": "Sigmoid", "copy": "Identity", "name": "Identity", "stop_gradient": "Identity"}
for _name, _op in _unary.items():
    rule(_name)(lambda x, op=_op, **_: float_op(x, op) if x.is_float else x.op(op))

_BINARY: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: ~(x == y),
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
for _name, _fun in _BINARY.items():
    rule(_name)(lambda x, y, fun=_fun, **_: fun(x, y))

rule("neg")(lambda x: -x)
rule("not")(lambda x: ~x)
rule("square")(lambda x: x * x)


def float_op(x: Tensor, op: str) -> Tensor:
    """Functions of float16 are those of float32, rounded once."""
    return x.cast("float32").op(op).cast("float16") if x.dtype == "float16" else x.op(op)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _safe(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Divisors that a processor takes, and where ``y`` is 0."""
    zero = y == 0
    return ((zero | (y == -1)) if y.dtype.kind == "i" else zero).where(1, y), zero


@rule("div")
def _div(x: Tensor, y: Tensor) -> Tensor:
    """Of integers toward zero; by zero -1; the lowest over -1 is itself."""
    if x.is_float:
        return x / y
    safe, zero = _safe(x, y)
    quotient = x / safe
    if x.dtype.kind == "i":
        quotient = (y == -1).where(-x, quotient)
    return zero.where(np.invert(x.dtype.type(0)), quotient)


@rule("rem")
def _rem(x: Tensor, y: Tensor) -> Tensor:
    """With the sign of the dividend; of integers by zero the dividend."""
    if x.is_float:
        return x.op("Mod", y, fmod=1)
    safe, zero = _safe(x, y)
    return zero.where(x, x.op("Mod", safe, fmod=1))


@rule("max")
def maximum(x: Tensor, y: Tensor) -> Tensor:
    """NaN if either is; of zeros the positive one."""
    if not x.is_float:
        return (x < y).where(y, x)
    chosen = (x < y).where(y, ((x == y) & (x == 0)).where(x + y, x))
    return y.nan().where(y, chosen)


@rule("min")
def minimum(x: Tensor, y: Tensor) -> Tensor:
    """NaN if either is; of zeros the negative one."""
    return -maximum(-x, -y) if x.is_float else (y < x).where(y, x)


@rule("clamp")
def _clamp(low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    return minimum(maximum(x, low), high).expand(x.shape)


@rule("sign")
def _sign(x: Tensor) -> Tensor:
    if not x.is_float:
        return x.op("Sign")
    return ((x == 0) | x.nan()).where(x, x.op("Sign"))


@rule("round")
def _round(x: Tensor, *, rounding_method: Any) -> Tensor:
    """Halves to even, or away from zero; zeros keep their sign."""
    if int(rounding_method) == 1:
        return x.op("Round")
    down = float_op(x.op("Abs"), "Floor")
    away = ((x.op("Abs") - down) >= 0.5).where(down + 1, down)
    return (x < 0).where(-away, (x == 0).where(x, away))


@rule("pow")
def _pow(x: Tensor, y: Tensor) -> Tensor:
    if not x.is_float or y.dtype.name in ("int64", "uint64"):
        raise NotInOnnx("powers of integers, and by integers of 64 bits, aren't those of ONNX")
    if y.is_float:
        return ((y == 0) | (x == 1)).where(1, x.op("Pow", y))
    return _pow(x.cast("float64"), y.cast("float64")).cast(x.dtype)


@rule("integer_pow")
def _integer_pow(x: Tensor, *, y: int) -> Tensor:
    """Repeated squaring, so that integers wrap."""
    result, factor, n = None, x, abs(y)
    while n:
        if n & 1:
            result = factor if result is None else result * factor
        factor, n = (factor * factor if n > 1 else factor), n >> 1
    result = x.like(1).expand(x.shape) if result is None else result
    return x.like(1) / result if y < 0 else result


@rule("atan2")
def _atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the quotient that is at most 1, brought into its octant; signs of zeros count."""
    up, across = y.op("Abs"), x.op("Abs")
    steep = up > across
    large = steep.where(up, across)
    infinite = large.op("IsInf", dtype="bool")
    both = infinite & (up == across)
    quotient = both.where(1, steep.where(across, up) / (large == 0).where(1, large))
    angle = float_op(quotient, "Atan")
    angle = steep.where(np.pi / 2 - angle, angle)
    angle = _negative(x).where(np.pi - angle, angle)
    return _negative(y).where(-angle, angle)


def _negative(x: Tensor) -> Tensor:
    return (x < 0) | ((x == 0) & (x.like(1) / x < 0))


@rule("rsqrt")
def _rsqrt(x: Tensor) -> Tensor:
    return x.like(1) / x.op("Sqrt")


@rule("cbrt")
def _cbrt(x: Tensor) -> Tensor:
    """By a power, and a step of Newton's."""
    size = x.op("Abs")
    root = size.op("Pow", 1 / 3)
    better = root - (root - size / (root * root)) / 3
    usual = (x == 0) | (size.op("IsInf", dtype="bool")) | x.nan()
    return usual.where(x, (x < 0).where(-better, better))


@rule("exp2")
def _exp2(x: Tensor) -> Tensor:
    return x.like(2).op("Pow", x)


@rule("expm1")
def _expm1(x: Tensor) -> Tensor:
    """Kahan's: the errors of both exp and log cancel."""
    u = x.op("Exp")
    near = (u - 1) * x / u.op("Log")
    return (u == 1).where(x, ((u - 1 == -1) | u.op("IsInf", dtype="bool")).where(u - 1, near))


@rule("log1p")
def log1p(x: Tensor) -> Tensor:
    u = x + 1
    near = u.op("Log") * x / (u - 1)
    return (u == 1).where(x, u.op("IsInf", dtype="bool").where(x, near))


@rule("is_finite")
def _is_finite(x: Tensor) -> Tensor:
    return ~(x.nan() | x.op("IsInf", dtype="bool"))


# --- bits -------------------------------------------------------------------------------------------------------------


def _unsigned(x: Tensor) -> Tensor:
    return x.cast(f"uint{x.bits}")


def _amount(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What to shift by, and where that is as much as there are bits; less than nothing is more than that."""
    amount = _unsigned(y).cast(f"uint{x.bits}") if y.bits <= x.bits else _unsigned(y)
    beyond = amount >= x.bits
    return beyond.where(0, amount).cast(f"uint{x.bits}"), beyond


@rule("shift_left")
def _left(x: Tensor, y: Tensor) -> Tensor:
    amount, beyond = _amount(x, y)
    return beyond.where(0, _unsigned(x).op("BitShift", amount, direction="LEFT")).cast(x.dtype)


@rule("shift_right_logical")
def _logical(x: Tensor, y: Tensor) -> Tensor:
    amount, beyond = _amount(x, y)
    return beyond.where(0, _unsigned(x).op("BitShift", amount, direction="RIGHT")).cast(x.dtype)


@rule("shift_right_arithmetic")
def _arithmetic(x: Tensor, y: Tensor) -> Tensor:
    """Of what is negative the complement is shifted."""
    signed = x.cast(f"int{x.bits}")
    negative = signed < 0
    moved = _logical(_unsigned(negative.where(~signed, signed)), y)
    return negative.where(~moved, moved).cast(x.dtype)


@rule("mulhi")
def _mulhi(x: Tensor, y: Tensor) -> Tensor:
    """The upper half of a product of twice the width."""
    if x.bits == 64:
        raise NotInOnnx("ONNX has no integers of 128 bits")
    wide = "int64" if x.dtype.kind == "i" else "uint64"
    product = x.cast(wide) * y.cast(wide)
    amount = product.like(x.bits)
    return (_arithmetic if x.dtype.kind == "i" else _logical)(product, amount).cast(x.dtype)


def _each_bit(x: Tensor) -> Tensor:
    """Along a further dimension, the lowest first, as 0 and 1."""
    places = x.model.constant(np.arange(x.bits), f"uint{x.bits}")
    spread = _unsigned(x).reshape([*x.shape, 1])
    return (spread.op("BitShift", places, direction="RIGHT") & 1).cast("int32")


@rule("population_count")
def _population_count(x: Tensor) -> Tensor:
    return _each_bit(x).reduce("ReduceSum", [len(x.shape)]).cast(x.dtype)


@rule("clz")
def _clz(x: Tensor) -> Tensor:
    numbered = _each_bit(x) * x.model.constant(np.arange(1, x.bits + 1), "int32")
    return (x.bits - numbered.reduce("ReduceMax", [len(x.shape)])).cast(x.dtype)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@rule("threefry2x32")
def _threefry(key0: Tensor, key1: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
    """Five groups of four rounds, each followed by an injection of words of the key."""
    keys = (key0, key1, key0 ^ key1 ^ 0x1BD11BDA)
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x = x + y
            y = (y.op("BitShift", r, direction="LEFT") | y.op("BitShift", 32 - r, direction="RIGHT")) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + (group + 1)
    return [x, y]


# --- choices and types ------------------------------------------------------------------------------------------------


@rule("select_n")
def _select_n(which: Tensor, *cases: Tensor) -> Tensor:
    if which.is_bool:
        return which.where(cases[-1], cases[0])
    result = cases[0]
    for n, case in enumerate(cases[1:], 1):
        result = (which >= n).where(case, result)
    return result


@rule("convert_element_type")
def convert(x: Tensor, *, new_dtype: Any, **_: Any) -> Tensor:
    """Floats to integers truncate and saturate, NaN gives 0."""
    if new_dtype == np.bool_:
        return ~(x == 0)
    if x.is_float and new_dtype.kind in "iu":
        return _to_integer(x.cast("float32") if x.bits == 16 else x, new_dtype)
    return x.cast(new_dtype)


def _to_integer(x: Tensor, dtype: Any) -> Tensor:
    info = np.iinfo(dtype)
    low, high = x <= float(info.min), x >= float(info.max)
    inside = (low | high | x.nan()).where(0, x)
    whole = inside.cast("int64" if dtype != "uint64" else dtype).cast(dtype)
    return low.where(int(info.min), high.where(int(info.max), whole))


@rule("reduce_precision")
def _reduce_precision(x: Tensor, *, exponent_bits: int, mantissa_bits: int) -> Tensor:
    info = {"float16": (5, 10), "float32": (8, 23), "float64": (11, 52)}[x.dtype.name]
    if (exponent_bits, mantissa_bits) != info:
        raise NotInOnnx("ONNX has no floats of other widths")
    return x.op("Identity")
