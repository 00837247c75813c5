"""Native functions around routines of LAPACK and BLAS, for each item of stacks of matrices: code that is written with a
``RoutineWriter``. Knows how routines are called; must not know what they compute.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Generator, Iterable, Sequence

from polyax_cpu import compiler, machine_code
from polyax_cpu.libraries import openblas
from polyax_cpu.llvm import IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS
from polyax_cpu.transposes import turned

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""What names of routines begin with."""
BITS = {"s": "i32", "d": "i64", "c": "i64", "z": "<2 x i64>"}
"""What one element is moved as."""
PARTS = {"s": "float", "d": "double", "c": "float", "z": "double"}
PART_BYTES = {"s": 4, "d": 8, "c": 4, "z": 8}
SQUARES = {"s": 8, "d": 4, "c": 4}
"""Rows of squares of elements that are turned in registers."""
COMPLEX = {
    "orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "syev_work": "heev_work", "sytrd": "hetrd",
}  # fmt: skip
"""Routines that have other names for complex numbers."""
Number = IrValue | int


class RoutineWriter:
    """Writes a function of the kernel ABI, whose buffers are operands and results, and whose range counts items.

    ``sizes`` are its scalars.
    """

    def __init__(self, module: Module, letter: str, sizes: int, count: int) -> None:
        self.letter = letter
        self.b = module.function("void", "compute", FUNCTION_PARAMS)
        buffers, scalars, self.begin, self.end = self.b.args
        self.sizes = [self.b.load(self.b.at(scalars, n, "i64"), "i64") for n in range(sizes)]
        self.buffers = [self.b.load(self.b.at(buffers, n, "ptr"), "ptr") for n in range(count)]
        self._scratch: list[IrValue] = []

    @property
    def parts(self) -> int:
        """How many real numbers one element is."""
        return 2 if self.letter in "cz" else 1

    def finish(self) -> None:
        for pointer in self._scratch:
            self.b.call("void", "free", pointer)
        self.b.ret()

    # --- memory ---

    @contextlib.contextmanager
    def items(
        self, *counts: Number, kinds: Sequence[str] = (), alone: IrValue | None = None
    ) -> Generator[list[IrValue], None, None]:
        """Code for each item: where it begins in each buffer, of which it has so many elements of such a type.

        ``alone``: whether the range counts parts of the only item.
        """
        types, begin, end = kinds or [BITS[self.letter]] * len(counts), self.begin, self.end
        if alone is not None:
            begin, end = self.b.select(alone, 0, begin), self.b.select(alone, 1, end)
        with self.b.loop(begin, end) as item:
            yield [self.b.at(p, item * n, t) for p, n, t in zip(self.buffers, counts, types, strict=True)]

    def scratch(self, count: IrValue) -> IrValue:
        """Memory for so many elements, given back at the end."""
        pointer = self.b.call("ptr", "malloc", self._bytes(count))
        self._scratch.append(pointer)
        return pointer

    def at(self, pointer: IrValue, offset: Number) -> IrValue:
        return self.b.at(pointer, offset, BITS[self.letter])

    def move(self, source: IrValue, n: IrValue, target: IrValue, m: IrValue) -> None:
        """One element: number ``n`` to number ``m``."""
        aligned = ", align 8" if self.letter == "z" else ""
        value = self.b.load(self.at(source, n), BITS[self.letter], aligned)
        self.b.store(value, self.at(target, m), aligned)

    def copy(self, source: IrValue, target: IrValue, count: IrValue) -> None:
        self.b.call("void", "llvm.memmove.p0.p0.i64", target, source, self._bytes(count), self.b.const(False, "i1"))

    def clear(self, target: IrValue, count: IrValue) -> None:
        zero = self.b.const(0, "i8")
        self.b.call("void", "llvm.memset.p0.i64", target, zero, self._bytes(count), self.b.const(False, "i1"))

    def transpose(self, source: IrValue, target: IrValue, rows: IrValue, columns: IrValue) -> None:
        """A matrix stored by columns into one of these ``rows``, or one by rows into one of these ``columns``."""
        height, width = self._squares(source, target, rows, columns)
        with self.b.loop(0, rows) as i, self.b.loop(self.b.select(i < height, width, 0), columns) as j:
            self.move(source, j * rows + i, target, i * columns + j)

    def _squares(self, source: IrValue, target: IrValue, rows: IrValue, columns: IrValue) -> tuple[IrValue, IrValue]:
        """What of it is squares that can be turned in registers; how many rows and columns that is."""
        b, kind, side = self.b, BITS[self.letter], SQUARES.get(self.letter)
        if side is None:
            return b.const(0, "i64"), b.const(0, "i64")
        height, width = rows & -side, columns & -side
        with b.loop(0, height, step=side) as i, b.loop(0, width, step=side) as j:
            pointers = [self.at(source, (j + n) * rows + i) for n in range(side)]
            read = [b.load_lanes(p, kind, side, None, b.const(0, kind)) for p in pointers]
            for n, row in enumerate(turned(b, read)):
                b.store_lanes(row, self.at(target, (i + n) * columns + j), None)
        return height, width

    def spoil(self, failed: IrValue, pointers: Iterable[tuple[IrValue, IrValue]]) -> None:
        """NaN in all real numbers behind the pointers, if a routine failed."""
        type = PARTS[self.letter]
        with self.b.when(failed.compare("!=", 0)):
            for pointer, count in pointers:
                with self.b.loop(0, count) as n:
                    self.b.store(self.b.const(float("nan"), type), self.b.at(pointer, n, type))

    def _bytes(self, count: IrValue) -> IrValue:
        return count * (PART_BYTES[self.letter] * self.parts)

    # --- routines ---

    def lapack(self, name: str, *args: IrValue | int | str) -> IrValue:
        """Calls a routine on matrices stored by columns; not 0 if it failed."""
        name = COMPLEX.get(name, name) if self.parts == 2 else name
        return self._call("i32", f"LAPACKE_{self.letter}{name}", openblas.COLUMN_MAJOR, *args)

    def blas(self, name: str, *args: IrValue | int) -> None:
        """Calls a routine on matrices stored by rows."""
        self._call("void", f"cblas_{self.letter}{name}", openblas.ROW_MAJOR, *args)

    def one(self) -> IrValue:
        """The factor 1, as BLAS takes it: complex ones are in memory."""
        type = PARTS[self.letter]
        if self.parts == 1:
            return self.b.const(1.0, type)
        pointer = self.b.alloca(type, 2)
        for n, part in enumerate((1.0, 0.0)):
            self.b.store(self.b.const(part, type), self.b.at(pointer, n, type))
        return pointer

    def _call(self, result: str, name: str, *args: IrValue | int | str) -> IrValue:
        return self.b.call(result, name, *map(self._argument, args))

    def _argument(self, x: IrValue | int | str) -> IrValue:
        """Sizes and characters are integers of 32 bits."""
        if isinstance(x, IrValue):
            return self.b.convert("trunc", x, "i32") if x.type == "i64" else x
        return self.b.const(ord(x) if isinstance(x, str) else x, "i32")


def load(letter: str, sizes: int, buffers: int, write: Callable[[RoutineWriter], None]) -> compiler.LoadedCode:
    """The function ``compute`` that ``write`` writes."""
    module = Module(["compute"])
    writer = RoutineWriter(module, letter, sizes, buffers)
    write(writer)
    writer.finish()
    _let_nan_through()
    called = [n for n in module.declared if n.startswith(("LAPACKE_", "cblas_"))]
    return machine_code.library(module.text(), ["compute"], {n: openblas.address(n) for n in called}, level=1)


def _let_nan_through() -> None:
    """Else a NaN anywhere makes LAPACKE refuse the matrix, where LAPACK computes what doesn't depend on it."""
    ctypes.CFUNCTYPE(None, ctypes.c_int32)(openblas.address("LAPACKE_set_nancheck"))(0)
