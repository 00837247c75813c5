"""Loops and branches as native functions: small kernels and linear algebra of a few numbers are part of them, what
else a turn runs is called.

Small carries and intermediate values are locals. Where a call fails, the function ends. Knows plans; must not know how
kernels or library calls are made.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from polyax.runtime.contract.queue import check_wanted
from polyax_cpu import compiler, machine_code, pool
from polyax_cpu.emit.emitter import LlvmEmitter, kernel_attributes
from polyax_cpu.emit.whole import suits, write_whole
from polyax_cpu.functions import table
from polyax_cpu.libraries import small
from polyax_cpu.libraries.callouts import is_call_out
from polyax_cpu.libraries.small import Code
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.places import SMALL, Frame, copy, locals_of, touched
from polyax_cpu.records import FUNCTION_PARAMS, NativeStep
from polyax_cpu.steps import ON_BASES, Described, lasting
from polyax_cpu.turning import Turning, pairs_of, stretches
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.host.backend import rows
from polyax_kernels.ir.expr import Expr, points, postorder
from polyax_kernels.ir.kernel import kernel_roots
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.plan.plan import BranchStep, CallStep, ControlStep, CopyStep, Inner, KernelStep, LoopStep, Ref, Step

INLINED_POINTS = 1024
"""Kernels of more points are called: that takes no time beside theirs."""
FUNCTION = 200
"""What the code of an elementary function takes of these, which count expressions."""
INLINED_WORK = 4000
"""Kernels that one function holds: the time that LLVM takes grows faster than functions do."""
INLINED_EQUAL = 1000
"""Equal kernels that it holds; from then on they are called, and compiled once."""
STRAIGHT_WORK = 800
"""In functions that hold more, LLVM makes no vectors: that takes two thirds of its time."""
LONG = 300
"""In functions of more steps all is called: their turns take long enough, and LLVM would take long over them."""
STRETCH = 1 << 25
"""The cost of turns, about ten milliseconds, after which a loop looks whether it is to end."""

Native = Callable[[Step], Described | None]
"""How the native runtime runs a step that is neither a loop nor a branch; None if Python must."""
Test = Callable[[list[IrValue]], IrValue]
Body = Callable[[list[IrValue]], list[IrValue]]
Made = Callable[[], Described]
"""Waits for the code of a step."""


def native_control(
    native: Native, step: ControlStep, can_fail: bool, started: machine_code.Started = lambda make: make
) -> Made | None:
    """The step that runs a loop or a branch as a function; None if some step of its programs needs Python.

    ``can_fail``: whether it may, as a long loop does that ends because of Ctrl-C. ``started`` is told to compile it.
    """
    long = _steps(step) > LONG
    try:
        outline = _ControlWriter(native, can_fail, long, outlines=True).whole(step)
    except _NeedsPython:
        return None
    key = f"control {outline.module.text()}"
    found = machine_code.kept(key)
    if found is not None:
        return lambda: _loaded(found, outline)
    writer = _ControlWriter(native, can_fail, long).whole(step)
    text, level = writer.module.text(), 0 if long else 2
    code = started(lambda: machine_code.object_code(text, level, writer.work <= STRAIGHT_WORK, key))
    return lambda: _loaded(code(), writer)


def _loaded(code: bytes, writer: _ControlWriter) -> Described:
    imports = {**pool.symbols_for(code), **writer.imports}
    loaded = compiler.LoadedCode([code], ["control"], imports)
    return NativeStep(loaded.address("control"), None, 0, 1, 1, 0, ON_BASES, None, writer.fails), (loaded, writer.keep)


def _steps(step: Step) -> int:
    """How many there are in a step."""
    if not isinstance(step, ControlStep):
        return 1
    return 1 + sum(_steps(s) for _, inner in step.inners for s in (*inner.plan.steps, *inner.copies))


def too_large(step: KernelStep) -> bool:
    """Whether a kernel is called in any case."""
    axes = [a for stage in step.kernel.stages for a in stage.axes]
    known = all(isinstance(a.extent, int) for a in (*step.kernel.grid, *axes))
    return bool(step.scalars) or not known or max(points(step.kernel.grid), step.flops) > INLINED_POINTS


def _weight(x: Expr) -> int:
    return FUNCTION if x.kind == "op" and x.attr in table.FLOAT else 1


class _NeedsPython(Exception):
    pass


class _ControlWriter:
    """Writes the function of a loop or a branch, with those in it.

    ``outlines``: of the kernels that it holds no more than their keys, which tell one function from another.
    """

    def __init__(self, native: Native, can_fail: bool, long: bool, outlines: bool = False) -> None:
        self.outlines = outlines
        self.native = native
        self.can_fail = can_fail
        self.long = long
        self.module = Module(["control"])
        self.b: Builder = self.module.function("i64", "control", FUNCTION_PARAMS, kernel_attributes())
        self.due = self.b.alloca("i64")
        """When to ask next whether to end; see ``polyax_ask``."""
        self.imports: dict[str, int] = {}
        self.keep: list[Any] = []
        self.fails = False
        """Whether it holds calls that may fail."""
        self.work = 0
        self.inlined = Counter[str]()
        """Expressions of kernels that are part of the function; and of these by the keys of kernels."""
        self._buffers: dict[int, IrValue] = {}
        """Room for the addresses of so many operands."""
        self._numbers = itertools.count()

    def whole(self, step: ControlStep) -> _ControlWriter:
        b = self.b
        used = sorted({ref.base for ref in _around(step)})
        b.store(b.const(0, "i64"), self.due)
        bases: list[IrValue | None] = [None] * (used[-1] + 1 if used else 0)
        for n in used:
            bases[n] = b.load(b.at(b.args[0], n, "ptr"), "ptr")
        self.control(step, Frame(b, bases))
        b.ret(b.const(0, "i64"))
        return self

    # --- steps ---

    def steps(self, steps: Sequence[Step], frame: Frame) -> None:
        for step in steps:
            if isinstance(step, ControlStep) and not self.long:
                self.control(step, frame)
            elif isinstance(step, CopyStep):
                copy(self.b, frame.at(step.source), frame.at(step.target), step.nbytes)
            elif isinstance(step, KernelStep) and self.holds(step):
                self.kernel(step, frame)
            elif isinstance(step, CallStep) and (code := self.instead(step)) is not None:
                code.write(self.b, [frame.at(ref) for ref in (*step.args, *step.outs)])
            else:
                self.call(step, frame)

    def control(self, step: ControlStep, frame: Frame) -> None:
        if isinstance(step, LoopStep):
            self.loop(step, frame)
        else:
            self.branches(step, frame)

    def holds(self, step: KernelStep) -> bool:
        """Whether a kernel becomes part of the function."""
        if self.long or too_large(step):
            return False
        key = structural_key(step.kernel)
        work = sum(map(_weight, postorder(*kernel_roots(step.kernel))))
        if self.inlined[key] + work > INLINED_EQUAL or not self.takes(work):
            return False
        self.inlined[key] += work
        return True

    def takes(self, work: int) -> bool:
        """Whether so much more may become part of the function."""
        if self.work + work > INLINED_WORK:
            return False
        self.work += work
        return True

    def instead(self, step: CallStep) -> Code | None:
        """The code that becomes part of the function in place of a call."""
        code = None if self.long else small.inlined(step)
        return code if code is not None and self.takes(code.work) else None

    def kernel(self, step: KernelStep, frame: Frame) -> None:
        pointers = [frame.at(ref) for ref in step.operands]
        if self.outlines:
            self.b.line(f"; {structural_key(step.kernel)} {rows(step)} {' '.join(map(str, pointers))}")
            return
        emitter = LlvmEmitter(self.b, step.kernel, pointers, self.b.pointer("null"), unrolls=True)
        if suits(step.kernel):
            write_whole(step.kernel, emitter, pointers)
            return
        begin, end = (self.b.const(n, "i64") for n in (0, rows(step)))
        emit_kernel(step.kernel, choose(step.kernel), emitter, begin, end)

    def call(self, step: Step, frame: Frame) -> None:
        described = self.native(step)
        if described is None:
            raise _NeedsPython
        self.keep.append(described)
        native, n = described[0], next(self._numbers)
        name = f"step{n}"
        self.imports[name] = native.function
        self.module.declare(name, f"{'i64' if native.fails else 'void'} @{name}(ptr, ptr, i64, i64)")
        if native.count == ON_BASES:
            self.start(native, name, [x or self.b.pointer("null") for x in frame.bases], self.b.pointer("null"))
            return
        if isinstance(step, CallStep) and is_call_out(native):
            self.call_out(step, native, frame, n)
            return
        places, values, _ = described[1]
        self.start(native, name, [frame.at(Ref(p.base, p.offset)) for p in places], self.numbers(n, values))

    def call_out(self, step: CallStep, native: NativeStep, frame: Frame, n: int) -> None:
        """It sees copies of what is small, so that locals stay in registers around calls that are rarely reached."""
        self.imports[f"scalars{n}"] = native.scalars
        self.module.top(f"@scalars{n} = external global i64")
        b, count = self.b, len(step.args)
        places = [(frame.at(ref), nbytes if nbytes <= SMALL else 0) for ref, nbytes in touched(step)]
        seen = [b.alloca("i8", nbytes) if nbytes else place for place, nbytes in places]
        pairs = [(place, x, nbytes) for (place, nbytes), x in zip(places, seen, strict=True)]
        for place, x, nbytes in pairs[:count]:
            copy(b, place, x, nbytes)
        self.start(native, f"step{n}", seen, b.pointer(f"@scalars{n}"))
        for place, x, nbytes in pairs[count:]:
            copy(b, x, place, nbytes)

    def start(self, native: NativeStep, name: str, pointers: Sequence[IrValue], scalars: IrValue) -> None:
        b, buffers = self.b, self.buffers(len(pointers))
        for k, pointer in enumerate(pointers):
            b.store(pointer, b.at(buffers, k, "ptr"))
        function, begin, end = b.pointer(f"@{name}"), b.const(native.begin, "i64"), b.const(native.end, "i64")
        if native.fails:
            self.fails = True
            with b.when(b.invoke("i64", function, buffers, scalars, begin, end).compare("!=", 0)):
                b.ret(b.const(1, "i64"))
            return
        if native.piece >= native.end:
            b.invoke("void", function, buffers, scalars, begin, end)
            return
        pool.ensure_started()
        pieces = (b.const(k, "i64") for k in (native.piece, -(-native.end // native.piece), native.brief))
        b.call("void", "polyax_parallel", function, buffers, scalars, begin, end, *pieces)

    def buffers(self, count: int) -> IrValue:
        if count not in self._buffers:
            self._buffers[count] = self.b.alloca("ptr", max(1, count))
        return self._buffers[count]

    def numbers(self, n: int, values: Any) -> IrValue:
        """The address of the scalars of call ``n``."""
        name = f"@scalars{n}"
        text = ", ".join(f"i64 {n}" for n in values) or "i64 0"
        self.module.top(f"{name} = private constant [{max(1, len(values))} x i64] [{text}]")
        return self.b.pointer(name)

    # --- branches ---

    def branches(self, step: BranchStep, frame: Frame) -> None:
        b, names = self.b, [self.b.fresh("branch") for _ in step.branches]
        index, end = b.load(frame.at(step.index), "i32"), b.fresh("end")
        cases = " ".join(f"i32 {n}, label %{name}" for n, name in enumerate(names[:-1]))
        b.line(f"switch {index}, label %{names[-1]} [{cases}]")
        for name, inner in zip(names, step.branches, strict=True):
            b.start(name)
            bases = [None if ref is None else frame.at(ref) for ref in inner.even]
            self.inner(inner, bases)
            b.jump(end)
        b.start(end)

    def inner(self, inner: Inner, bases: Sequence[IrValue | None]) -> None:
        plan = inner.plan
        pieces = [] if self.long else locals_of(self.b, plan)
        frame = Frame(self.b, bases, plan.arena, pieces)
        self.steps((*plan.steps, *inner.copies), frame)

    # --- loops ---

    def loop(self, step: LoopStep, outer: Frame) -> None:
        b = self.b
        self.steps(step.before, outer)
        memory = Turning(b, step, outer)
        memory.enter()

        def test(carries: list[IrValue]) -> IrValue:
            if step.test is None:
                return carries[0] < (step.length or 0)
            self.inner(step.test, [memory.place(*refs, carries) for refs in pairs_of(step.test)])
            return b.load(memory.holds, "i8").compare("!=", 0)

        def body(carries: list[IrValue]) -> list[IrValue]:
            strides = dict(step.strides)
            bases = [memory.place(*refs, carries, strides.get(n, 0)) for n, refs in enumerate(pairs_of(step.body))]
            self.inner(step.body, bases)
            return [carries[0] + 1, *memory.turn(carries)]

        carries = self.turns(step, [b.const(0, "i64"), *memory.swapped()], test, body)
        odd = (carries[0] & 1).compare("!=", 0)
        memory.leave(odd)
        self.ends(step, outer, odd)

    def turns(self, step: LoopStep, inits: list[IrValue], test: Test, body: Body) -> list[IrValue]:
        """Those of a loop that may be long, in stretches: each is a plain loop, with a question behind it."""
        b, cost = self.b, sum(lasting(s) for _, inner in step.inners for s in inner.plan.steps)
        stretch = STRETCH // max(1, cost) + 1
        if not self.can_fail or (step.length is not None and step.length <= stretch):
            return b.turns(inits, test, body)
        if step.length is None:
            return stretches(b, inits, stretch, test, body, self.ask)
        found, length = list[IrValue](), b.const(step.length, "i64")

        def goes_on(carries: list[IrValue]) -> IrValue:
            stop = b.intrinsic("smin", carries[0] + stretch, length)
            found[:] = b.turns(carries, lambda inner: inner[0] < stop, body)
            return found[0] < length

        def ask(_: list[IrValue]) -> list[IrValue]:
            self.ask()
            return found

        b.turns(inits, goes_on, ask)
        return found

    def ask(self) -> None:
        """Ends the function if the user wants that."""
        b = self.b
        if "check_wanted" not in self.imports:
            self.imports["check_wanted"] = id(check_wanted)
            self.module.top("@check_wanted = external global i8")
            self.fails = True
        with b.when(b.call("i64", "polyax_ask", self.due, b.pointer("@check_wanted")).compare("!=", 0)):
            b.ret(b.const(1, "i64"))

    def ends(self, step: LoopStep, outer: Frame, odd: IrValue) -> None:
        even_ends, odd_ends = step.ends
        if step.length is not None or even_ends == odd_ends:
            self.steps(step.ends[(step.length or 0) % 2], outer)
            return
        for ends, holds in ((even_ends, ~odd), (odd_ends, odd)):
            with self.b.when(holds):
                self.steps(ends, outer)


def _around(step: ControlStep) -> set[Ref]:
    """Places of the plan around a loop or a branch that it uses."""
    found: set[Ref | None] = {ref for _, inner in step.inners for ref in (*inner.even, *inner.odd)}
    if isinstance(step, BranchStep):
        found.add(step.index)
    else:
        found.add(step.holds)
        for copy in (*step.before, *step.ends[0], *step.ends[1]):
            found.update((copy.source, copy.target))
    return {ref for ref in found if ref is not None}
