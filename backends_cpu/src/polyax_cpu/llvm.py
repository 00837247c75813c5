"""LLVM IR as text: typed values with arithmetic operators, a builder of one function, a module of several.

Text is what LLVM parses anyway, and writing it is several times faster than building an object tree first. A value may
have several lanes: what is written for single values then works on all of them, and single ones become equal lanes.
Knows types and instructions; must not know kernels.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from polyax_cpu.processors import host

FLOATS = ("half", "bfloat", "float", "double")
BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
Params = Sequence[tuple[str, str]]
"""(type with attributes, name) pairs."""
_COMPARE = {
    "==": ("oeq", "eq"),
    "!=": ("une", "ne"),
    "<": ("olt", "slt"),
    "<=": ("ole", "sle"),
    ">": ("ogt", "sgt"),
    ">=": ("oge", "sge"),
}


def literal(value: Any, type: str) -> str:
    """A constant's text. Floats are written as the bits of the double with the value rounded to ``type``."""
    if type not in FLOATS:
        return str(int(value)) if type != "i1" else ("true" if value else "false")
    number = float(value)
    if type == "float" and abs(number) != float("inf"):
        number = struct.unpack("f", struct.pack("f", number))[0]
    return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"


def vector(type: str, lanes: int) -> str:
    """The type of ``lanes`` values of ``type``."""
    return type if lanes == 1 else f"<{lanes} x {type}>"


def size_of(type: str) -> int:
    """Bytes."""
    return max(8, BITS.get(type) or int(type[1:])) // 8


class IrValue:
    """An SSA value. Operators emit instructions; Python numbers take the other operand's type; ints are signed.

    ``type`` is that of one lane.
    """

    __slots__ = ("_name", "b", "lanes", "type")

    def __init__(self, b: Builder, type: str, name: str, lanes: int = 1) -> None:
        self.b = b
        self.type = type
        self._name = name
        self.lanes = lanes

    @property
    def name(self) -> str:
        return self._name

    def __str__(self) -> str:
        return f"{vector(self.type, self.lanes)} {self.name}"

    @property
    def is_constant(self) -> bool:
        return self.name[0] not in "%@"

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS

    def like(self, x: IrValue | float) -> IrValue:
        return x if isinstance(x, IrValue) else IrValue(self.b, self.type, literal(x, self.type))

    def _arith(self, operation: str, other: IrValue | float, swap: bool = False) -> IrValue:
        x, y = (self.like(other), self) if swap else (self, self.like(other))
        return self.b.binary(operation, x, y)

    def __add__(self, other: IrValue | float) -> IrValue:
        return self._arith("add", other)

    def __sub__(self, other: IrValue | float) -> IrValue:
        return self._arith("sub", other)

    def __rsub__(self, other: float) -> IrValue:
        return self._arith("sub", other, swap=True)

    def __mul__(self, other: IrValue | float) -> IrValue:
        return self._arith("mul", other)

    def __truediv__(self, other: IrValue | float) -> IrValue:
        return self._arith("div", other)

    def __rtruediv__(self, other: float) -> IrValue:
        return self._arith("div", other, swap=True)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> IrValue:
        return self.b.emit(self.type, f"fneg {self}", self.lanes) if self.is_float else 0 - self

    def __and__(self, other: IrValue | int) -> IrValue:
        return self.b.plain("and", self, self.like(other))

    def __or__(self, other: IrValue | int) -> IrValue:
        return self.b.plain("or", self, self.like(other))

    def __xor__(self, other: IrValue | int) -> IrValue:
        return self.b.plain("xor", self, self.like(other))

    def __invert__(self) -> IrValue:
        return self ^ (1 if self.type == "i1" else -1)

    def __lshift__(self, other: IrValue | int) -> IrValue:
        return self.b.plain("shl", self, self.like(other))

    def __rshift__(self, other: IrValue | int) -> IrValue:
        """Arithmetic: the sign is shifted in."""
        return self.b.plain("ashr", self, self.like(other))

    def compare(self, relation: str, other: IrValue | float) -> IrValue:
        """An ``i1``; false for NaN, but for ``!=``."""
        float_name, int_name = _COMPARE[relation]
        return self.b.test(f"fcmp {float_name}" if self.is_float else f"icmp {int_name}", self, self.like(other))

    def __lt__(self, other: IrValue | float) -> IrValue:
        return self.compare("<", other)

    def __le__(self, other: IrValue | float) -> IrValue:
        return self.compare("<=", other)

    def __gt__(self, other: IrValue | float) -> IrValue:
        return self.compare(">", other)

    def __ge__(self, other: IrValue | float) -> IrValue:
        return self.compare(">=", other)


