"""Elementary functions of float32 as OpenCL C, for processors: their own are calls, which keep loops from being
vectorised.

The mathematics is shared with other processors' backends (``polyax_kernels.emit.functions``); here it becomes C.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from polyax_kernels.api.emitters import TABLE, Helper, Operators, real

TYPES = {"float": "float", "double": "double", "i32": "int", "i64": "long", "i1": "bool"}
UNSIGNED = {"i32": "uint", "i64": "ulong"}
BINARY = ("atan2", "pow")
PROCESSOR = "PROCESSOR"
"""Defined where the device is a processor, programmed through clang."""
FLOATS = {"float": np.float32, "double": np.float64}


class Variable(Operators):
    """A ``polyax_kernels.emit.functions.blocks.Value``: a variable of the function that ``b`` writes, or a literal."""

    def __init__(self, b: Writer, type: str, text: str) -> None:
        self.b = b
        self.type = type
        self.text = text

    def like(self, x: Any) -> Variable:
        if isinstance(x, Variable):
            return x
        if self.type in FLOATS:
            return Variable(self.b, self.type, real(FLOATS[self.type](x)))
        return Variable(self.b, self.type, f"({TYPES[self.type]}){int(x)}")

    def compare(self, relation: str, other: Any) -> Variable:
        return self.b.value("i1", f"{self.text} {relation} {self.like(other).text}")

    def infix(self, sign: str, other: Any, swap: bool = False) -> Variable:
        """Integers are computed without sign: then they wrap."""
        x, y = (self.like(other), self) if swap else (self, self.like(other))
        if self.type not in UNSIGNED or sign == ">>":
            return self.b.value(self.type, f"{x.text} {sign} {y.text}")
        kind = UNSIGNED[self.type]
        return self.b.value(self.type, f"({TYPES[self.type]})(({kind}){x.text} {sign} ({kind}){y.text})")

    def __neg__(self) -> Variable:
        return self.b.value(self.type, f"-{self.text}")

    def __invert__(self) -> Variable:
        return self.b.value(self.type, f"{'!' if self.type == 'i1' else '~'}{self.text}")


class Writer:
    """Writes the statements of one function."""

    scales = False
    """No built-in function of ours multiplies by powers of two in vectors."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, type: str, text: str) -> Variable:
        name = f"v{len(self.lines)}"
        self.lines.append(f"  const {TYPES[type]} {name} = {text};")
        return Variable(self, type, name)

    def select(self, condition: Variable, x: Any, y: Any) -> Variable:
        typed = x if isinstance(x, Variable) else y if isinstance(y, Variable) else Variable(self, "float", "")
        return self.value(typed.type, f"{condition.text} ? {typed.like(x).text} : {typed.like(y).text}")

    def convert(self, operation: str, x: Variable, type: str) -> Variable:
        kind = TYPES[type]
        return self.value(type, f"as_{kind}({x.text})" if operation == "bitcast" else f"({kind}){x.text}")

    def intrinsic(self, name: str, *args: Variable) -> Variable:
        suffix = "f" if args[0].type == "float" else ""
        name = "rint" if name == "roundeven" else name
        return self.value(args[0].type, f"__builtin_{name}{suffix}({', '.join(a.text for a in args)})")


@cache
def function(name: str) -> Helper:
    """The function ``name`` of float32: our own on processors, the device's elsewhere."""
    writer, names = Writer(), [f"x{n}" for n in range(2 if name in BINARY else 1)]
    result = TABLE[name](*(Variable(writer, "float", x) for x in names))
    own = "\n".join([*writer.lines, f"  return {result.text};"])
    arguments = ", ".join(f"float {x}" for x in names)
    body = f"#ifdef {PROCESSOR}\n{own}\n#else\n  return {name}({', '.join(names)});\n#endif"
    return f"polyax_{name}", f"float polyax_{name}({arguments}) {{\n{body}\n}}"
