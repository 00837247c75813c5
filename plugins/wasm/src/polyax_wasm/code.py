"""WebAssembly as text: typed values with arithmetic operators, functions in the writing, modules of them.

Values are what the shared elementary functions compute with (``Value`` of ``polyax_kernels.api.emitters``), and what
the emitter gives to the kernel walker. Knows types and instructions; nothing of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax_kernels.api.emitters import Operators

WASM = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i1": "i32"}
"""What holds values of each type; truth values are 0 or 1."""
INFIX = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "shr_s",
}  # fmt: skip
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
CONVERT = {
    ("sitofp", "i32", "float"): "f32.convert_i32_s",
    ("sitofp", "i32", "double"): "f64.convert_i32_s",
    ("sitofp", "i64", "float"): "f32.convert_i64_s",
    ("sitofp", "i64", "double"): "f64.convert_i64_s",
    ("fptrunc", "double", "float"): "f32.demote_f64",
    ("fpext", "float", "double"): "f64.promote_f32",
    ("trunc", "i64", "i32"): "i32.wrap_i64",
    ("bitcast", "float", "i32"): "i32.reinterpret_f32",
    ("bitcast", "double", "i64"): "i64.reinterpret_f64",
    ("bitcast", "i32", "float"): "f32.reinterpret_i32",
    ("bitcast", "i64", "double"): "f64.reinterpret_i64",
}
"""Conversions of the shared functions, by LLVM's names."""
INTRINSICS = {"fabs": "abs", "copysign": "copysign", "sqrt": "sqrt", "floor": "floor", "roundeven": "nearest"}
LANES = {"float": "f32x4", "double": "f64x2"}
"""Only vectors have an instruction that multiplies and adds with one rounding."""


def literal(value: Any, type: str) -> str:
    if type not in LANES:
        return str(int(value))
    number = float(np.float32(value)) if type == "float" else float(value)
    return number.hex() if np.isfinite(number) else str(number)


class WasmValue(Operators):
    """A value in a function. ``type`` is ``float``, ``double``, ``i32``, ``i64`` or ``i1``; operators take integers as
    signed, and Python's numbers as of the other operand's type."""

    __slots__ = ("b", "text", "type")

    def __init__(self, b: WasmFunction, type: str, text: str) -> None:
        self.b = b
        self.type = type
        self.text = text

    def like(self, x: Any) -> WasmValue:
        return x if isinstance(x, WasmValue) else self.b.const(x, self.type)

    def infix(self, sign: str, other: Any, swap: bool = False) -> WasmValue:
        x, y = (self.like(other), self) if swap else (self, self.like(other))
        return self.b.emit(self.type, f"{WASM[self.type]}.{INFIX[sign]}", x, y)

    def compare(self, relation: str, other: Any) -> WasmValue:
        sign = "" if self.type in LANES or relation in ("==", "!=") else "_s"
        return self.b.emit("i1", f"{WASM[self.type]}.{COMPARE[relation]}{sign}", self, self.like(other))

    def __neg__(self) -> WasmValue:
        return self.b.emit(self.type, f"{WASM[self.type]}.neg", self) if self.type in LANES else 0 - self

    def __invert__(self) -> WasmValue:
        return self ^ (1 if self.type == "i1" else -1)