def _suffix(type: str, lanes: int) -> str:
    """How the names of intrinsics speak of a type."""
    count = "" if lanes == 1 else f"v{lanes}"
    return count + {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(type, type)


class Builder:
    """Writes one function, block after block."""

    @property
    def scales(self) -> bool:
        """Whether the processor multiplies by powers of two in one instruction."""
        return host().has_masks

    def scales_by(self, n: IrValue) -> bool:
        """Whether the processor takes these powers as floats: whole vectors of them."""
        return n.lanes * BITS[n.type] % 512 == 0

    def scaled(self, x: IrValue, n: IrValue) -> IrValue:
        """``x * 2^n``, rounded once."""
        if n.is_float:
            return self._scaled_by(x, n)
        n = n if n.type == "i32" else self.convert("trunc", n, "i32")
        lanes = max(x.lanes, n.lanes)
        x, n = self.splat(x, lanes), self.splat(n, lanes)
        kind, of = vector(x.type, lanes), f"{_suffix(x.type, lanes)}.{_suffix('i32', lanes)}"
        self.module.declare(f"llvm.ldexp.{of}", f"{kind} @llvm.ldexp.{of}({kind}, {vector('i32', lanes)})")
        return self.emit(x.type, f"call {kind} @llvm.ldexp.{of}({x}, {n})", lanes)

    def _scaled_by(self, x: IrValue, n: IrValue) -> IrValue:
        """In vectors of 512 bits, as that instruction takes them: all lanes, rounded as everything is."""
        lanes = 512 // BITS[n.type]
        kind, mask, letter = vector(n.type, lanes), f"i{lanes}", "s" if n.type == "float" else "d"
        name = f"llvm.x86.avx512.mask.scalef.p{letter}.512"
        self.module.declare(name, f"{kind} @{name}({kind}, {kind}, {kind}, {mask}, i32)")
        call = lambda x, n: self.emit(n.type, f"call {kind} @{name}({x}, {n}, {x}, {mask} -1, i32 4)", lanes)
        x = self.splat(x, n.lanes)
        starts = range(0, n.lanes, lanes)
        return self.joined([call(self.part(x, start, lanes), self.part(n, start, lanes)) for start in starts])

    def __init__(self, module: Module, result: str, name: str, params: Params, tail: str = "") -> None:
        """``tail``: the function's attributes."""
        self.module = module
        self.name = name
        self.flags = ""
        """Fast-math flags of the float arithmetic that follows."""
        self.block = "entry"
        self._count = 0
        self._lines: list[str] = []
        self._entry: list[str] = []
        linkage = "" if name in module.exports else "internal "
        shown = ", ".join(f"{type} %{param}" for type, param in params)
        self._head = f"define {linkage}{result} @{name}({shown}) {tail} {{\nentry:"
        self.args = [self._argument(type, f"%{param}") for type, param in params]

    def _argument(self, type: str, name: str) -> IrValue:
        if type[0] != "<":
            return IrValue(self, type.split()[0], name)
        lanes, element = type[1:-1].split(" x ")
        return IrValue(self, element, name, int(lanes))

    def text(self) -> str:
        return "\n".join((self._head, *self._entry, *self._lines, "}"))

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        self._lines.append(text)

    def emit(self, type: str, text: str, lanes: int = 1) -> IrValue:
        name = "%" + self.fresh()
        self._lines.append(f"{name} = {text}")
        return IrValue(self, type, name, lanes)

    def const(self, value: Any, type: str) -> IrValue:
        return IrValue(self, type, literal(value, type))

    def pointer(self, name: str) -> IrValue:
        """The address of a global, or ``null``."""
        return IrValue(self, "ptr", name)

    def plain(self, operation: str, x: IrValue, y: IrValue) -> IrValue:
        if x.lanes != y.lanes:
            x, y = self.level(x, y)
        return self.emit(x.type, f"{operation} {x}, {y.name}", x.lanes)

    def binary(self, operation: str, x: IrValue, y: IrValue) -> IrValue:
        if x.is_float:
            operation = f"f{operation} {self.flags}"
        return self.plain("sdiv" if operation == "div" else operation, x, y)

    def test(self, comparison: str, x: IrValue, y: IrValue) -> IrValue:
        """``fcmp oeq``, ``icmp slt``, ..."""
        if x.lanes != y.lanes:
            x, y = self.level(x, y)
        return self.emit("i1", f"{comparison} {x}, {y.name}", x.lanes)

    def select(self, condition: IrValue, x: IrValue | float, y: IrValue | float) -> IrValue:
        x = y.like(x) if isinstance(y, IrValue) else x
        assert isinstance(x, IrValue)
        y = x.like(y)
        if condition.lanes != 1 or x.lanes != y.lanes:
            condition, x, y = self.level(condition, x, y)
        return self.emit(x.type, f"select {condition}, {x}, {y}", x.lanes)

    def convert(self, operation: str, x: IrValue, type: str) -> IrValue:
        """``sitofp``, ``fptrunc``, ``bitcast``, ``zext``, ..."""
        return self.emit(type, f"{operation} {x} to {vector(type, x.lanes)}", x.lanes)

    def call(self, result: str, name: str, *args: IrValue, declare: str | None = None) -> IrValue:
        """Calls a function, declaring it if the module does not define it."""
        self.module.declare(name, declare or f"{result} @{name}({', '.join(a.type for a in args)})")
        return self.invoke(result, self.pointer(f"@{name}"), *args)

    def call_lanes(self, result: str, name: str, *args: IrValue, flags: str = "") -> IrValue:
        """Calls a function of vectors: all arguments and the result have as many lanes. ``flags`` stand before the type
        of the result."""
        values = self.level(*args)
        lanes = values[0].lanes
        to = f"{flags} {vector(result, lanes)}".lstrip()
        self.module.declare(name, f"{to} @{name}({', '.join(vector(a.type, lanes) for a in values)})")
        return self.emit(result, f"call {to} @{name}({', '.join(map(str, values))})", lanes)

    def invoke(self, result: str, function: IrValue, *args: IrValue) -> IrValue:
        """Calls the function at an address."""
        text = f"call {result} {function.name}({', '.join(map(str, args))})"
        if result == "void":
            self.line(text)
            return IrValue(self, "void", "void")
        return self.emit(result, text)

    def intrinsic(self, name: str, *args: IrValue, result: str | None = None) -> IrValue:
        """An LLVM intrinsic such as ``fma``, overloaded on its first operand, and before that on its ``result`` if that
        is named. Operands of type ``i1`` are settings, one for all lanes."""
        lanes = max([a.lanes for a in args])
        values = args if lanes == 1 else [a if a.type == "i1" else self.splat(a, lanes) for a in args]
        kinds = [vector(a.type, a.lanes) for a in values]
        to = vector(result or args[0].type, lanes)
        of = _suffix(values[0].type, lanes)
        of = of if result is None else f"{_suffix(result, lanes)}.{of}"
        self.module.declare(f"llvm.{name}.{of}", f"{to} @llvm.{name}.{of}({', '.join(kinds)})")
        return self.emit(result or args[0].type, f"call {to} @llvm.{name}.{of}({', '.join(map(str, values))})", lanes)

    # lanes ------------------------------------------------------------------------------------------------------------

    def splat(self, x: IrValue, lanes: int) -> IrValue:
        """``x`` in each lane."""
        if x.lanes == lanes:
            return x
        assert x.lanes == 1, f"{x} has {x.lanes} lanes, not {lanes}"
        if x.is_constant:
            return IrValue(self, x.type, f"splat ({x})", lanes)
        wide = vector(x.type, lanes)
        first = self.emit(x.type, f"insertelement {wide} poison, {x}, i64 0", lanes)
        return self.emit(x.type, f"shufflevector {first}, {wide} poison, <{lanes} x i32> zeroinitializer", lanes)

    def level(self, *values: IrValue) -> list[IrValue]:
        """The values with as many lanes as the widest has."""
        lanes = max([x.lanes for x in values])
        return [self.splat(x, lanes) for x in values]

    def numbers(self, values: Sequence[int], type: str) -> IrValue:
        """A constant with these lanes."""
        return IrValue(self, type, f"<{', '.join(f'{type} {literal(n, type)}' for n in values)}>", len(values))

    def lane(self, x: IrValue, n: int) -> IrValue:
        return x if x.lanes == 1 else self.emit(x.type, f"extractelement {x}, i64 {n}")

    def part(self, x: IrValue, start: int, count: int) -> IrValue:
        """Some of the lanes of ``x``; what it doesn't have is undefined."""
        if count == x.lanes:
            return x
        if count == 1:
            return self.lane(x, start)
        places = ", ".join(f"i32 {n}" if n < x.lanes else "i32 poison" for n in range(start, start + count))
        wide = vector(x.type, x.lanes)
        return self.emit(x.type, f"shufflevector {x}, {wide} poison, <{count} x i32> <{places}>", count)

    def shuffled(self, x: IrValue, places: Sequence[int | None]) -> IrValue:
        """Lanes of ``x``; where there is no number they are undefined."""
        shown, wide = ", ".join("i32 poison" if n is None else f"i32 {n}" for n in places), vector(x.type, x.lanes)
        return self.emit(x.type, f"shufflevector {x}, {wide} poison, <{len(places)} x i32> <{shown}>", len(places))

    def any(self, x: IrValue) -> IrValue:
        """Whether one of the lanes, of type ``i1``, is true."""
        return x if x.lanes == 1 else self.emit(f"i{x.lanes}", f"bitcast {x} to i{x.lanes}").compare("!=", 0)

    def joined(self, parts: Sequence[IrValue]) -> IrValue:
        """The lanes of all parts, which have equally many, one part after the other."""
        parts = list(parts)
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._pair(x, y) for x, y in pairs]
        return parts[0]

    def _pair(self, x: IrValue, y: IrValue) -> IrValue:
        if x.lanes == 1:
            first = self.emit(x.type, f"insertelement {vector(x.type, 2)} poison, {x}, i64 0", 2)
            return self.emit(x.type, f"insertelement {first}, {y}, i64 1", 2)
        return self.mixed(x, y, range(2 * x.lanes))

    def mixed(self, x: IrValue, y: IrValue, places: Sequence[int]) -> IrValue:
        """Lanes of ``x`` and ``y``, those of ``y`` counted on from those of ``x``."""
        shown = ", ".join(f"i32 {n}" for n in places)
        return self.emit(x.type, f"shufflevector {x}, {y}, <{len(places)} x i32> <{shown}>", len(places))

    def pieces(self, width: int, apply: Callable[..., IrValue], *args: IrValue) -> IrValue:
        """``apply`` on vectors of ``width`` lanes, where the arguments have more or fewer (powers of two)."""
        values = self.level(*args)
        lanes = values[0].lanes
        if lanes < width:
            return self.part(apply(*(self.part(x, 0, width) for x in values)), 0, lanes)
        return self.joined([apply(*(self.part(x, n, width) for x in values)) for n in range(0, lanes, width)])

    # memory -----------------------------------------------------------------------------------------------------------

    def at(self, pointer: IrValue, offset: IrValue | int, type: str) -> IrValue:
        """The address of element ``offset``."""
        offset = offset if isinstance(offset, IrValue) else self.const(offset, "i64")
        return self.emit("ptr", f"getelementptr inbounds {type}, {pointer}, {offset}")

    def load(self, pointer: IrValue, type: str, note: str = "") -> IrValue:
        return self.emit(type, f"load {type}, {pointer}{note}")

    def prefetch(self, pointer: IrValue) -> None:
        """Asks memory for what is to be read soon. Addresses where nothing is do no harm."""
        self.module.declare("llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.line(f"call void @llvm.prefetch.p0({pointer}, i32 0, i32 3, i32 1)")  # to read, into all caches, data

    def load_lanes(self, pointer: IrValue, type: str, lanes: int, mask: IrValue | None, other: IrValue) -> IrValue:
        """Elements that follow each other; where ``mask`` is false nothing is read, and ``other`` given."""
        kind, align = vector(type, lanes), size_of(type)
        if mask is None:
            return self.emit(type, f"load {kind}, {pointer}, align {align}", lanes)
        mask, other = self.splat(mask, lanes), self.splat(other, lanes)
        name = f"llvm.masked.load.{_suffix(other.type, lanes)}.p0"
        self.module.declare(name, f"{kind} @{name}(ptr, <{lanes} x i1>, {kind})")
        return self.emit(type, f"call {kind} @{name}(ptr align {align} {pointer.name}, {mask}, {other})", lanes)

    def store_lanes(self, value: IrValue, pointer: IrValue, mask: IrValue | None) -> None:
        """Stores the lanes for which ``mask`` holds."""
        kind, align = vector(value.type, value.lanes), size_of(value.type)
        if mask is None:
            return self.line(f"store {value}, {pointer}, align {align}")
        name = f"llvm.masked.store.{_suffix(value.type, value.lanes)}.p0"
        self.module.declare(name, f"void @{name}({kind}, ptr, <{value.lanes} x i1>)")
        self.line(f"call void @{name}({value}, ptr align {align} {pointer.name}, {self.splat(mask, value.lanes)})")

    def store(self, value: IrValue, pointer: IrValue, note: str = "") -> None:
        self.line(f"store {value}, {pointer}{note}")

    def alloca(self, type: str, count: int = 1) -> IrValue:
        """Stack memory, taken once on entry."""
        name = "%" + self.fresh("local")
        self._entry.append(f"{name} = alloca {type}, i64 {count}, align 64")
        return IrValue(self, "ptr", name)

    def array(self, type: str, count: IrValue) -> IrValue:
        """Stack memory, taken where this stands; ``count`` may be known only when the code runs."""
        return self.emit("ptr", f"alloca {type}, {count}")

    # control flow -----------------------------------------------------------------------------------------------------

    def start(self, block: str) -> None:
        self._lines.append(f"{block}:")
        self.block = block

    def jump(self, block: str) -> None:
        self._lines.append(f"br label %{block}")

    def branch(self, condition: IrValue, then: str, other: str) -> None:
        self._lines.append(f"br {condition}, label %{then}, label %{other}")

    def ret(self, value: IrValue | None = None) -> None:
        self._lines.append(f"ret {value}" if value else "ret void")

    @contextlib.contextmanager
    def when(self, condition: IrValue) -> Generator[None, None, None]:
        """Code that runs where ``condition`` holds."""
        then, end = self.fresh("then"), self.fresh("end")
        self.branch(condition, then, end)
        self.start(then)
        yield
        if not self._lines[-1].startswith("ret "):
            self.jump(end)
        self.start(end)

    @contextlib.contextmanager
    def forever(self) -> Generator[None, None, None]:
        """Code that runs again and again, until it returns; nothing follows."""
        head = self.fresh("head")
        self.jump(head)
        self.start(head)
        yield
        self.jump(head)

    def choose(self, condition: IrValue, then: Callable[[], IrValue], other: IrValue) -> IrValue:
        """``then()`` where ``condition`` holds, else ``other``; evaluates no more than needed."""
        taken, end, before = self.fresh("then"), self.fresh("end"), self.block
        self.branch(condition, taken, end)
        self.start(taken)
        value, last = then(), self.block
        self.jump(end)
        self.start(end)
        kind = vector(value.type, value.lanes)
        return self.emit(value.type, f"phi {kind} [{value.name}, %{last}], [{other.name}, %{before}]", value.lanes)

    def rarely(self, condition: IrValue, then: Callable[[], IrValue], other: IrValue) -> IrValue:
        """``then()`` in lanes where ``condition`` holds, else ``other``. Vectors ask whether it holds anywhere; loops
        over single numbers become vectors if there are no branches in them."""
        value = lambda: self.select(condition, then(), other)
        return value() if condition.lanes == 1 else self.choose(self.any(condition), value, other)

    def carry(
        self,
        start: IrValue,
        stop: IrValue,
        inits: Sequence[IrValue],
        body: Callable[[IrValue, list[IrValue]], Sequence[IrValue]],
        metadata: Callable[[], str] = str,
        step: int = 1,
    ) -> list[IrValue]:
        """``for i in start..stop: carries = body(i, carries)``; the carries after the last turn."""
        before, phi_at = self.block, len(self._lines) + 2  # behind the jump to the loop's head and its label
        carries = [IrValue(self, x.type, "%" + self.fresh("c"), x.lanes) for x in inits]
        with self.loop(start, stop, metadata, step) as i:
            new = body(i, carries)
            self.phis(phi_at, carries, {before: inits, self.block: new})
        return carries

    def turns(
        self,
        inits: Sequence[IrValue],
        test: Callable[[list[IrValue]], IrValue],
        body: Callable[[list[IrValue]], Sequence[IrValue]],
    ) -> list[IrValue]:
        """``while test(carries): carries = body(carries)``; the carries that fail the test."""
        before, turn, end = self.block, self.fresh("turn"), self.fresh("end")
        head, phi_at, carries = self.head(inits)
        self.branch(test(carries), turn, end)
        self.start(turn)
        new = body(carries)
        self.phis(phi_at, carries, {before: inits, self.block: new})
        self.jump(head)
        self.start(end)
        return carries

    def head(self, inits: Sequence[IrValue]) -> tuple[str, int, list[IrValue]]:
        """Starts a block to which others come back: its name, what ``phis`` is to be told, and the values that have
        types as ``inits``."""
        head = self.fresh("head")
        self.jump(head)
        self.start(head)
        return head, len(self._lines), [IrValue(self, x.type, "%" + self.fresh("c"), x.lanes) for x in inits]

    def phis(self, at: int, values: Sequence[IrValue], sources: Mapping[str, Sequence[IrValue]]) -> None:
        """Says what the values of a block are, by the block before it. Of several blocks the last one comes first."""
        for c, *found in zip(values, *sources.values(), strict=True):
            pairs = ", ".join(f"[{x.name}, %{block}]" for x, block in zip(found, sources, strict=True))
            self._lines.insert(at, f"{c.name} = phi {vector(c.type, c.lanes)} {pairs}")

    @contextlib.contextmanager
    def loop(
        self, start: IrValue | int, stop: IrValue, metadata: Callable[[], str] = str, step: IrValue | int = 1
    ) -> Generator[IrValue, None, None]:
        """``for i in start..stop``; the block inside is the loop's body. ``metadata`` is asked when it is complete."""
        first = stop.like(start)
        before, head, turn, end = self.block, self.fresh("head"), self.fresh("turn"), self.fresh("end")
        self.jump(head)
        self.start(head)
        phi_at = len(self._lines)
        i = IrValue(self, "i64", "%" + self.fresh("i"))
        self.branch(self.emit("i1", f"icmp slt {i}, {stop.name}"), turn, end)
        self.start(turn)
        yield i
        following = self.emit("i64", f"add nuw nsw {i}, {stop.like(step).name}")
        self._lines.append(f"br label %{head}{metadata()}")
        self._lines.insert(phi_at, f"{i.name} = phi i64 [{first.name}, %{before}], [{following.name}, %{self.block}]")
        self.start(end)


class Module:
    """Functions and declarations; ``exports`` are the names that keep external linkage."""

    def __init__(self, exports: Sequence[str] = ()) -> None:
        self.exports = set(exports)
        self.functions: dict[str, Builder] = {}
        self._declared: dict[str, str] = {}
        self._lines: dict[str, None] = {}
        self._metadata = 0
        self._used: list[str] = []
        self.widths: dict[str, int] = {}
        """The lanes of functions that are defined for vectors."""
        self.has_loops = False
        """Whether it has loops that LLVM is to make vectors of."""

    def function(self, result: str, name: str, params: Params, tail: str = "") -> Builder:
        self.functions[name] = builder = Builder(self, result, name, params, tail)
        return builder

    @property
    def level(self) -> int:
        """How much LLVM is to do."""
        return 2 if self.has_loops else 1

    @property
    def declared(self) -> list[str]:
        """The functions from elsewhere."""
        return [name for name in self._declared if name not in self.functions]

    def declare(self, name: str, text: str) -> None:
        self._declared.setdefault(name, text)

    def top(self, line: str) -> None:
        """A line at the top level, once: a constant, an attribute group."""
        self._lines.setdefault(line)

    def keep(self, *names: str) -> None:
        """Keeps functions that nothing calls yet: the loop vectoriser will."""
        self._used += [f"ptr @{name}" for name in names]

    def access_group(self) -> str:
        """A new mark for memory accesses that are independent between the iterations of a loop."""
        return self._node("distinct !{}")

    def independent(self, group: str, interleave: int, whole: bool) -> str:
        """The text for the back edge of the loop of an access group. ``interleave``: so many vectors are computed side
        by side (0: as LLVM finds best). ``whole``: not to be unrolled before it is vectorised."""
        hints = [self._node(f'!{{!"llvm.loop.parallel_accesses", {group}}}')]
        if interleave:
            hints.append(self._node(f'!{{!"llvm.loop.interleave.count", i32 {interleave}}}'))
        if whole:
            hints.append(self._node('!{!"llvm.loop.unroll.disable"}'))
        return f", !llvm.loop {self._node(f'distinct !{{!{self._metadata}, {chr(44).join(hints)}}}')}"

    def whole(self) -> str:
        """The text for the back edge of a loop that is not to be unrolled before it is vectorised."""
        hint = self._node('!{!"llvm.loop.unroll.disable"}')
        return f", !llvm.loop {self._node(f'distinct !{{!{self._metadata}, {hint}}}')}"

    def _node(self, text: str) -> str:
        n, self._metadata = self._metadata, self._metadata + 1
        self.top(f"!{n} = {text}")
        return f"!{n}"

    def text(self) -> str:
        declared = (f"declare {self._declared[name]}" for name in self.declared)
        used = f"@llvm.compiler.used = appending global [{len(self._used)} x ptr] [{', '.join(self._used)}]"
        kept = (f'{used}, section "llvm.metadata"',) if self._used else ()
        return "\n".join((*self._lines, *kept, *declared, *(f.text() for f in self.functions.values()))) + "\n"
