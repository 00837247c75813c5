"""Kernels as C functions; CUDA and OpenCL are dialects of it.

A subclass overrides what differs between the languages: ``types``, ``header``, ``signature``, ``function`` and the
loop pragmas. The emitter knows no kernels beyond the operands that it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from polyax_kernels.emit import c_helpers, narrow
from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.ir.expr import COMPARISONS, INT
from polyax_kernels.ir.kernel import Kernel, Schedule
from polyax_kernels.ir.limits import FLOAT32

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_SAME_IN_C = (
    "floor", "ceil", "trunc", "round", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "pow", "erf", "erfc", "lgamma",
    "nextafter",
)  # fmt: skip
MATH = {name: name for name in _SAME_IN_C} | {"abs": "fabs", "round_even": "rint", "rem": "fmod"}
"""The table's names of floating-point operations, and C's."""
REDUCTIONS = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}


class CEmitter(Emitter[str]):
    """Collects the text of one function; values are the names of its variables or literals."""

    types: ClassVar = {
        "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
        "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
        "float16": "_Float16", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
    }  # fmt: skip
    packed: ClassVar = frozenset(("bfloat16",))
    """The floats that the language doesn't have: they are 16 bits in memory and in variables."""
    long: ClassVar[str] = "LL"
    """How literals of 64 bits end."""
    inline: ClassVar[str] = "static inline"
    """What stands before a helper function."""
    header = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n"

    def __init__(self, kernel: Kernel, name: str = "kernel", index_dtype: np.dtype = INT) -> None:
        self.kernel = kernel
        self.name = name
        self.index_dtype = index_dtype
        self.lines: list[str] = []
        self.helpers: dict[str, str] = {}
        self._names = 0

    # --- the dialect ---

    def signature(self) -> list[str]:
        """The opening lines of the function: its arguments, and the operands by the names ``b0``, ``b1``, ..."""
        arguments = "void **buffers, const int64_t *scalars, int64_t begin, int64_t end"
        slots = [n for n, o in enumerate(self.kernel.operands) if o.role != "local"]
        types = [self.memory_type(self.kernel.operands[n].dtype) for n in slots]
        declared = [f"  {t} *b{n} = ({t} *)buffers[{k}];" for k, (n, t) in enumerate(zip(slots, types, strict=True))]
        return [f"void {self.name}({arguments}) {{", *declared]

    def function(self, name: str, dtype: np.dtype) -> str:
        """The name of a function of the mathematical library for ``dtype``."""
        return name + "f" if dtype.itemsize == 4 else name

    def vector_pragma(self, reduction: str = "") -> None:
        self.lines.append("#pragma omp simd" + reduction)

    def memory_type(self, dtype: np.dtype) -> str:
        """Booleans are bytes in memory, of which all but 0 are true."""
        return "uint8_t" if dtype.kind == "b" else self.types[dtype.name]

    # --- values ---

    def supports(self, name: str, dtype: np.dtype) -> bool:
        if name in INFIX or name in ("neg", "not", "select", "div", "max", "min") or name in c_helpers.SHIFTS:
            return True
        return name in MATH if dtype.kind == "f" else name in ("floordiv", "mod")

    def fresh(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def value(self, dtype: np.dtype, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"const {self.types[dtype.name]} {name} = {text};")
        return name

    def const(self, value: Any, dtype: np.dtype) -> str:
        if dtype.kind in "biu":
            return c_helpers.whole(int(value), dtype, self.types[dtype.name], self.long)
        if dtype.itemsize >= 4:
            return c_helpers.real(dtype.type(value))
        return self.cast(c_helpers.real(FLOAT32.type(value)), FLOAT32, dtype)

    def param(self, position: int, dtype: np.dtype) -> str:
        return f"({self.types[dtype.name]})scalars[{position}]"

    def op(self, name: str, dtype: np.dtype, *args: str) -> str:
        return self.value(np.dtype(bool) if name in COMPARISONS else dtype, self.expression(name, dtype, args))

    def expression(self, name: str, dtype: np.dtype, args: Sequence[str]) -> str:
        if name == "select":
            return f"{args[0]} ? {args[1]} : {args[2]}"
        if dtype.kind == "f" and name not in ("max", "min"):
            return self.real_expression(name, dtype, args)
        if name in INFIX:
            return self.whole_expression(INFIX[name], dtype, args)
        if name in ("neg", "not"):
            return (
                f"!{args[0]}" if dtype.kind == "b" else self.whole_expression("-~"[name == "not"], dtype, ("", *args))
            )
        return f"{self.helper(c_helpers.operation(name, dtype, self.types))}({', '.join(args)})"

    def real_expression(self, name: str, dtype: np.dtype, args: Sequence[str]) -> str:
        if name in INFIX or name == "div":
            return f"{args[0]} {INFIX.get(name, '/')} {args[1]}"
        return f"-{args[0]}" if name == "neg" else f"{self.function(MATH[name], dtype)}({', '.join(args)})"

    def whole_expression(self, sign: str, dtype: np.dtype, args: Sequence[str]) -> str:
        """Unsigned arithmetic wraps; that of int64, which counts elements, is left for the optimiser to see through."""
        if sign in "== != <= >=" or dtype.name in ("bool", "int64"):
            return f"{args[0]} {sign} {args[1]}"
        wide = self.types["uint64" if dtype.itemsize == 8 else "uint32"]
        left = f"({wide}){args[0]} " if args[0] else ""
        return f"({self.types[dtype.name]})({left}{sign} ({wide}){args[1]})"

    def helper(self, named: tuple[str, str]) -> str:
        """Asks for a helper function; returns its name."""
        name, text = named
        self.helpers.setdefault(name, text)
        return name

    def cast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        if {source.name, target.name} & self.packed or (source.name == "float16" and target.kind in "iu"):
            return self.cast_through_float(x, source, target)
        if target.kind == "b":
            return self.value(target, f"{x} != 0")
        if target.kind in "iu" and source.kind == "f":
            return self.value(target, f"{self.helper(c_helpers.saturate(source, target, self.types, self.long))}({x})")
        return self.value(target, f"({self.types[target.name]}){x}")

    def cast_through_float(self, x: str, source: np.dtype, target: np.dtype) -> str:
        if source.name in self.packed:
            x, source = self.value(FLOAT32, narrow.widened(self, x, source)), FLOAT32
        elif source != FLOAT32:
            x, source = self.cast(x, source, FLOAT32), FLOAT32
        if target.name in self.packed:
            return self.value(target, narrow.narrowed(self, x, target))
        return x if target == FLOAT32 else self.cast(x, source, target)

    def bitcast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        if self.types[source.name] == self.types[target.name]:
            return x
        return self.value(target, f"{self.helper(c_helpers.bitcast(source, target, self.types))}({x})")

    # --- memory and control ---

    def load(self, slot: int, offset: str, dtype: np.dtype, mask: str | None = None, other: str | None = None) -> str:
        element = f"b{slot}[{offset}]" + (" != 0" if dtype.kind == "b" else "")
        return self.value(dtype, element if mask is None else f"{mask} ? {element} : {other}")

    def store(self, slot: int, offset: str, value: str, dtype: np.dtype, mask: str | None = None) -> None:
        self.lines.append(("" if mask is None else f"if ({mask}) ") + f"b{slot}[{offset}] = {value};")

    def loop(self, start: str, stop: str, body: Callable[[str], None], *, hint: str = "") -> None:
        if "vector" in hint:
            self.vector_pragma()
        self.count(start, stop, "1", body)

    def count(self, start: str, stop: str, step: str, body: Callable[[str], None]) -> None:
        """A loop in steps of ``step``."""
        i, kind = self.fresh("i"), self.types[self.index_dtype.name]
        self.lines.append(f"for ({kind} {i} = {start}; {i} < {stop}; {i} += {step}) {{")
        body(i)
        self.lines.append("}")

    def fold(
        self,
        stop: str,
        inits: Sequence[str],
        dtypes: Sequence[np.dtype],
        body: Callable[[str, Sequence[str]], Sequence[str]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[str]:
        carries = [self.fresh("c") for _ in inits]
        for c, dtype, init in zip(carries, dtypes, inits, strict=True):
            self.lines.append(f"{self.types[dtype.name]} {c} = {init};")
        if combines and all(name in REDUCTIONS for name in combines):
            pairs = zip(combines, carries, strict=True)
            self.vector_pragma("".join(f" reduction({REDUCTIONS[name]}:{c})" for name, c in pairs))

        def step(i: str) -> None:
            results = body(i, carries)
            self.lines.extend(f"{c} = {r};" for c, r in zip(carries, results, strict=True))

        self.count("0", stop, "1", step)
        return carries

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        self.lines.append(f"{self.memory_type(dtype)} b{slot}[{max(1, size)}];")

    def barrier(self) -> None:
        pass


def program(functions: Sequence[CEmitter]) -> str:
    """The text of a program with these functions; they share their helpers."""
    helpers = {name: text for f in functions for name, text in f.helpers.items()}
    bodies = ["\n".join([*f.signature(), *_indented(f.lines), "}", ""]) for f in functions]
    dialect = functions[0]
    return "\n".join([dialect.header, *(f"{dialect.inline} {text}" for text in helpers.values()), *bodies])


def _indented(lines: Sequence[str]) -> Iterator[str]:
    depth = 1
    for line in lines:
        depth -= line.startswith("}")
        yield "  " * depth + line
        depth += line.endswith("{")


def c_source(kernel: Kernel, schedule: Schedule, name: str = "kernel") -> str:
    """A C99 program with one function, ``void NAME(void **, const int64_t *, int64_t begin, int64_t end)``."""
    emitter = CEmitter(kernel, name, schedule.index_dtype)
    emit_kernel(kernel, schedule, emitter, "begin", "end")
    return program([emitter])
