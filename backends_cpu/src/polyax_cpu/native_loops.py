"""Loops and branches of the native runtime: steps that run the steps of inner programs."""

from __future__ import annotations

from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS, NativeBranches, NativeLoop, NativeMoving, NativeRef, Record, memory


def define_loops(module: Module) -> None:
    for define in (_loop, _turns, _cond):
        define(module)


def _loop(module: Module) -> None:
    """What steps call to run a ``NativeLoop``. Buffers are the bases of the program around it."""
    b = module.function("void", "polyax_loop", FUNCTION_PARAMS)
    outer, loop = b.args[0], Record(NativeLoop, b.args[1])
    slots, count = Record(NativeRef, loop.slots), loop.width * 2
    bases = b.array("ptr", count)
    with b.loop(0, count) as n:
        slot, base = slots.item(n), b.at(bases, n, "ptr")
        b.store(b.pointer("null"), base)
        with b.when(slot.base >= 0):
            b.store(memory(slot, outer), base)
    b.call("void", "polyax_run", loop.at("before"), outer)
    odd = b.call("i64", "turns", loop.pointer, bases) & 1
    b.call("void", "polyax_run", b.select(odd.compare("!=", 0), loop.at("odd"), loop.at("even")), outer)
    b.ret()


def _turns(module: Module) -> None:
    """Runs the turns of a loop; returns how many there were."""
    b = module.function("i64", "turns", [("ptr", "loop"), ("ptr", "bases")])
    loop, bases = Record(NativeLoop, b.args[0]), b.args[1]
    with b.loop(0, loop.turns) as i:
        frame = b.at(bases, (i & 1) * loop.width, "ptr")
        with b.when(loop.holds >= 0):
            b.call("void", "polyax_run", loop.at("test"), b.at(frame, loop.test_first, "ptr"))
            holds = b.load(b.load(b.at(frame, loop.holds, "ptr"), "ptr"), "i8")
            with b.when(holds.compare("==", 0)):
                b.ret(i)
        b.call("void", "polyax_run", loop.at("body"), frame)
        with b.when(loop.moving_count > 0):
            _advance(b, loop, bases)
    b.ret(loop.turns)


def _advance(b: Builder, loop: Record, bases: IrValue) -> None:
    """Moves the slots that are another row after each turn."""
    moving = Record(NativeMoving, loop.moving)
    with b.loop(0, loop.moving_count) as n:
        which = moving.item(n)
        base = b.at(bases, which.slot, "ptr")
        b.store(b.at(b.load(base, "ptr"), which.stride, "i8"), base)


def _cond(module: Module) -> None:
    """What steps call to run one of ``NativeBranches``."""
    b = module.function("void", "polyax_cond", FUNCTION_PARAMS)
    outer, branches, begin, end = b.args
    branches = Record(NativeBranches, branches)
    number = b.load(memory(Record(NativeRef, branches.at("index")), outer), "i32")
    loop = b.load(b.at(branches.loops, b.convert("sext", number, "i64"), "ptr"), "ptr")
    b.call("void", "polyax_loop", outer, loop, begin, end)
    b.ret()
