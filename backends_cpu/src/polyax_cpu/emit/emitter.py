"""Kernels as LLVM functions: the emitter protocol of ``polyax_kernels`` over IR text, and the kernel ABI.

Knows the scalar table's names and their total semantics; must not know plans, arrays or how code is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from polyax_cpu import transposes
from polyax_cpu.emit import narrowing
from polyax_cpu.emit.ahead import Ahead
from polyax_cpu.emit.extrema import extremum
from polyax_cpu.emit.halves import OfHalves, low_half, word_of
from polyax_cpu.emit.lanes import LaneIndex, LaneLoops, affine
from polyax_cpu.emit.rows import totals
from polyax_cpu.emit.saturating import to_integer
from polyax_cpu.functions import table
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.processors import host
from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.emit.walker import SHORT, emit_kernel
from polyax_kernels.ir.dependences import goes_on
from polyax_kernels.ir.expr import COMPARISONS, INT, Axis, postorder
from polyax_kernels.ir.kernel import Kernel, Schedule, kernel_roots
from polyax_kernels.ir.limits import FLOAT32, NARROW
from polyax_kernels.passes.words import HALF, WORD

TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double",
}  # fmt: skip
"""LLVM's types of values; bfloat16 is handled as its bits. In memory a bool is a byte."""
ARITHMETIC = ("add", "sub", "mul", "and", "or", "xor")
RELATIONS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
ROUNDINGS = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "roundeven", "abs": "fabs"}
SHIFTS = {"shift_left": "shl", "shift_right_logical": "lshr", "shift_right_arithmetic": "ashr"}
BINARY_INTRINSICS = {"max": "maximum", "min": "minimum"}
EVERYWHERE = {*RELATIONS, *BINARY_INTRINSICS, "select"}
NUMERIC = {"add", "sub", "mul", "div", "rem", "neg", "square"}
REAL = {*EVERYWHERE, *NUMERIC, *ROUNDINGS, "is_finite"}
BITWISE = {*SHIFTS, "and", "or", "xor", "not", "clz", "population_count"}
WHOLE = {*EVERYWHERE, *NUMERIC, *BITWISE, "floordiv", "mod"}
BOOLEAN = {*EVERYWHERE, "and", "or", "xor", "not"}
REALS = {"i8": "float", "i16": "float", "i32": "double"}
"""Floats whose quotients are those of integers."""
TINY = 5
"""Loops of fewer iterations are unrolled: a vector would be mostly empty."""
MANY = 1 << 14
"""Points below which a loop over one elementary function takes no longer than its start does."""
LONG = 64
"""Folds of so many iterations LLVM vectorises by itself, and unrolls better then."""
SIDE = 2
"""Vectors of a loop without elementary functions that are computed side by side: less of it is counting."""
FEW = 8
"""Values below which a sum is taken one after the other; other folds are below ``SHORT``, since putting lanes together
takes them longer."""
SHARED = 6
"""Elementary functions of a kernel from which on they are called, not inlined: LLVM takes a third of the time for six,
a fifth for ten, and their loops up to half as long again."""


