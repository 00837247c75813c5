"""Elementary functions: the shared table's, each defined once in the module that uses it.

Where the table ends, for angles of many turns and for the gamma function of float64, the host computes.
"""

from __future__ import annotations

from polyax_kernels.api.emitters import FUNCTIONS
from polyax_wasm.code import WasmValue

CIRCULAR = ("sin", "cos", "tan")
HOST = ("lgamma",)
"""What the shared table has for float32 only."""
REMAINDER = """  (func $rem (param $x f64) (param $y f64) (result f64) (local $a f64) (local $b f64) (local $t f64)
    (local.set $a (f64.abs (local.get $x)))
    (local.set $b (f64.abs (local.get $y)))
    (local.set $t (local.get $b))
    (if (i32.eqz (i32.and (f64.lt (local.get $a) (f64.const inf)) (f64.gt (local.get $b) (f64.const 0))))
      (then (return (f64.const nan))))
    (if (f64.lt (local.get $a) (local.get $b)) (then (return (local.get $x))))
    (block $high (loop $up ;; the greatest multiple by a power of two, all of which are exact
      (br_if $high (f64.gt (local.get $t) (f64.sub (local.get $a) (local.get $t))))
      (local.set $t (f64.add (local.get $t) (local.get $t)))
      (br $up)))
    (block $low (loop $down
      (if (f64.ge (local.get $a) (local.get $t)) (then (local.set $a (f64.sub (local.get $a) (local.get $t)))))
      (br_if $low (f64.eq (local.get $t) (local.get $b)))
      (local.set $t (f64.mul (local.get $t) (f64.const 0.5)))
      (br $down)))
    (f64.copysign (local.get $a) (local.get $x)))"""
"""The remainder has the dividend's sign, and no rounding."""


def supports(name: str, type: str) -> bool:
    return name in FUNCTIONS[type] or name == "rem" or name in HOST


def call(name: str, *args: WasmValue) -> WasmValue:
    """Applies a function to operands of float32 or float64."""
    b, type = args[0].b, args[0].type
    if name == "rem" or name not in FUNCTIONS[type]:
        return _in_double(name, *args)
    symbol, function = f"${name}_{type}", FUNCTIONS[type][name]
    body = (lambda x: _with_large(name, x, function(x))) if name in CIRCULAR else function
    b.module.define(symbol, [type] * len(args), type, body)
    return b.emit(type, f"call {symbol}", *args)


def _in_double(name: str, *args: WasmValue) -> WasmValue:
    """The remainder, whose result is exact in either type, and what the host computes."""
    b = args[0].b
    if name == "rem":
        b.module.need("$rem", REMAINDER)
    symbol = "$rem" if name == "rem" else b.module.from_host(name)
    return narrow(b.emit("double", f"call {symbol}", *map(wide, args)), args[0].type)


def _with_large(name: str, x: WasmValue, near: WasmValue) -> WasmValue:
    """The table says NaN for angles that it doesn't know."""
    b = x.b
    far = near.compare("!=", near) & (b.intrinsic("fabs", x) < float("inf"))
    asked = f"(call {b.module.from_host(name)} {wide(x).text})"
    return b.either(far, x.type, asked if x.type == "double" else f"(f32.demote_f64 {asked})", near.text)


def wide(x: WasmValue) -> WasmValue:
    return x if x.type == "double" else x.b.convert("fpext", x, "double")


def narrow(x: WasmValue, type: str) -> WasmValue:
    return x if type == "double" else x.b.convert("fptrunc", x, type)
