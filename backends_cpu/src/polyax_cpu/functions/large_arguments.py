"""Sine, cosine and tangent of any float32 or float64. Large arguments are rare: an out-of-line call corrects their
results, and loops call its vector variants, which cost one test when no lane is large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from polyax_cpu.functions import reduction
from polyax_cpu.functions.lanes import with_variants
from polyax_cpu.llvm import IrValue, Module
from polyax_kernels.emit.functions import circular, circular_double
from polyax_kernels.emit.functions.blocks import Function, absolute, select

_PURE = "nounwind willreturn memory(none)"
_KEEP = "preserve_allcc"  # the callee saves all registers: a call that is almost never made costs its caller none
KINDS = ("sin", "cos", "tan")
SUFFIX = {"float": "f32", "double": "f64"}


@dataclass(frozen=True)
class Circular:
    """The functions of a type: ``near`` is right below ``bound``, ``far`` from there on, for a function's name and its
    argument. Kernels call the ``exports``, functions of an argument and of what ``near`` gives, for one element and
    for several."""

    type: str
    bound: float
    lanes: tuple[int, ...]
    """Of AVX2 and AVX-512; narrower vectors call once for each element. LLVM ends a function that returns no wide
    vector with ``vzeroupper``, which spoils the registers that ``preserve_allcc`` has it keep."""
    near: Callable[[str, IrValue], IrValue]
    far: Callable[[str, IrValue], IrValue]

    @property
    def functions(self) -> dict[str, Function]:
        return {kind: partial(self._compute, kind) for kind in KINDS}

    @property
    def exports(self) -> tuple[str, ...]:
        return tuple(self._exact(kind, width) for kind in KINDS for width in (1, *self.lanes))

    def _exact(self, kind: str, width: int = 1) -> str:
        name = f"polyax_{kind}_{self.type}_exact"
        return name if width == 1 else f"{name}_v{width}"

    def _compute(self, kind: str, x: IrValue) -> IrValue:
        """What is near, unless ``x`` is so large that it is wrong."""
        name, module = f"polyax_{kind}_{self.type}_far", x.b.module
        if name not in module.functions:
            self._define_far(module, kind, name)
        return x.b.call(self.type, name, x, self.near(kind, x))

    # --- compiled once for all kernels ---

    def source(self) -> str:
        """The text of the functions for all arguments."""
        module = Module(self.exports)
        for kind in KINDS:
            params = [(self.type, "x"), (self.type, "near")]
            b = module.function(self.type, self._exact(kind), params, f"noinline {_PURE}")
            x, near = b.args
            b.ret(select(absolute(x) >= self.bound, self.far(kind, x), near))
            for width in self.lanes:
                self._define_lanes(module, kind, width)
        return module.text()

    def _define_lanes(self, module: Module, kind: str, width: int) -> None:
        vector, exact = f"<{width} x {self.type}>", self._exact(kind)
        params = [(vector, "x"), (vector, "near")]
        b = module.function(f"{_KEEP} {vector}", self._exact(kind, width), params, f"noinline {_PURE}")
        result = b.args[1]
        for lane in range(width):
            operands = (b.emit(self.type, f"extractelement {v}, i64 {lane}") for v in b.args)
            result = b.emit(vector, f"insertelement {result}, {b.call(self.type, exact, *operands)}, i64 {lane}")
        b.ret(result)

    # --- in each kernel ---

    def _define_far(self, module: Module, kind: str, name: str) -> None:
        """``far(x, near)`` and, for the loop vectoriser, the same for several lanes: one test when all are near."""
        params = [(self.type, "x"), (self.type, "near")]
        far = module.function(self.type, name, params, f"noinline {_PURE} {with_variants(name, 2, self.lanes)}")
        x, near = far.args
        call = lambda: far.call(self.type, self._exact(kind), x, near)
        far.ret(far.choose(absolute(x) >= self.bound, call, near))
        for width in self.lanes:
            self._define_test(module, self._exact(kind, width), f"{name}_v{width}", width)
        module.keep(*(f"{name}_v{w}" for w in self.lanes))

    def _define_test(self, module: Module, exact: str, name: str, width: int) -> None:
        vector = f"<{width} x {self.type}>"
        b = module.function(vector, name, [(vector, "x"), (vector, "near")], f"alwaysinline {_PURE}")
        x, near = b.args
        size = b.call(vector, f"llvm.fabs.v{width}{SUFFIX[self.type]}", x)
        limit = ", ".join([str(b.const(self.bound, self.type))] * width)
        mask = b.emit(f"<{width} x i1>", f"fcmp oge {size}, <{limit}>")
        some = b.convert("bitcast", mask, f"i{width}").compare("!=", 0)
        declared = f"{_KEEP} {vector} @{exact}({vector}, {vector}) cold {_PURE}"
        module.declare(exact, declared)
        b.ret(b.choose(some, lambda: b.emit(vector, f"call {_KEEP} {vector} @{exact}({x}, {near})"), near))


def _near(kind: str, x: IrValue) -> IrValue:
    return {"sin": circular.sin, "cos": circular.cos, "tan": circular.tan}[kind](x)


SINGLE = Circular("float", circular.NEAR, (8, 16), _near, reduction.single)
DOUBLE = Circular("double", circular_double.NEAR, (4, 8), circular_double.near, reduction.double)