class LlvmEmitter(Emitter[IrValue]):
    """Writes one kernel through a ``Builder``. ``buffers`` are the pointers of the operands that aren't local.

    ``unrolls``: all short loops are unrolled, so that operands that are locals of a function become registers.
    """

    def __init__(
        self, builder: Builder, kernel: Kernel, buffers: Sequence[IrValue], scalars: IrValue, unrolls: bool = False
    ) -> None:
        self.b = builder
        self.unrolls = unrolls
        functions = _functions(kernel)
        self.shares = functions >= SHARED
        builder.module.has_loops |= any(map(goes_on, kernel.stages))  # LLVM keeps in a register what they go on from
        arguments = iter(buffers)
        self.memory = {n: next(arguments) for n, o in enumerate(kernel.operands) if o.role != "local"}
        self.scratch: dict[int, int] = {}  # the elements of locals
        self.scalars = scalars
        self.group = ""  # marks the memory accesses of the innermost loop as independent between iterations
        self.calls = 0  # of elementary functions
        self.loops = 0  # that are still loops in the end
        self.many = any(_points((*kernel.grid, *stage.axes)) >= MANY for stage in kernel.stages)
        self.free: set[str] = set()  # carries that may be combined in any order
        self.halves: set[str] = set()  # float32 made of float16: LLVM would take their extrema as such, by calls
        width = host().vector_bits // (8 * _widest(kernel))
        self.side = 4 if self.shares else SIDE if self.many or not functions else 1
        self.waits = kernel.ordered  # what is stored may be read at once, for which it can't be under a mask
        self.lanes = LaneLoops(builder, width, width * (4 if self.shares else 1), not self.waits)
        self.ahead = Ahead(builder, kernel)

    def supports(self, name: str, dtype: np.dtype) -> bool:
        if dtype.kind == "b":
            return name in BOOLEAN
        if dtype.kind != "f":
            return name in WHOLE or (name == "abs" and dtype.kind == "i")
        return name in REAL or table.supports(name, TYPES[dtype.name])

    # --- values ---

    def const(self, value: Any, dtype: np.dtype) -> IrValue:
        if dtype.name == "bfloat16":
            return self.b.const(int(np.asarray(value, dtype).view(np.uint16)), "i16")
        if dtype.name == "float16":
            return self.b.const(float(np.float16(value)), "half")
        return self.b.const(value, TYPES[dtype.name])

    def param(self, position: int, dtype: np.dtype) -> IrValue:
        whole = self.b.load(self.b.at(self.scalars, position, "i64"), "i64")
        return whole if dtype.itemsize == 8 else self.b.convert("trunc", whole, TYPES[dtype.name])

    def op(self, name: str, dtype: np.dtype, *args: IrValue) -> IrValue:
        if name == "select":
            return self.b.select(*args)
        if dtype.kind == "i" and any(isinstance(x, LaneIndex) for x in args):
            place = affine(name, *args)
            if place is not None:
                return place
        if dtype == WORD and len(args) == 2 and (moved := word_of(name, *args)) is not None:
            return moved
        if name in COMPARISONS and name != "is_finite":
            return self._compare(RELATIONS[name], dtype, *args)
        if dtype.kind == "f":
            return self._real(name, *args)
        return self._boolean(name, *args) if dtype.kind == "b" else self._whole(name, dtype.kind == "i", *args)

    def _compare(self, relation: str, dtype: np.dtype, x: IrValue, y: IrValue) -> IrValue:
        if dtype.kind == "f":
            return self.b.test(f"fcmp {relation}", x, y)
        sign = "" if relation in ("oeq", "une") else "s" if dtype.kind == "i" else "u"
        return self.b.test(f"icmp {sign}{relation[1:]}", x, y)

    def _real(self, name: str, *args: IrValue) -> IrValue:
        x = args[0]
        if name in ("add", "sub", "mul", "div"):
            # elsewhere no contraction: a value that two kernels compute must be the same in both (a gradient asks
            # where x equals max(x)), and LLVM would contract it in one and not in the other
            flags = " reassoc nsz" if x.name in self.free else ""
            return self.b.plain(f"f{name}{flags}", *args)
        if name in ROUNDINGS:
            return self.b.intrinsic(ROUNDINGS[name], x)
        if name in BINARY_INTRINSICS:
            args = tuple([self.b.intrinsic("arithmetic.fence", a) if a.name in self.halves else a for a in args])
            # what is accumulated comes last: x86 tests the sign of the first operand, which takes longer than the rest
            return extremum(BINARY_INTRINSICS[name], *args[::-1], one_by_one=self.waits)
        if name == "is_finite":
            return self.b.intrinsic("fabs", x) < float("inf")
        if name in ("neg", "square"):
            return -x if name == "neg" else self._real("mul", x, x)
        self.calls += 1
        return table.call(name, *args, shared=self.shares)

    def _boolean(self, name: str, *args: IrValue) -> IrValue:
        if name == "not":
            return ~args[0]
        return self.b.plain({"max": "or", "min": "and"}.get(name, name), *args)

    def _whole(self, name: str, signed: bool, *args: IrValue) -> IrValue:
        x = args[0]
        if name in ARITHMETIC:
            return self.b.plain(name, *args)
        if name in SHIFTS:
            return self._shift(name, *args)
        if name in BINARY_INTRINSICS:
            return self.b.intrinsic(("s" if signed else "u") + name, *args)
        if name in ("neg", "not", "square"):
            return {"neg": lambda: -x, "not": lambda: ~x, "square": lambda: x * x}[name]()
        if name in ("clz", "abs"):
            return self.b.intrinsic("ctlz" if name == "clz" else "abs", x, self.b.const(False, "i1"))
        if name == "population_count":
            return self.b.intrinsic("ctpop", x)
        return self._divide(name, signed, *args)

    def _shift(self, name: str, x: IrValue, n: IrValue) -> IrValue:
        """Past the width: 0, or the sign."""
        width = int(x.type[1:])
        inside = self.b.test("icmp ult", n, n.like(width))
        if name == "shift_right_arithmetic":
            return self.b.plain("ashr", x, self.b.select(inside, n, width - 1))
        return self.b.select(inside, self.b.plain(SHIFTS[name], x, self.b.select(inside, n, 0)), 0)

    def _divide(self, name: str, signed: bool, x: IrValue, y: IrValue) -> IrValue:
        """Never traps: by 0 and by -1 a division by 1 takes its place, and the result is put right."""
        zero = y.compare("==", 0)
        minus = y.compare("==", -1) if signed else self.b.const(False, "i1")
        safe = y if _divides_by_itself(y) else self.b.select(zero | minus, 1, y)
        quotient = self._quotient(signed, x, safe)
        rest = x - quotient * safe
        quotient = self.b.select(minus, -x, quotient)
        if name in ("floordiv", "mod") and signed:
            crossed = rest.compare("!=", 0) & ((rest ^ y) < 0)
            quotient = self.b.select(crossed, quotient - 1, quotient)
            rest = self.b.select(crossed, rest + y, rest)
        if name in ("div", "floordiv"):
            return self.b.select(zero, -1, quotient)
        return self.b.select(zero, x, rest)

    def _quotient(self, signed: bool, x: IrValue, y: IrValue) -> IrValue:
        """Rounded towards zero. Processors don't divide integers in lanes, but floats: those of twice as many digits
        round to the same side of a whole number. By a constant LLVM multiplies."""
        real, sign = REALS.get(x.type), "s" if signed else "u"
        if real is None or y.is_constant:
            return self.b.plain(f"{sign}div", x, y)
        dividend, divisor = (self.b.convert(f"{sign}itofp", n, real) for n in (x, y))
        return self.b.convert(f"fpto{sign}i", dividend / divisor, x.type)

    def cast(self, x: IrValue, source: np.dtype, target: np.dtype) -> IrValue:
        if source == target:
            return x
        if "bfloat16" in (source.name, target.name):
            return self._cast_bfloat16(x, source, target)
        if target.kind == "b":
            return x.compare("!=", 0)
        to = TYPES[target.name]
        if source.kind == "f" and target.kind != "f":
            return to_integer(x, to, target.kind == "i")
        if to == x.type:
            return x
        if x.lanes > 1 and {source, target} == {WORD, HALF}:
            return low_half(x) if target == HALF else OfHalves(x)
        if x.type == "double" and to == "half":
            x = self._round_to_odd(x)
        result = self.b.convert(self._conversion(source, target), x, to)
        if source.name == "float16":
            self.halves.add(result.name)
        return result

    def _round_to_odd(self, x: IrValue) -> IrValue:
        """float64 to float32 such that rounding again rounds once: processors lack float64 to float16."""
        y = self.b.convert("fptrunc", x, "float")
        back = self.b.convert("fpext", y, "double")
        far = self.b.intrinsic("fabs", back) > self.b.intrinsic("fabs", x)
        down = self.b.convert("bitcast", y, "i32") - self.b.convert("zext", far, "i32")
        return self.b.convert("bitcast", down | self.b.convert("zext", back.compare("!=", x), "i32"), "float")

    @staticmethod
    def _conversion(source: np.dtype, target: np.dtype) -> str:
        wider = target.itemsize > source.itemsize
        if source.kind == "f":
            return "fpext" if wider else "fptrunc"
        signed = source.kind == "i"
        if target.kind == "f":
            return "sitofp" if signed else "uitofp"
        return ("sext" if signed else "zext") if wider or source.kind == "b" else "trunc"

    def _cast_bfloat16(self, x: IrValue, source: np.dtype, target: np.dtype) -> IrValue:
        """The upper half of a float32."""
        single = np.dtype("float32")
        if source.name == "bfloat16":
            wide = self.b.convert("bitcast", self.b.convert("zext", x, "i32") << 16, "float")
            return self.cast(wide, single, target)
        return narrowing.rounded(self.cast(x, source, single))

    def bitcast(self, x: IrValue, source: np.dtype, target: np.dtype) -> IrValue:
        return x if TYPES[target.name] == x.type else self.b.convert("bitcast", x, TYPES[target.name])

    # --- memory ---

    def load(
        self, slot: int, offset: IrValue, dtype: np.dtype, mask: IrValue | None = None, other: IrValue | None = None
    ) -> IrValue:
        if isinstance(offset, LaneIndex):
            return self._load_lanes(slot, offset, dtype, mask, other)
        if mask is None:
            return self._load(slot, offset, dtype)
        assert other is not None
        if mask.lanes > 1:
            some = self.load(slot, offset, dtype, self.b.any(mask), self.const(0, dtype))
            return self.b.select(mask, some, other)
        return self.b.choose(mask, lambda: self._load(slot, offset, dtype), other)

    def _load_lanes(
        self, slot: int, offset: LaneIndex, dtype: np.dtype, mask: IrValue | None, other: IrValue | None
    ) -> IrValue:
        """Lanes that the loop is not for read nothing, too."""
        if self.waits and mask is not None and mask.lanes == 1 and other is not None:
            other = self.b.splat(other, offset.lanes)
            return self.b.choose(mask, lambda: self._load_lanes(slot, offset, dtype, None, None), other)
        kept = "i8" if dtype.kind == "b" else TYPES[dtype.name]
        last = self.b.const(0, kept)
        if other is not None:
            last = self.b.convert("zext", other, kept) if dtype.kind == "b" else other
        place = self._place(slot, offset, kept, mask)
        self.ahead.fetch(slot, place, offset.lanes * dtype.itemsize)
        value = self.b.load_lanes(place, kept, offset.lanes, self._masked(slot, offset, mask), last)
        return value.compare("!=", 0) if dtype.kind == "b" else value

    def _place(self, slot: int, offset: LaneIndex, type: str, mask: IrValue | None) -> IrValue:
        """The address of the first lane; what doesn't change within the loop comes first.

        Where ``mask`` has no lane that may lie in memory that isn't there, which processors take hundreds of cycles to
        find out: then it is that of the array.
        """
        assert offset.step == 1, "lanes are next to each other in memory"
        array = self.memory[slot]
        place = self.b.at(self.b.at(array, offset.start, type), offset.index, type)
        return place if mask is None or slot in self.scratch else self.b.select(self.b.any(mask), place, array)

    def _load(self, slot: int, offset: IrValue, dtype: np.dtype) -> IrValue:
        kept = "i8" if dtype.kind == "b" else TYPES[dtype.name]
        value = self.b.load(self.b.at(self.memory[slot], offset, kept), kept, self.group)
        return value.compare("!=", 0) if dtype.kind == "b" else value

    def store(self, slot: int, offset: IrValue, value: IrValue, dtype: np.dtype, mask: IrValue | None = None) -> None:
        if isinstance(offset, LaneIndex):
            return self._store_lanes(slot, offset, value, dtype, mask)
        if mask is not None:
            with self.b.when(mask):
                return self.store(slot, offset, value, dtype)
        if dtype.kind == "b":
            value = self.b.convert("zext", value, "i8")
        self.b.store(value, self.b.at(self.memory[slot], offset, value.type), self.group)

    def some(self, mask: IrValue) -> IrValue:
        return self.b.any(mask)

    def _store_lanes(self, slot: int, offset: LaneIndex, value: IrValue, dtype: np.dtype, mask: IrValue | None) -> None:
        whole = mask is not None and mask.lanes == 1 and not host().has_masks
        if mask is not None and (self.waits or whole) and not mask.is_constant:
            with self.b.when(self.b.any(mask)):
                return self._write_lanes(slot, offset, value, dtype, mask if mask.lanes > 1 else None)
        return self._write_lanes(slot, offset, value, dtype, mask)

    def _write_lanes(self, slot: int, offset: LaneIndex, value: IrValue, dtype: np.dtype, mask: IrValue | None) -> None:
        value = self.b.splat(value, offset.lanes)
        if dtype.kind == "b":
            value = self.b.convert("zext", value, "i8")
        place = self._place(slot, offset, value.type, mask)
        self.b.store_lanes(value, place, self._masked(slot, offset, mask))

    def _masked(self, slot: int, offset: LaneIndex, mask: IrValue | None) -> IrValue | None:
        """``mask`` for the lanes that the loop is for. Scratch of one vector has room for all lanes, and without a mask
        it stays in a register."""
        whole = offset.lanes >= self.scratch.get(slot, offset.lanes + 1) and offset.is_first
        if self.lanes.mask is None or whole:
            return mask
        return self.lanes.mask if mask is None else mask & self.lanes.mask

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        self.scratch[slot] = size
        room = 1 << max(size - 1, 0).bit_length()
        self.memory[slot] = self.b.alloca("i8" if dtype.kind == "b" else TYPES[dtype.name], room)

    def transpose(
        self,
        source: int,
        start: IrValue,
        pitch: int,
        target: int,
        side: int,
        dtype: np.dtype,
        sizes: tuple[IrValue, IrValue] | None = None,
    ) -> bool:
        if side & (side - 1) or (sizes is not None and not host().has_masks):
            return False
        kept = "i8" if dtype.kind == "b" else TYPES[dtype.name]
        first = self.b.at(self.memory[source], start, kept)
        transposes.transpose(self.b, first, pitch, self.memory[target], side, kept, sizes)
        return True

    def totals(self, source: int, target: int, side: int, lanes: int, combine: str, dtype: np.dtype) -> bool:
        if dtype.kind == "b" or side & (side - 1):
            return False
        if lanes < side:
            self._fill_lanes(source, side, lanes, self.const(_neutral(combine, dtype), dtype))
        found = totals(self.b, self.memory[source], side, TYPES[dtype.name], partial(self.op, combine, dtype))
        self.b.store_lanes(found, self.memory[target], None)
        return True

    def _fill_lanes(self, slot: int, side: int, lanes: int, value: IrValue) -> None:
        """Gives the lanes from ``lanes`` on of each row of a square the same value."""
        mask = self.b.numbers([n < lanes for n in range(side)], "i1")
        with self.b.loop(self.b.const(0, "i64"), self.b.const(side, "i64")) as row:
            place = self.b.at(self.memory[slot], row * side, value.type)
            x = self.b.load_lanes(place, value.type, side, None, value)
            self.b.store_lanes(self.b.select(mask, x, self.b.splat(value, side)), place, None)

    def barrier(self) -> None:
        """One thread owns a point of the grid."""

    # --- loops ---

    def loop(self, start: IrValue, stop: IrValue, body: Callable[[IrValue], None], *, hint: str = "") -> None:
        short = _below(stop, SHORT)
        if "vector" in hint and "near" in hint and not (self.unrolls and short):
            self.ahead.passes += 1
            self.lanes.loop(start, stop, body, self.side, "unroll" in hint)
        elif "vector" in hint:
            self._vector_loop(start, stop, body, short and (self.unrolls or "unroll" in hint or _below(stop, TINY)))
        else:
            self._outer_loop(start, stop, body, short)

    def _vector_loop(self, start: IrValue, stop: IrValue, body: Callable[[IrValue], None], unrolled: bool) -> None:
        self.b.module.has_loops = True
        group, outer, calls = self.b.module.access_group(), self.group, self.calls
        self.group = f", !llvm.access.group {group}"
        whole = not unrolled and stop.name.isdecimal()

        def metadata() -> str:
            interleave = _interleave(self.calls - calls, self.many, self.shares)
            return self.b.module.independent(group, interleave, whole)

        with self.b.loop(start, stop, metadata) as i:
            body(i)
        self.group = outer
        self.loops += not unrolled

    def _outer_loop(self, start: IrValue, stop: IrValue, body: Callable[[IrValue], None], short: bool) -> None:
        """Copies of a loop around loops gain nothing, and are as much more to compile."""
        before = self.loops
        with self.b.loop(start, stop, lambda: self.b.module.whole() if self.loops > before and not short else "") as i:
            body(i)
        self.loops += not short

    def fold(
        self,
        stop: IrValue,
        inits: Sequence[IrValue],
        dtypes: Sequence[np.dtype],
        body: Callable[[IrValue, Sequence[IrValue]], Sequence[IrValue]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[IrValue]:
        few = FEW if not self.unrolls and set(combines) <= {"add", "mul"} else SHORT
        if "near" in hint and not _below(stop, few):
            return self._fold_lanes(stop, inits, dtypes, body, combines)
        self.b.module.has_loops = True

        def turn(i: IrValue, carries: Sequence[IrValue]) -> Sequence[IrValue]:
            if combines and not _below(stop, FEW):
                self.free.update(c.name for c in carries)
            return body(i, carries)

        whole = combines and _below(stop, LONG) and not _below(stop, SHORT)
        self.loops += not _below(stop, SHORT)
        return self.b.carry(self.b.const(0, "i64"), stop, inits, turn, self.b.module.whole if whole else str)

    def _fold_lanes(
        self,
        stop: IrValue,
        inits: Sequence[IrValue],
        dtypes: Sequence[np.dtype],
        body: Callable[[IrValue, Sequence[IrValue]], Sequence[IrValue]],
        combines: Sequence[str],
    ) -> Sequence[IrValue]:
        """The initial values come last: each lane starts with what changes nothing. The order in which values are put
        together depends on their type and number, and on whether that is known, not on what else the kernel does."""

        def combine(n: int, x: IrValue, y: IrValue) -> IrValue:
            return self.op(combines[n], dtypes[n], x, y)

        neutral = [self.const(_neutral(*pair), pair[1]) for pair in zip(combines, dtypes, strict=True)]
        width = host().vector_bits // (8 * max(dtype.itemsize for dtype in dtypes))
        self.ahead.passes += 1
        totals = self.lanes.fold(stop, neutral, body, combine, width)
        return [combine(n, x, y) for n, (x, y) in enumerate(zip(inits, totals, strict=True))]


def _divides_by_itself(y: IrValue) -> bool:
    """Whether a divisor is a number that isn't 0 or -1."""
    return y.is_constant and y.name.lstrip("-").isdecimal() and int(y.name) not in (0, -1)


def _neutral(combine: str, dtype: np.dtype) -> Any:
    """What changes nothing that it is combined with."""
    if combine in ("max", "min"):
        low, high = (False, True) if dtype.kind == "b" else (-np.inf, np.inf) if dtype.kind == "f" else _range(dtype)
        return low if combine == "max" else high
    if combine == "and":
        return True if dtype.kind == "b" else -1
    return -0.0 if combine == "add" and dtype.kind == "f" else int(combine == "mul")


def _range(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _widest(kernel: Kernel) -> int:
    """Bytes of the widest type that a kernel computes in. Places in memory don't count, and neither do words of which
    a kernel computes with the halves."""
    nodes = {x.dtype for x in postorder(*kernel_roots(kernel)) if x.kind in ("load", "cast") or x.dtype != INT}
    if FLOAT32 in nodes:
        nodes.discard(WORD)
    return max([4 if dtype in NARROW else dtype.itemsize for dtype in nodes], default=8)


def _points(axes: Iterable[Axis]) -> int:
    """Of loops over ``axes``, as far as they are known."""
    return prod(axis.extent for axis in axes if isinstance(axis.extent, int))


def _below(stop: IrValue, bound: int) -> bool:
    """Whether a loop has fewer iterations for sure."""
    return stop.name.isdecimal() and int(stop.name) < bound


def _interleave(calls: int, many: bool, shared: bool) -> int:
    """How many vectors to compute side by side: an elementary function is a long chain of dependent operations, which
    only other elements can fill. 0 leaves it to LLVM: that is less code where one call is all, on few elements."""
    return 0 if calls < (1 if many else 2) else 4 if shared or calls <= 12 else 2


def _functions(kernel: Kernel) -> int:
    """How many elementary functions a kernel applies, short ones not counted."""
    used = postorder(*kernel_roots(kernel))
    return sum(x.kind == "op" and table.is_long(x.attr, TYPES[x.dtype.name]) for x in used)


def kernel_attributes() -> str:
    return f'nounwind "prefer-vector-width"="{host().vector_bits}"'


def add_kernel(module: Module, kernel: Kernel, schedule: Schedule, name: str) -> None:
    """Defines ``void name(void **buffers, const int64_t *scalars, int64_t begin, int64_t end)``."""
    addresses = "ptr noalias readonly"
    params = [(addresses, "buffers"), (addresses, "scalars"), ("i64", "begin"), ("i64", "end")]
    b = module.function("void", name, params, kernel_attributes())
    buffers, scalars, begin, end = b.args
    count = sum(o.role != "local" for o in kernel.operands)
    pointers = [b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(count)]
    emit_kernel(kernel, schedule, LlvmEmitter(b, kernel, pointers, scalars), begin, end)
    b.ret()