class WasmFunction:
    """A function in the writing: its parameters, locals and lines."""

    scales = False
    """Whether there is an instruction that multiplies by powers of two."""

    def __init__(self, module: WasmModule, head: str, params: Sequence[str], result: str | None = None) -> None:
        self.module = module
        self.args = [WasmValue(self, type, f"(local.get $x{n})") for n, type in enumerate(params)]
        given = [f"(param $x{n} {WASM[type]})" for n, type in enumerate(params)]
        self._head = " ".join([head, *given, *([] if result is None else [f"(result {WASM[result]})"])])
        self._locals: list[str] = []
        self._lines: list[str] = []

    def text(self) -> str:
        return "\n    ".join([f"  (func {self._head}", " ".join(self._locals), *self._lines]) + ")"

    def line(self, text: str) -> None:
        self._lines.append(text)

    def variable(self, type: str, first: str) -> WasmValue:
        """A local that holds ``first``, an expression's text."""
        name = f"$v{len(self._locals)}"
        self._locals.append(f"(local {name} {WASM[type]})")
        value = WasmValue(self, type, f"(local.get {name})")
        self.assign(value, first)
        return value

    def assign(self, variable: WasmValue, text: str) -> None:
        self.line(f"(local.set {variable.text.split()[1][:-1]} {text})")

    def const(self, value: Any, type: str) -> WasmValue:
        return WasmValue(self, type, f"({WASM[type]}.const {literal(value, type)})")

    def emit(self, type: str, operation: str, *args: WasmValue) -> WasmValue:
        """The result of an instruction or a call."""
        return self.variable(type, f"({' '.join([operation, *[x.text for x in args]])})")

    def either(self, condition: WasmValue, type: str, then: str, other: str) -> WasmValue:
        """One of two expressions, of which only that one is evaluated."""
        kind = f"(result {WASM[type]})"
        return self.variable(type, f"(if {kind} {condition.text} (then {then}) (else {other}))")

    def select(self, condition: WasmValue, x: Any, y: Any) -> WasmValue:
        x = x if isinstance(x, WasmValue) else y.like(x)
        return self.emit(x.type, "select", x, x.like(y), condition)

    def convert(self, operation: str, x: WasmValue, type: str) -> WasmValue:
        return self.emit(type, CONVERT[operation, x.type, type], x)

    def intrinsic(self, name: str, *args: WasmValue) -> WasmValue:
        type = args[0].type
        if name != "fma":
            return self.emit(type, f"{WASM[type]}.{INTRINSICS[name]}", *args)
        lanes = LANES[type]
        spread = " ".join(f"({lanes}.splat {x.text})" for x in args)
        return self.variable(type, f"({lanes}.extract_lane 0 ({lanes}.relaxed_madd {spread}))")

    def count(self, start: WasmValue, stop: WasmValue, body: Callable[[WasmValue], None]) -> None:
        """``for i in range(start, stop): body(i)``."""
        i = self.variable(start.type, start.text)
        n, kind = len(self._locals), WASM[start.type]
        self.line(f"(block $end{n} (loop $next{n} (br_if $end{n} ({kind}.ge_s {i.text} {stop.text}))")
        body(i)
        self.assign(i, f"({kind}.add {i.text} ({kind}.const 1))")
        self.line(f"(br $next{n})))")


class WasmModule:
    """A module that imports the linear memory of its device, and exports ``kernel``."""

    def __init__(self) -> None:
        self.imports = ['(import "device" "memory" (memory 1))']
        self.functions: dict[str, str] = {}
        """Their texts, by their names."""

    def define(self, name: str, params: Sequence[str], result: str, body: Callable[..., WasmValue]) -> None:
        """The function ``name``, which ``body`` makes of its arguments, unless it is there."""
        if name not in self.functions:
            self.functions[name] = ""  # its place, before those that it needs
            function = WasmFunction(self, name, params, result)
            function.line(body(*function.args).text)
            self.functions[name] = function.text()

    def need(self, name: str, text: str) -> None:
        """A function that was written by hand."""
        self.functions.setdefault(name, text)

    def from_host(self, name: str, arity: int = 1) -> str:
        """A function of numbers of float64 that the host computes; its name in this module."""
        params = " ".join(["f64"] * arity)
        text = f'(import "host" "{name}" (func $host_{name} (param {params}) (result f64)))'
        if text not in self.imports:
            self.imports.append(text)
        return f"$host_{name}"

    def text(self) -> str:
        return "\n".join(["(module", *(f"  {text}" for text in self.imports), *self.functions.values()]) + "\n)\n"
