"""Kernels as text: what the kernel walker asks for, line by line. This is the file to translate.

It writes Python. A value is the name of a variable. The points of the first axis are computed at once, as arrays; all
other loops are loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from polyax_kernels.api.emitters import Emitter, Kernel, Schedule, emit_kernel, index_dtype
from polyax_kernels.api.lowerings import Limits

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
"""Operations that the language has signs for; all others are functions."""


class NewcomerEmitter(Emitter[str]):
    """Collects the lines of one function, ``kernel(buffers, scalars, begin, end)``."""

    def __init__(self, kernel: Kernel) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.scratch: dict[int, str] = {}
        """What makes the scratch of each slot, if its points are counted."""
        passed = [(slot, operand) for slot, operand in enumerate(kernel.operands) if operand.role != "local"]
        for n, (slot, operand) in enumerate(passed):
            self.line(f"b{slot} = memory(buffers[{n}], {operand.dtype.name})")

    def text(self) -> str:
        opening = ["def kernel(buffers, scalars, begin, end):", "    points = int64([0])"]
        return "\n".join([*opening, *self.lines, ""])

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix: str = "v") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def value(self, text: str) -> str:
        """A variable for what ``text`` computes."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def inside(self, opening: str, body: Callable[[], None]) -> None:
        """The lines that ``body`` adds, indented below ``opening``."""
        self.line(opening)
        self.depth += 1
        body()
        self.line("pass")
        self.depth -= 1

    # --- values ---

    def supports(self, name: str, dtype: np.dtype) -> bool:
        """What is answered with False is made of other operations, as far as it is made of others."""
        return True

    def const(self, value: Any, dtype: np.dtype) -> str:
        kinds = {"b": bool, "f": float, "V": float}  # V: bfloat16
        return f"{dtype.name}({kinds.get(dtype.kind, int)(value)!r})"

    def param(self, position: int, dtype: np.dtype) -> str:
        return f"{dtype.name}(scalars[{position}])"

    def op(self, name: str, dtype: np.dtype, *args: str) -> str:
        """By the table of scalar operations, whose results are defined for all inputs."""
        if name in INFIX:
            return self.value(f"{args[0]} {INFIX[name]} {args[1]}")
        return self.value(f"OPERATIONS[{name!r}]({', '.join(args)})")

    def cast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        return self.value(f"cast({x}, {target.name})")

    def bitcast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        return self.value(f"bitcast({x}, {target.name})")

    # --- memory ---

    def at(self, slot: int, offset: str) -> str:
        """Scratch has a column for each point that is computed at once."""
        return f"({offset}, points)" if slot in self.scratch else offset

    def load(self, slot: int, offset: str, dtype: np.dtype, mask: str | None = None, other: str | None = None) -> str:
        if mask is None:
            return self.value(f"b{slot}[{self.at(slot, offset)}]")
        return self.value(f"where({mask}, b{slot}[{self.at(slot, f'where({mask}, {offset}, 0)')}], {other})")

    def store(self, slot: int, offset: str, value: str, dtype: np.dtype, mask: str | None = None) -> None:
        self.line(f"put(b{slot}, {self.at(slot, offset)}, {value}, {mask or 'True'}, points)")

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        self.scratch[slot] = f"b{slot} = scratch({size}, points, {dtype.name})"
        self.line(self.scratch[slot])

    def barrier(self) -> None:
        """One thread computes a point."""

    # --- loops ---

    def loop(self, start: str, stop: str, body: Callable[[str], None], *, hint: str = "") -> None:
        """The loop over the first axis is gone: its index is an array."""
        i = self.fresh("i")
        if "parallel" not in hint:
            self.inside(f"for {i} in count({start}, {stop}):", lambda: body(i))
            return

        def at_once() -> None:
            self.line(f"{i} = arange({start}, {stop})")
            self.line(f"points = {i} - {start}")
            for declared in self.scratch.values():
                self.line(declared)
            body(i)

        self.inside(f"if {start} < {stop}:", at_once)

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
        """All carries change together: a new one may be made of any old one."""
        i, carries = self.fresh("i"), [self.value(init) for init in inits]

        def turn() -> None:
            results = body(i, carries)
            self.line(f"{', '.join(carries)} = {', '.join(results)}")

        self.inside(f"for {i} in count(0, {stop}):", turn)
        return carries


def source(kernel: Kernel, limits: Limits) -> str:
    """The text of a kernel: loops as they come. ``choose(kernel, limits)`` in the place of ``Schedule(...)`` makes
    them fit for vectors and caches."""
    emitter = NewcomerEmitter(kernel)
    schedule = Schedule(index_dtype=index_dtype(kernel, limits))
    emit_kernel(kernel, schedule, emitter, "begin", "end")
    return emitter.text()
