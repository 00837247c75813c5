"""Functions of single values, written once more for vectors: what calls one in a loop calls the other when LLVM has
made vectors of the loop."""

from __future__ import annotations

from typing import Any

from polyax_cpu.llvm import Builder, IrValue, Module, Params, literal

SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}


class LaneValue(IrValue):
    """A vector that is used like a single value: ``type`` is the type of a lane."""

    __slots__ = ()
    b: Lanes

    def __str__(self) -> str:
        return f"{self.b.vector(self.type)} {self.name}"

    def like(self, x: IrValue | float) -> IrValue:
        return x if isinstance(x, IrValue) else self.b.const(x, self.type)


class Lanes(Builder):
    """Writes a function over vectors of ``width`` lanes; types are given as those of a lane."""

    def __init__(self, module: Module, result: str, name: str, params: Params, tail: str, width: int) -> None:
        self.width = width
        vectors = [(self.vector(type), param) for type, param in params]
        super().__init__(module, self.vector(result), name, vectors, tail)
        self.args = [LaneValue(self, type, f"%{param}") for type, param in params]

    def vector(self, type: str) -> str:
        return f"<{self.width} x {type}>"

    def emit(self, type: str, text: str) -> IrValue:
        return LaneValue(self, type, super().emit(type, text).name)

    def const(self, value: Any, type: str) -> IrValue:
        return LaneValue(self, type, f"splat ({type} {literal(value, type)})")

    def convert(self, operation: str, x: IrValue, type: str) -> IrValue:
        return self.emit(type, f"{operation} {x} to {self.vector(type)}")

    def intrinsic(self, name: str, *args: IrValue) -> IrValue:
        type = args[0].type
        return self._call(type, f"llvm.{name}.v{self.width}{SUFFIX.get(type, type)}", *args)

    def call(self, result: str, name: str, *args: IrValue, declare: str | None = None) -> IrValue:
        """Calls the function's variant for vectors."""
        return self._call(result, variant(name, self.width), *args)

    def _call(self, result: str, name: str, *args: IrValue) -> IrValue:
        vector = self.vector(result)
        self.module.declare(name, f"{vector} @{name}({', '.join(self.vector(a.type) for a in args)})")
        return self.emit(result, f"call {vector} @{name}({', '.join(map(str, args))})")


def variant(name: str, width: int) -> str:
    """What the function ``name`` is called for vectors."""
    return f"{name}_v{width}"


def with_variants(name: str, arity: int, widths: tuple[int, ...]) -> str:
    """The attribute by which the loop vectoriser finds the variants of ``name``."""
    known = (f"_ZGV_LLVM_N{w}{'v' * arity}_{name}({variant(name, w)})" for w in widths)
    return f'"vector-function-abi-variant"="{",".join(known)}"'
