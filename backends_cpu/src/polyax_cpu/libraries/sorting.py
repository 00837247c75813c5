"""Sorts and largest elements as native functions: one row after the other, along any dimension.

A row's keys and places become integers that are ordered as the row is to be: the first key has the highest bits, the
place the lowest ones. No two of them are equal, so any sort of these integers is a stable one of the row: many are
handed out digit by digit, few are merged. A few of a long row are kept in a heap, whose root is the one that the next
better one replaces.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops.sort import sort_p, top_k_p
from polyax_cpu import compiler, machine_code
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.lowering import Call, CallContext

Avals = Sequence[ShapedArray]
PLACE_BITS = 32
WIDEST = 256
"""Bits of the integers that are sorted."""
DIGIT = 8
"""Bits of a digit by which many integers are sorted; fewer are merged."""
BUCKETS = 1 << DIGIT
MANY = 32
"""Integers for each digit that are worth counting it."""
RUN = 16
"""So many neighbours are sorted by insertion before runs of them are merged."""
FEW_OF_MANY, FEW_OF_FEW = 16, 4
"""The parts of rows up to which their largest elements are kept in a heap: of those that are sorted digit by digit, and
of those that are merged, which takes longer for each element."""
LONG = 1024
"""From which length on NumPy may sort."""
EXPONENTS = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF << 52}
"""The bits of infinity; those of NaN are more."""
INTEGERS = {"bool"} | {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


@dataclass(frozen=True)
class NativeRows:
    """What a step says of the rows that it sorts: their length, how much of each is wanted, and how far their elements
    are from each other; how many rows there are."""

    scalars: tuple[int, int, int]
    extent: int
    few: bool
    """Whether what is wanted is found before it is sorted."""

    @property
    def flops(self) -> int:
        length, wanted, _ = self.scalars
        return 8 * self.extent * length * max(1, (wanted if self.few else length).bit_length())


# --- keys ------------------------------------------------------------------------------------------------------------


def _bits(dtype: Any) -> int:
    return 8 * dtype.itemsize


def _known(dtype: Any) -> bool:
    return dtype.name in EXPONENTS or dtype.name in INTEGERS


def _ordered(x: IrValue, name: str) -> IrValue:
    """The integer of as many bits as ``x``, without a sign, whose order is that of the elements; zeros of both signs
    are equal, and all NaNs, which come last."""
    lowest = 1 << (int(x.type[1:]) - 1)
    if name in EXPONENTS:
        size = x & (lowest - 1)
        number = x.b.select(x < 0, lowest - size, size | lowest)
        return x.b.select(size > EXPONENTS[name], x.like(-1), number)
    return x ^ lowest if name.startswith("int") else x


def _signed(x: IrValue, name: str) -> IrValue:
    """As ``_ordered``, but for zeros and NaNs, which are ordered by their signs: -NaN comes first."""
    if name not in EXPONENTS:
        return _ordered(x, name)
    lowest = 1 << (int(x.type[1:]) - 1)
    return x.b.select(x < 0, ~x, x | lowest)


def _record(b: Builder, type: str, keys: Sequence[IrValue], place: IrValue) -> IrValue:
    """Keys and place as one integer; its highest bit is turned, since it is compared as a number with a sign."""
    value = b.const(0, type)
    for key in keys:
        wide = key if key.type == type else b.convert("zext", key, type)
        value = (value << int(key.type[1:])) | wide
    value = (value << PLACE_BITS) | (place if type == "i64" else b.convert("zext", place, type))
    return value ^ (1 << (int(type[1:]) - 1))


# --- sorting ---------------------------------------------------------------------------------------------------------


SORT = [("ptr", "values"), ("ptr", "room"), ("i64", "count")]


def _define_sorting(module: Module, type: str, width: int) -> None:
    """``sorted(from, room, count)``: where the sorted integers are, which is either of both. ``width``: their bits."""
    _define_by_digits(module, type, width)
    b = module.function("ptr", "sorted", SORT)
    values, room, count = b.args
    with b.when(count >= _many(width)):
        b.ret(b.call("ptr", "by_digits", *b.args))
    with b.loop(0, (count + (RUN - 1)) / RUN) as n:
        _insert(b, type, values, n * RUN, b.intrinsic("smin", n * RUN + RUN, count))

    def double(state: list[IrValue]) -> list[IrValue]:
        source, target, width = state
        with b.loop(0, (count + (width * 2 - 1)) / (width * 2)) as n:
            begin = n * width * 2
            middle = b.intrinsic("smin", begin + width, count)
            _merge(b, type, source, target, begin, middle, b.intrinsic("smin", middle + width, count))
        return [target, source, width * 2]

    found = b.turns([values, room, b.const(RUN, "i64")], lambda state: state[2] < count, double)
    b.ret(found[0])


def _many(width: int) -> int:
    """How many integers are worth counting digits."""
    return MANY * len(_digits(width))


def _digits(width: int) -> range:
    """The first bits of the digits of integers with so many. Places, the lowest bits, are in order as it is."""
    return range(PLACE_BITS, width, DIGIT)


def _define_by_digits(module: Module, type: str, width: int) -> None:
    """``by_digits``: the same for many. From the lowest digit on, each hands all out in order; one that is the same for
    all is left out."""
    b = module.function("ptr", "by_digits", SORT)
    values, room, count = b.args
    digits, sign = _digits(width), 1 << (int(type[1:]) - 1)
    counters = b.alloca("i64", len(digits) * BUCKETS)

    def counter(x: IrValue, k: IrValue | int, shift: IrValue | int) -> IrValue:
        """That of digit ``k`` of ``x``."""
        bucket = b.plain("lshr", x ^ sign, x.like(shift)) & (BUCKETS - 1)
        bucket = bucket if type == "i64" else b.convert("trunc", bucket, "i64")
        return b.at(counters, bucket + k * BUCKETS, "i64")

    def turn(k: IrValue, state: list[IrValue]) -> list[IrValue]:
        source, target = state
        shift = k * DIGIT + PLACE_BITS
        shift = shift if type == "i64" else b.convert("zext", shift, type)
        same = b.load(counter(b.load(source, type), k, shift), "i64").compare("==", count)
        with b.when(~same):
            _sum_up(b, b.at(counters, k * BUCKETS, "i64"))
            with b.loop(0, count) as n:
                x = b.load(b.at(source, n, type), type)
                place = counter(x, k, shift)
                b.store(x, b.at(target, _plus_one(b, place), type))
        return [b.select(same, source, target), b.select(same, target, source)]

    b.call(
        "void",
        "llvm.memset.p0.i64",
        counters,
        b.const(0, "i8"),
        b.const(len(digits) * BUCKETS * 8, "i64"),
        b.const(False, "i1"),
    )
    with b.loop(0, count) as n:
        x = b.load(b.at(values, n, type), type)
        for k, shift in enumerate(digits):
            _plus_one(b, counter(x, k, shift))
    found = b.carry(b.const(0, "i64"), b.const(len(digits), "i64"), [values, room], turn)
    b.ret(found[0])


def _plus_one(b: Builder, place: IrValue) -> IrValue:
    """What was counted so far."""
    before = b.load(place, "i64")
    b.store(before + 1, place)
    return before


def _sum_up(b: Builder, counts: IrValue) -> None:
    """Each counter becomes the sum of those before it."""

    def step(n: IrValue, sums: list[IrValue]) -> list[IrValue]:
        place = b.at(counts, n, "i64")
        count = b.load(place, "i64")
        b.store(sums[0], place)
        return [sums[0] + count]

    b.carry(b.const(0, "i64"), b.const(BUCKETS, "i64"), [b.const(0, "i64")], step)


def _insert(b: Builder, type: str, values: IrValue, begin: IrValue, end: IrValue) -> None:
    """Sorts a short run: each goes to the left as long as its neighbour is larger."""
    with b.loop(begin + 1, end) as n:
        x = b.load(b.at(values, n, type), type)

        def before(state: list[IrValue], x: IrValue = x) -> IrValue:
            (place,) = state
            larger = lambda: b.load(b.at(values, place - 1, type), type) > x
            return b.choose(place > begin, larger, b.const(False, "i1"))

        def move(state: list[IrValue]) -> list[IrValue]:
            (place,) = state
            b.store(b.load(b.at(values, place - 1, type), type), b.at(values, place, type))
            return [place - 1]

        (place,) = b.turns([n], before, move)
        b.store(x, b.at(values, place, type))


def _merge(
    b: Builder, type: str, source: IrValue, target: IrValue, begin: IrValue, middle: IrValue, end: IrValue
) -> None:
    """Two sorted runs that follow each other become one, without branches on what is compared."""

    def both(state: list[IrValue]) -> IrValue:
        left, right = state
        return (left < middle) & (right < end)

    def take(state: list[IrValue]) -> list[IrValue]:
        left, right = state
        x, y = (b.load(b.at(source, n, type), type) for n in state)
        smaller = x < y
        b.store(b.select(smaller, x, y), b.at(target, left + right - middle, type))
        step = b.convert("zext", smaller, "i64")
        return [left + step, right + (1 - step)]

    left, right = b.turns([begin, middle], both, take)
    for first, stop, to in ((left, middle, left + right - middle), (right, end, left + right - middle)):
        _copy(b, type, source, first, target, to, stop - first)


def _copy(b: Builder, type: str, source: IrValue, n: IrValue, target: IrValue, m: IrValue, count: IrValue) -> None:
    nbytes = count * (int(type[1:]) // 8)
    places = b.at(target, m, type), b.at(source, n, type)
    b.call("void", "llvm.memcpy.p0.p0.i64", *places, nbytes, b.const(False, "i1"))


# --- selection -------------------------------------------------------------------------------------------------------


def _define_sinking(module: Module, type: str) -> None:
    """``sink(heap, count, place, x)``: puts ``x`` into the place of a heap, or below, where larger ones move up."""
    params = [("ptr", "heap"), ("i64", "count"), ("i64", "place"), (type, "x")]
    b = module.function("void", "sink", params)
    heap, count, place, x = b.args
    value = lambda n: b.load(b.at(heap, n, type), type)

    def larger_child(place: IrValue) -> IrValue:
        left = place * 2 + 1
        right = b.intrinsic("smin", left + 1, count - 1)
        return b.select(value(left) < value(right), right, left)

    def above(state: list[IrValue]) -> IrValue:
        (place,) = state
        return b.choose(place * 2 + 1 < count, lambda: value(larger_child(place)) > x, b.const(False, "i1"))

    def move(state: list[IrValue]) -> list[IrValue]:
        (place,) = state
        child = larger_child(place)
        b.store(value(child), b.at(heap, place, type))
        return [child]

    (found,) = b.turns([place], above, move)
    b.store(x, b.at(heap, found, type))
    b.ret()


# --- functions -------------------------------------------------------------------------------------------------------


@functools.cache
def _function(dtypes: tuple[Any, ...], num_keys: int, largest: bool, few: bool) -> compiler.LoadedCode:
    """``compute(operands and results, (length, wanted, stride), rows)``. ``largest``: in descending order, and the
    second result are places. ``few``: what is wanted is found before it is sorted."""
    width = _width(dtypes[:num_keys])
    type = f"i{max(64, 1 << (width - 1).bit_length())}"
    module = Module(["compute"])
    _define_sorting(module, type, width)
    if few:
        _define_sinking(module, type)
    b = module.function("void", "compute", FUNCTION_PARAMS)
    rows = _RowWriter(b, type, dtypes, num_keys, largest)
    count = rows.wanted if few else rows.length
    values = b.call(
        "ptr", "malloc", count * (int(type[1:]) // 8 * 2)
    )  # one block: what else is free goes back, in parts
    room = b.at(values, count, type)
    with b.loop(b.args[2], b.args[3]) as row:
        rows.begin(row)
        rows.write_integers(values, count)
        if few:
            rows.keep_best(values)
        rows.write_results(b.call("ptr", "sorted", values, room, count))
    b.call("void", "free", values)
    b.ret()
    return machine_code.library(module.text(), ["compute"], {}, level=1)


class _RowWriter:
    """Writes what is done with a row before and after its integers are sorted."""

    def __init__(self, b: Builder, type: str, dtypes: Sequence[Any], num_keys: int, largest: bool) -> None:
        self.b = b
        self.type = type
        self.dtypes = dtypes
        self.num_keys = num_keys
        self.largest = largest
        buffers, scalars, *_ = b.args
        self.length, self.wanted, self.stride = (b.load(b.at(scalars, n, "i64"), "i64") for n in range(3))
        count = len(dtypes)
        pointers = [b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(2 * count + largest)]
        self.sources, self.targets = pointers[:count], pointers[count:]

    def begin(self, row: IrValue) -> None:
        outer = row / self.stride
        inner = row - outer * self.stride
        self.read = outer * self.length * self.stride + inner
        self.written = outer * self.wanted * self.stride + inner
        """Where the row begins in operands and in results."""

    def write_integers(self, values: IrValue, count: IrValue) -> None:
        with self.b.loop(0, count) as n:
            self.b.store(self.record(n), self.b.at(values, n, self.type))

    def record(self, n: IrValue) -> IrValue:
        order = _signed if self.largest else _ordered
        keys = [order(self.load(k, n), self.dtypes[k].name) for k in range(self.num_keys)]
        return _record(self.b, self.type, [~key for key in keys] if self.largest else keys, n)

    def keep_best(self, heap: IrValue) -> None:
        """Of all integers of the row the least, ``wanted`` of them; the first ones are there already."""
        b, none = self.b, self.b.const(0, "i64")
        half = self.wanted / 2
        with b.loop(0, half) as n:
            place = half - 1 - n
            b.call("void", "sink", heap, self.wanted, place, b.load(b.at(heap, place, self.type), self.type))
        with b.loop(self.wanted, self.length) as n:
            x = self.record(n)
            with b.when(x < b.load(heap, self.type)):
                b.call("void", "sink", heap, self.wanted, none, x)

    def write_results(self, found: IrValue) -> None:
        b = self.b
        with b.loop(0, self.wanted) as n:
            record, to = b.load(b.at(found, n, self.type), self.type), self.written + n * self.stride
            number = record if self.type == "i64" else b.convert("trunc", record, "i64")
            place = number & ((1 << PLACE_BITS) - 1)
            for k, dtype in enumerate(self.dtypes):
                b.store(self.load(k, place), b.at(self.targets[k], to, f"i{_bits(dtype)}"), _aligned(dtype))
            if self.largest:
                b.store(b.convert("trunc", place, "i32"), b.at(self.targets[1], to, "i32"))

    def load(self, k: int, place: IrValue) -> IrValue:
        """An element of operand ``k``, as bits."""
        type = f"i{_bits(self.dtypes[k])}"
        pointer = self.b.at(self.sources[k], self.read + place * self.stride, type)
        return self.b.load(pointer, type, _aligned(self.dtypes[k]))


def _aligned(dtype: Any) -> str:
    return f", align {min(8, dtype.itemsize)}"


def _width(keys: Sequence[Any]) -> int:
    """Bits that a place takes with keys of such types."""
    return sum(map(_bits, keys)) + PLACE_BITS


def _describe(avals: Avals, axis: int, num_keys: int, wanted: int, largest: bool) -> tuple[int, NativeRows] | None:
    """None: NumPy does it."""
    dtypes, shape = tuple(a.dtype for a in avals), avals[0].shape
    keys = dtypes[:num_keys]
    if not all(map(_known, keys)) or _width(keys) > WIDEST or shape[axis] >= 1 << (PLACE_BITS - 1):
        return None
    stride = math.prod(shape[axis + 1 :])
    few = _are_few(wanted, shape[axis], _width(keys))
    rows = NativeRows((shape[axis], wanted, max(1, stride)), math.prod(shape[:axis]) * stride, few)
    return _function(dtypes, num_keys, largest, few).address("compute"), rows


def _are_few(wanted: int, length: int, width: int) -> bool:
    return 0 < wanted * (FEW_OF_MANY if length >= _many(width) else FEW_OF_FEW) <= length


def _sort(args: Avals, _: Avals, params: Mapping[str, Any]) -> Any:
    axis, count = params["dimension"], params["num_keys"]
    if _by_numpy(args, params):
        return None
    return _describe(args, axis, count, args[0].shape[axis], largest=False)


def _by_numpy(args: Avals, params: Mapping[str, Any]) -> bool:
    """A long row of integers alone, of which equal ones can't be told apart: NumPy has no keys to carry along, and
    sorts those of two bytes or more by vectors."""
    x = args[0]
    integers = x.dtype.name in INTEGERS and x.dtype.itemsize > 1
    return len(args) == 1 and integers and x.shape[params["dimension"]] == x.size > LONG


def _prepared(context: CallContext, outs: Avals, args: Avals, params: dict[str, Any]) -> Callable[..., None]:
    if not _by_numpy(args, params):
        return on_host(sort_p).ready(context, outs, args, params)

    def run(outs: Sequence[Any], args: Sequence[Any]) -> None:
        outs[0][...] = args[0]
        outs[0].sort(params["dimension"])

    return run


def _top_k(args: Avals, _: Avals, params: Mapping[str, Any]) -> Any:
    return _describe(args, params["axis"], 1, params["k"], largest=True)


LOWERINGS: dict[Primitive, Call] = {
    sort_p: Call(prepare=_prepared, native=_sort),
    top_k_p: Call(on_host(top_k_p).run, native=_top_k),
}
