"""Kernels as functions of a GPU language: points of the grid become threads or groups of them.

OpenCL C and CUDA C are dialects, which give the words at the top of the class. Which thread does what is the
schedule's choice, not made here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from polyax.ir.blame import expected
from polyax_kernels.emit.c import CEmitter, program
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.gpu.cooperate import cooperate
from polyax_kernels.gpu.rows import by_rows
from polyax_kernels.gpu.scans import shared_scan
from polyax_kernels.gpu.schedule import GpuSchedule
from polyax_kernels.gpu.squares import in_squares
from polyax_kernels.ir.dependences import postorder_with_extents
from polyax_kernels.ir.expr import Axis, Expr
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, kernel_roots
from polyax_kernels.passes.for_emission import as_expr

NAME = "compute"
"""The name of the function: ``kernel`` is a word of OpenCL C."""


class GpuEmitter(CEmitter):
    """``GROUPS``: a group of threads shares each point of the grid. ``POINTS``: each thread has points of its own.
    ``RANGES``: each thread has a range of the first grid axis, as on the host."""

    # --- the words of a dialect ---

    kernel_words: ClassVar[str]
    """What stands before a kernel's name: ``__kernel void``."""
    memory_words: ClassVar[str] = ""
    """What qualifies pointers to the device's memory: ``__global``."""
    local_words: ClassVar[str]
    """What declares memory that the threads of a group share: ``__local``."""
    barrier_words: ClassVar[str]
    """A statement that all threads of a group pass together; memory of both kinds is consistent afterwards."""

    warp_barrier_words: ClassVar[str] = ""
    """The same for the first 32 threads of a group, if there is anything less than that."""

    types: ClassVar = CEmitter.types | {"float16": "uint16_t"}
    packed = CEmitter.packed | {"float16"}

    @abstractmethod
    def argument(self, slot: int, operand: Operand, type: str) -> tuple[str, list[str]]:
        """The kernel's arguments for an operand, and the lines that declare the pointer ``b{slot}`` by them.

        With byte offsets, for example: ``__global uchar *m0, long o0`` and ``__global float *b0 = ...;``.
        """

    @abstractmethod
    def thread(self, dimension: int) -> str:
        """The number of this thread in its group."""

    @abstractmethod
    def group(self, dimension: int) -> str:
        """The number of this group."""

    @abstractmethod
    def threads(self, dimension: int) -> str:
        """How many threads a group has."""

    @abstractmethod
    def groups(self, dimension: int) -> str:
        """How many groups there are."""

    updates: ClassVar[Mapping[tuple[str, str], str]] = {}
    """Statements that combine what is at a pointer ``{0}`` with a value ``{1}`` at once, by operation and dtype."""

    def update(self, name: str, dtype: np.dtype) -> str | None:
        """That of ``updates``, if there is one."""
        return self.updates.get((name, dtype.name))

    def swapped(self, pointer: str, before: str, after: str, nbytes: int) -> str:
        """What is at ``pointer``, an unsigned number of ``nbytes``, which becomes ``after`` if that is ``before``.

        Asked for sizes that ``Limits.atomics`` names.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no words for updates of {nbytes} bytes by several threads: say `swapped`, or "
            "take the size out of Limits.atomics"
        )

    # --- the function ---

    def __init__(self, kernel: Kernel, schedule: GpuSchedule, name: str = NAME) -> None:
        super().__init__(kernel, name, schedule.index_dtype)
        self.schedule = schedule
        self.atomic = schedule.atomic
        self.scalars = parameters(kernel)
        """How many numbers a launch passes."""
        self.opened = 0
        """How many loops over axes of the grid are open."""
        self.alone = False
        """Inside a loop whose iterations the threads of a group share out."""
        self.numbers: dict[str, int] = {}
        """What whole numbers in the text are."""

    def signature(self) -> list[str]:
        arguments, declared = [], list[str]()
        for slot, operand in enumerate(self.kernel.operands):
            if operand.role != "local":
                made = self.argument(slot, operand, self.memory_type(operand.dtype))
                words, lines = expected(made, tuple, "argument gave", "a pair of the arguments' text and lines")
                arguments.append(words)
                declared += lines
        arguments += [f"{self.types['int64']} s{n}" for n in range(self.scalars)]
        return [f"{self.kernel_words} {self.name}({', '.join(arguments)}) {{", *declared]

    def param(self, position: int, dtype: np.dtype) -> str:
        return f"s{position}" if dtype.name == "int64" else f"({self.types[dtype.name]})s{position}"

    def const(self, value: Any, dtype: np.dtype) -> str:
        text = super().const(value, dtype)
        if dtype.kind in "iu":
            self.numbers[text] = int(value)
        return text

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        words = f"{self.local_words} " if self.schedule.mode == "groups" else ""
        self.lines.append(f"{words}{self.memory_type(dtype)} b{slot}[{max(1, size)}];")

    def barrier(self) -> None:
        if self.schedule.mode == "groups":
            self.lines.append(self.barrier_words)

    def warp_barrier(self) -> None:
        if self.schedule.mode == "groups":
            self.lines.append(self.warp_barrier_words or self.barrier_words)

    def store(self, slot: int, offset: str, value: str, dtype: np.dtype, mask: str | None = None) -> None:
        if self.schedule.mode == "groups" and not self.alone:
            first = f"{self.thread(0)} == 0"
            mask = first if mask is None else f"{first} && {mask}"
        super().store(slot, offset, value, dtype, mask)

    def accumulate(
        self,
        slot: int,
        offset: str,
        value: str,
        dtype: np.dtype,
        mask: str | None,
        name: str,
        combined: Callable[[str, str], str],
    ) -> None:
        pointer = f"b{slot} + {offset}"
        self.lines.append(f"if ({mask or 'true'}) {{")
        if (statement := self.update(name, dtype)) is not None:
            self.lines.append(statement.format(pointer, value))
        else:
            self.replace_until_done(pointer, dtype, lambda old: combined(old, value))
        self.lines.append("}")

    def replace_until_done(self, pointer: str, dtype: np.dtype, changed: Callable[[str], str]) -> None:
        """Tries again with what another thread has put there meanwhile."""
        bits = np.dtype(f"uint{8 * dtype.itemsize}")
        place, seen, before = (self.fresh(letter) for letter in "psb")
        kind = f"{self.memory_words} {self.types[bits.name]} *".lstrip()
        self.lines.append(f"{kind}{place} = ({kind})({pointer});")
        self.lines.append(f"{self.types[bits.name]} {seen} = *{place}, {before};")
        self.lines.append("do {")
        self.lines.append(f"{before} = {seen};")
        after = self.bitcast(changed(self.bitcast(before, bits, dtype)), dtype, bits)
        self.lines.append(f"{seen} = {self.swapped(place, before, after, dtype.itemsize)};")
        self.lines.append(f"}} while ({seen} != {before});")

    # --- loops ---

    def loop(self, start: str, stop: str, body: Callable[[str], None], *, hint: str = "") -> None:
        if self.schedule.mode != "ranges" and self.opened < len(self.kernel.grid):
            self.opened += 1
            self.point_loop(self.opened - 1, body)
            self.opened -= 1
        elif self.schedule.mode == "groups" and "group" in hint:
            self.alone = True
            self.turns(stop, body)
            self.alone = False
        else:
            super().loop(start, stop, body, hint=hint)

    def turns(self, stop: str, body: Callable[[str], None]) -> None:
        """A loop whose iterations the threads of a group share: where all take as many turns, none asks for the end."""
        kind, first, threads = self.index_dtype, self.thread(0), self.schedule.threads[0]
        count = self.numbers.get(stop, 0)
        if 0 < count < threads:
            self.lines.append(f"if ({first} < {stop}) {{")
            body(self.value(kind, first))
            self.lines.append("}")
        elif not count or count % threads:
            self.count(first, stop, self.threads(0), body)
        else:
            turns, each = self.const(count // threads, kind), self.const(threads, kind)
            self.count("0", turns, "1", lambda n: body(self.value(kind, f"{n} * {each} + {first}")))

    def point_loop(self, n: int, body: Callable[[str], None]) -> None:
        """The loop over axis number ``n`` of the grid, or its part of the one loop over several axes.

        ``points``: the last axis lies along the first dimension, all others together along the second. ``groups``:
        all axes together along the first one.
        """
        grid, points = self.kernel.grid, self.schedule.mode == "points"
        together = grid[:-1] if points else grid
        if n >= len(together):
            self.count(self.place(0), self.length(grid[-1:]), self.size(0), body)
        elif n == 0:
            dimension = int(points)
            self.count(
                self.place(dimension), self.length(together), self.size(dimension), lambda i: self.first_of(i, body)
            )
        else:
            body(self.part(n, together))

    def first_of(self, i: str, body: Callable[[str], None]) -> None:
        """Inside the loop over several axes, whose indices are cut out of its own; scratch is used again afterwards."""
        self.together = i
        body(self.part(0, self.kernel.grid[:-1] if self.schedule.mode == "points" else self.kernel.grid))
        if any(o.role == "local" for o in self.kernel.operands):
            self.barrier()

    def part(self, n: int, axes: Sequence[Axis]) -> str:
        """The index of ``axes[n]`` at this place of the loop over all of them."""
        index, inner = self.together, axes[n + 1 :]
        text = f"{index} / ({self.length(inner)})" if inner else index
        return self.value(self.index_dtype, f"({text}) % {self.length(axes[n : n + 1])}" if n else text)

    def length(self, axes: Sequence[Axis]) -> str:
        """The number of points of ``axes``."""
        return " * ".join([self.whole(as_expr(axis.extent)) for axis in axes])

    def whole(self, x: Expr) -> str:
        """The text of an extent: a number, a parameter, or what is computed of them."""
        if x.kind == "op":
            sign = {"add": "+", "floordiv": "/"}[x.attr]
            return f"(({self.whole(x.args[0])}) {sign} {self.whole(x.args[1])})"
        return self.param(x.attr, self.index_dtype) if x.kind == "param" else self.const(x.attr, self.index_dtype)

    def place(self, dimension: int) -> str:
        """The number of this thread among all, or, where groups share points, of this group."""
        if self.schedule.mode == "groups":
            return self.group(dimension)
        kind = self.types[self.index_dtype.name]
        return f"({kind}){self.group(dimension)} * {self.threads(dimension)} + {self.thread(dimension)}"

    def size(self, dimension: int) -> str:
        if self.schedule.mode == "groups":
            return self.groups(dimension)
        return f"({self.types[self.index_dtype.name]}){self.groups(dimension)} * {self.threads(dimension)}"

    def bounds(self) -> tuple[str, str]:
        """The range of the first grid axis that belongs to this thread."""
        if not self.kernel.grid or self.schedule.mode != "ranges":
            return "0", "1"
        kind, rows = self.index_dtype, self.length(self.kernel.grid[:1])
        n, count = self.value(kind, self.group(0)), self.value(kind, self.groups(0))
        each, more = self.value(kind, f"{rows} / {count}"), self.value(kind, f"{rows} % {count}")
        begin = self.value(kind, f"{each} * {n} + ({n} < {more} ? {n} : {more})")
        return begin, self.value(kind, f"{begin} + {each} + ({n} < {more})")


def parameters(kernel: Kernel) -> int:
    """How many scalar launch arguments the kernel takes."""
    axes = (*kernel.grid, *(a for stage in kernel.stages for a in stage.axes))
    roots = (*kernel_roots(kernel), *(a.extent for a in axes if isinstance(a.extent, Expr)))
    return 1 + max((x.attr for x in postorder_with_extents(roots) if x.kind == "param"), default=-1)


def gpu_source(kernel: Kernel, schedule: GpuSchedule, dialect: type[GpuEmitter], name: str = NAME) -> str:
    """The program with one function that runs ``kernel``."""
    return program([gpu_function(kernel, schedule, dialect, name)])


def gpu_function(kernel: Kernel, schedule: GpuSchedule, dialect: type[GpuEmitter], name: str) -> GpuEmitter:
    """The function ``name``, which runs ``kernel``; ``program`` makes a text of one or of several."""
    if schedule.across is not None:
        kernel = in_squares(kernel, schedule.across)
    elif schedule.scans:
        kernel = shared_scan(kernel, schedule.threads[0])
    elif schedule.mode == "groups":
        kernel = kernel if schedule.rows is None else by_rows(kernel, schedule.rows)
        kernel = cooperate(kernel, schedule.threads[0])
    emitter = dialect(kernel, schedule, name)
    begin, end = emitter.bounds()
    same = {name: getattr(schedule, name) for name in ("lanes", "columns", "short_rows", "index_dtype")}
    emit_kernel(kernel, Schedule(**same), emitter, begin, end)
    return emitter
