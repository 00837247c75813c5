"""Kernels as modules of WebAssembly: what the kernel walker asks for, in terms of a function in the writing.

A kernel finds what it is called with at the beginning of the linear memory, in words of 64 bits: the range of its first
grid axis, the addresses of its operands, then scalars. Its scratch is behind these. So one runs at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax_kernels.api.emitters import Emitter, Kernel, choose, emit_kernel
from polyax_kernels.api.lowerings import COMPARISONS, INT, Limits
from polyax_wasm import functions, numbers
from polyax_wasm.code import WASM, WasmFunction, WasmModule, WasmValue
from polyax_wasm.numbers import compared, type_of

FRAME = 1 << 20
"""Bytes at the beginning of the memory, which are no array's."""
WORD = 8
WORDS = 1024
"""How many a kernel may be called with."""
BLOCK = 7
"""The binary logarithm of the numbers that long sums add up apart."""
FLOATS = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "neg": "neg", "abs": "abs", "max": "max", "min": "min",
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "nearest",
}  # fmt: skip
"""Extrema are the table's: NaN wins, and -0 < +0."""


class WasmEmitter(Emitter[WasmValue]):
    """Each value is a local variable of the function, which the engine's compiler finds registers for."""

    def __init__(self, kernel: Kernel, index_dtype: np.dtype) -> None:
        self.module = WasmModule()
        self.b = WasmFunction(self.module, '(export "kernel")', ())
        self.begin, self.end = (self.cast(self.word(n), INT, index_dtype) for n in range(2))
        passed = [slot for slot, operand in enumerate(kernel.operands) if operand.role != "local"]
        self.bases = {slot: self.b.convert("trunc", self.word(2 + n), "i32") for n, slot in enumerate(passed)}
        self.first_scalar = 2 + len(passed)
        self.free = WORDS * WORD
        """Where scratch may begin."""

    def word(self, position: int) -> WasmValue:
        """What the kernel is called with."""
        if position >= WORDS:
            raise NotImplementedError(f"a kernel of wasm is called with at most {WORDS} words")
        return self.b.variable("i64", f"(i64.load offset={WORD * position} (i32.const 0))")

    # --- values ---

    def supports(self, name: str, dtype: np.dtype) -> bool:
        if name == "select" or (name in COMPARISONS and name != "is_finite"):
            return True
        if dtype.kind == "f":
            return name in FLOATS or functions.supports(name, type_of(dtype))
        return name in numbers.SUPPORTED

    def const(self, value: Any, dtype: np.dtype) -> WasmValue:
        if dtype in numbers.HALVES:
            value = np.asarray(value, dtype).view(np.uint16)
        return self.b.const(value, type_of(dtype))

    def param(self, position: int, dtype: np.dtype) -> WasmValue:
        return self.cast(self.word(self.first_scalar + position), INT, dtype)

    def op(self, name: str, dtype: np.dtype, *args: WasmValue) -> WasmValue:
        if name == "select":
            return self.b.select(*args)
        if name in COMPARISONS:
            return compared(name, dtype, *args)
        if dtype.kind != "f":
            return numbers.operate(name, dtype, *args)
        if name in FLOATS:
            return self.b.emit(args[0].type, f"{WASM[args[0].type]}.{FLOATS[name]}", *args)
        return functions.call(name, *args)

    def cast(self, x: WasmValue, source: np.dtype, target: np.dtype) -> WasmValue:
        return numbers.cast(x, source, target)

    def bitcast(self, x: WasmValue, source: np.dtype, target: np.dtype) -> WasmValue:
        return numbers.bitcast(x, source, target)

    # --- memory ---

    def address(self, slot: int, offset: WasmValue, dtype: np.dtype) -> str:
        """Addresses have 32 bits; what is beyond them isn't in any array."""
        place = offset.text if offset.type == "i32" else f"(i32.wrap_i64 {offset.text})"
        return f"(i32.add {self.bases[slot].text} (i32.mul {place} (i32.const {dtype.itemsize})))"

    def load(
        self,
        slot: int,
        offset: WasmValue,
        dtype: np.dtype,
        mask: WasmValue | None = None,
        other: WasmValue | None = None,
    ) -> WasmValue:
        type = type_of(dtype)
        part = f"{8 * dtype.itemsize}_{'s' if dtype.kind == 'i' else 'u'}" if dtype.itemsize < 4 else ""
        element = f"({WASM[type]}.load{part} {self.address(slot, offset, dtype)})"
        if mask is None or other is None:
            return self.b.variable(type, element)
        return self.b.either(mask, type, element, other.text)

    def store(
        self, slot: int, offset: WasmValue, value: WasmValue, dtype: np.dtype, mask: WasmValue | None = None
    ) -> None:
        part = 8 * dtype.itemsize if dtype.itemsize < 4 else ""
        text = f"({WASM[type_of(dtype)]}.store{part} {self.address(slot, offset, dtype)} {value.text})"
        self.b.line(text if mask is None else f"(if {mask.text} (then {text}))")

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        begin = self.free
        self.free = (begin + max(1, size) * dtype.itemsize + WORD - 1) & -WORD
        if self.free > FRAME:
            raise NotImplementedError(f"a kernel of wasm has at most {FRAME:,} bytes of scratch")
        self.bases[slot] = self.b.const(begin, "i32")

    # --- loops ---

    def loop(self, start: WasmValue, stop: WasmValue, body: Callable[[WasmValue], None], *, hint: str = "") -> None:
        self.b.count(start, stop, body)

    def fold(
        self,
        stop: WasmValue,
        inits: Sequence[WasmValue],
        dtypes: Sequence[np.dtype],
        body: Callable[[WasmValue, Sequence[WasmValue]], Sequence[WasmValue]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[WasmValue]:
        carries = [self.b.variable(x.type, x.text) for x in inits]
        if any(dtype.kind == "f" for dtype in dtypes) and set(combines) == {"add"}:
            self.add_up(stop, carries, body)
        else:
            self.b.count(stop.like(0), stop, lambda i: self.step(i, carries, body))
        return carries

    def step(
        self,
        i: WasmValue,
        carries: Sequence[WasmValue],
        body: Callable[[WasmValue, Sequence[WasmValue]], Sequence[WasmValue]],
    ) -> None:
        for carry, result in zip(carries, body(i, carries), strict=True):
            self.b.assign(carry, result.text)

    def add_up(
        self,
        stop: WasmValue,
        totals: Sequence[WasmValue],
        body: Callable[[WasmValue, Sequence[WasmValue]], Sequence[WasmValue]],
    ) -> None:
        """Sums of sums of a block each: they err less than one long sum."""
        b = self.b

        def block(n: WasmValue) -> None:
            parts = [b.variable(x.type, x.like(-0.0).text) for x in totals]
            start = n << BLOCK
            end = start + (1 << BLOCK)
            b.count(start, b.select(end < stop, end, stop), lambda i: self.step(i, parts, body))
            for total, part in zip(totals, parts, strict=True):
                b.assign(total, (total + part).text)

        b.count(stop.like(0), (stop + ((1 << BLOCK) - 1)) >> BLOCK, block)

    def barrier(self) -> None:
        """One thread runs the kernel."""


def source(kernel: Kernel, limits: Limits) -> str:
    """The module whose function ``kernel`` computes a range of the first grid axis."""
    schedule = choose(kernel, limits)
    emitter = WasmEmitter(kernel, schedule.index_dtype)
    emit_kernel(kernel, schedule, emitter, emitter.begin, emitter.end)
    emitter.module.functions["kernel"] = emitter.b.text()
    return emitter.module.text()
