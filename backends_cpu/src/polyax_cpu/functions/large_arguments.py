"""Sine, cosine and tangent of any float32 or float64. Large arguments are rare: an out-of-line call corrects their
results, and loops call its vector variants, which cost one test when no lane is large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from polyax_cpu.functions import reduction
from polyax_cpu.functions.variants import variant, with_variants
from polyax_cpu.llvm import IrValue, Module, vector
from polyax_cpu.processors import host
from polyax_kernels.emit.functions import circular, circular_double
from polyax_kernels.emit.functions.blocks import Function, absolute, select

_PURE = "nounwind willreturn memory(none)"
_KEEP = "preserve_allcc"  # the callee saves all registers: a call that is almost never made costs its caller none
KINDS = ("sin", "cos", "tan")


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
        return name if width == 1 else variant(name, width)

    def _compute(self, kind: str, x: IrValue) -> IrValue:
        """What is near, unless ``x`` is so large that it is wrong."""
        near, b = self.near(kind, x), x.b
        if x.lanes > 1:
            return self._corrected(kind, x, near)
        name = f"polyax_{kind}_{self.type}_far"
        if name not in b.module.functions:
            self._define_far(b.module, kind, name)
        return b.call(self.type, name, x, near)

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
        wide = vector(self.type, width)
        params = [(wide, "x"), (wide, "near")]
        b = module.function(f"{_KEEP} {wide}", self._exact(kind, width), params, f"noinline {_PURE}")
        b.ret(b.pieces(1, lambda *xs: b.call(self.type, self._exact(kind), *xs), *b.args))

    # --- in each kernel ---

    def _define_far(self, module: Module, kind: str, name: str) -> None:
        """``far(x, near)`` and, for the loop vectoriser, the same for several lanes."""
        params = [(self.type, "x"), (self.type, "near")]
        far = module.function(self.type, name, params, f"noinline {_PURE} {with_variants(name, 2, self.lanes)}")
        far.ret(self._corrected(kind, *far.args))
        for width in self.lanes:
            wide = vector(self.type, width)
            lanes = module.function(wide, variant(name, width), [(wide, "x"), (wide, "near")], f"alwaysinline {_PURE}")
            lanes.ret(self._corrected(kind, *lanes.args))
        module.keep(*(variant(name, w) for w in self.lanes))

    def _corrected(self, kind: str, x: IrValue, near: IrValue) -> IrValue:
        """One test when all lanes are near."""
        b, (narrow, wide) = x.b, self.lanes
        width = 1 if x.lanes == 1 else wide if x.lanes >= wide and host().vector_bits == 512 else narrow
        call = b.call if width == 1 else self._call_exact
        exact = partial(call, self.type, self._exact(kind, width))
        return b.choose(b.any(absolute(x) >= self.bound), lambda: b.pieces(width, exact, x, near), near)

    def _call_exact(self, type: str, name: str, x: IrValue, near: IrValue) -> IrValue:
        wide = vector(type, x.lanes)
        x.b.module.declare(name, f"{_KEEP} {wide} @{name}({wide}, {wide}) cold {_PURE}")
        return x.b.call_lanes(type, name, x, near, flags=_KEEP)


def _near(kind: str, x: IrValue) -> IrValue:
    return {"sin": circular.sin, "cos": circular.cos, "tan": circular.tan}[kind](x)


SINGLE = Circular("float", circular.NEAR, (8, 16), _near, reduction.single)
DOUBLE = Circular("double", circular_double.NEAR, (4, 8), circular_double.near, reduction.double)
