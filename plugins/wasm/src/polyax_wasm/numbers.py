"""Whole numbers and conversions, as the table of scalar operations defines them.

``int8`` to ``uint16`` are held in 32 bits, extended as their type says; float16 and bfloat16 are their bits. Knows
types and instructions; nothing of kernels.
"""

from __future__ import annotations

import numpy as np

from polyax_kernels.api.emitters import halves
from polyax_kernels.api.lowerings import NATIVE, REALS
from polyax_wasm.code import LANES, WASM, WasmValue

HALVES = REALS - NATIVE
FLOAT32 = np.dtype("float32")
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
COUNTS = {"clz": "clz", "population_count": "popcnt"}
SUPPORTED = frozenset((*PLAIN, *SHIFTS, *COUNTS, "div", "neg", "not", "max", "min"))


def type_of(dtype: np.dtype) -> str:
    """What a value of the dtype is in the code."""
    known = {"bool": "i1", "float32": "float", "float64": "double"}
    return known.get(dtype.name) or ("i64" if dtype.itemsize == 8 else "i32")


def operate(name: str, dtype: np.dtype, *args: WasmValue) -> WasmValue:
    """An operation on whole numbers or truth values."""
    x, b, kind = args[0], args[0].b, WASM[args[0].type]
    if name in PLAIN:
        return wrapped(b.emit(x.type, f"{kind}.{PLAIN[name]}", *args), dtype)
    if name in COUNTS:
        return counted(name, x, dtype)
    if name in SHIFTS:
        return shifted(name, dtype, *args)
    if name == "div":
        return divided(dtype, *args)
    if name in ("max", "min"):
        return b.select(compared("gt" if name == "max" else "lt", dtype, *args), *args)
    return wrapped({"neg": lambda: -x, "not": lambda: ~x}[name](), dtype)


def compared(name: str, dtype: np.dtype, x: WasmValue, y: WasmValue) -> WasmValue:
    """Numbers and truth values of all types."""
    sign = "" if x.type in LANES or name in ("eq", "ne") else "_s" if dtype.kind == "i" else "_u"
    return x.b.emit("i1", f"{WASM[x.type]}.{name}{sign}", x, y)


def wrapped(x: WasmValue, dtype: np.dtype) -> WasmValue:
    """A number whose lower bits are right."""
    if dtype.kind == "b" or dtype.itemsize >= 4:
        return x
    if dtype.kind == "i":
        return x.b.emit("i32", f"i32.extend{8 * dtype.itemsize}_s", x)
    return x & (1 << 8 * dtype.itemsize) - 1


def unsigned(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"uint{8 * dtype.itemsize}")


def counted(name: str, x: WasmValue, dtype: np.dtype) -> WasmValue:
    """Leading zeros, or ones. Both are small, so that they need no wrapping."""
    count = x.b.emit(x.type, f"{WASM[x.type]}.{COUNTS[name]}", wrapped(x, unsigned(dtype)))
    return count - (32 - 8 * dtype.itemsize) if name == "clz" and dtype.itemsize < 4 else count


def shifted(name: str, dtype: np.dtype, x: WasmValue, n: WasmValue) -> WasmValue:
    """By more than there are bits: nothing is left, or only the sign."""
    b, kind, width = x.b, WASM[x.type], 8 * dtype.itemsize
    inside = b.emit("i1", f"{kind}.lt_u", n, n.like(width))
    if name == "shift_right_arithmetic":
        signed = wrapped(x, np.dtype(f"int{width}"))
        return wrapped(signed >> b.select(inside, n, width - 1), dtype)
    moved = x << n if name == "shift_left" else b.emit(x.type, f"{kind}.shr_u", wrapped(x, unsigned(dtype)), n)
    return b.select(inside, wrapped(moved, dtype), moved.like(0))


def divided(dtype: np.dtype, x: WasmValue, y: WasmValue) -> WasmValue:
    """By zero -1, and the least number by -1 itself; the instruction traps at both."""
    b, kind = x.b, WASM[x.type]
    zero, signed = y.compare("==", 0), dtype.kind == "i"
    turned = y.compare("==", -1) if signed else b.const(False, "i1")
    quotient = b.emit(x.type, f"{kind}.div_{'s' if signed else 'u'}", x, b.select(zero | turned, y.like(1), y))
    quotient = b.select(turned, wrapped(-x, dtype), quotient)
    return b.select(zero, wrapped(y.like(-1), dtype), quotient)


# --- conversions ---


def cast(x: WasmValue, source: np.dtype, target: np.dtype) -> WasmValue:
    """Floats to whole numbers saturate, and NaN gives 0; whole numbers wrap."""
    if source == target:
        return x
    if source in HALVES:
        return cast(halves.widened(x, source), FLOAT32, target)
    if target in HALVES:
        return halves.narrowed(cast(x, source, FLOAT32), target)
    if target.kind == "b":
        return x.compare("!=", 0)
    if source.kind == "f":
        return _from_float(x, target)
    return _from_whole(x, source, target)


def _from_float(x: WasmValue, target: np.dtype) -> WasmValue:
    b, type = x.b, type_of(target)
    if target.kind == "f":
        return x if type == x.type else b.convert("fptrunc" if type == "float" else "fpext", x, type)
    sign = "s" if target.kind == "i" else "u"
    whole = b.emit(type, f"{WASM[type]}.trunc_sat_{WASM[x.type]}_{sign}", x)
    if target.itemsize >= 4:
        return whole
    limits, wide = np.iinfo(target), np.dtype(f"{target.name.rstrip('0123456789')}32")
    low = operate("max", wide, whole, whole.like(limits.min)) if sign == "s" else whole
    return operate("min", wide, low, whole.like(limits.max))


def _from_whole(x: WasmValue, source: np.dtype, target: np.dtype) -> WasmValue:
    b, type, sign = x.b, type_of(target), "s" if source.kind == "i" else "u"
    if type in LANES:
        return b.emit(type, f"{WASM[type]}.convert_{WASM[x.type]}_{sign}", x)
    if type == "i64" and x.type != "i64":
        return b.emit(type, f"i64.extend_i32_{sign}", x)
    if type == "i32" and x.type == "i64":
        x = b.convert("trunc", x, "i32")
    return wrapped(WasmValue(b, type, x.text), target)


def bitcast(x: WasmValue, source: np.dtype, target: np.dtype) -> WasmValue:
    """The same bits."""
    type = type_of(target)
    if x.type == type:
        return wrapped(x, target)
    return x.b.convert("bitcast", x, type)
