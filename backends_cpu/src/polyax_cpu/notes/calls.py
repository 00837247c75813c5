"""What native calls note while a trace is taken: which call, on which thread, from where in the user's program, and
when it began and ended. A call that is refused isn't noted: it goes the usual way, and is told there.
"""

from __future__ import annotations

import ctypes

from polyax_cpu.calls.objects import drop, held, leave, null, singleton
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.native_pool import define_now
from polyax_cpu.notes.clock import define_clock
from polyax_cpu.notes.native import ROOM, WORD, current
from polyax_cpu.records import NativeCallNote, NativeNotes, Record

CALLED = -1
"""The ``count`` of the note of a call."""
SIZE = ctypes.sizeof(NativeCallNote) // WORD
SLOTS = 256
"""Of the tables of what was met: two that share one are met by turns, which takes longer and is no mistake."""
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)


def define_call_notes(module: Module) -> None:
    for define in (define_now, define_clock, _met_thread, _met_code, _place, _begin, _end):
        define(module)


def hashed(number: IrValue) -> IrValue:
    """The place of an address in a table."""
    return ((number * _SPREAD) >> 56) & (SLOTS - 1)


def _met_thread(module: Module) -> None:
    """Makes this thread known; 1 behind an error."""
    b = module.function("i64", "met_thread", [("ptr", "notes"), ("i64", "thread")])
    notes, thread = Record(NativeNotes, b.args[0]), b.args[1]
    slot = b.at(notes.threads, hashed(thread), "i64")
    leave(b.load(slot, "i64").compare("==", thread), 0)
    met = b.call("ptr", "PyObject_CallNoArgs", notes.meet_thread)
    leave(met.compare("==", null(b)), 1)
    drop(met)
    b.store(thread, slot)
    b.ret(b.const(0, "i64"))


def _met_code(module: Module) -> None:
    """Whether code is polyax's own; -1 behind an error."""
    b = module.function("i64", "met_code", [("ptr", "notes"), ("ptr", "code")])
    notes, code = Record(NativeNotes, b.args[0]), b.args[1]
    number = b.convert("ptrtoint", code, "i64")
    slot = b.at(notes.codes, hashed(number), "i64")
    known = b.load(slot, "i64")
    leave((known & -2).compare("==", number), known & 1)
    own = b.call("ptr", "PyObject_CallOneArg", notes.meet_code, code)
    leave(own.compare("==", null(b)), -1)
    truth = b.convert("sext", b.call("i32", "PyObject_IsTrue", own), "i64")
    drop(own)
    b.store(number | truth, slot)
    b.ret(truth)


def _place(module: Module) -> None:
    """Where the innermost frame that isn't polyax's own is at; 1 behind an error. As ``polyax.ir.source.user_place``.
    Python keeps what code it has met."""
    b = module.function("i64", "note_place", [("ptr", "notes"), ("ptr", "note"), ("ptr", "frame")])
    notes, note, first = b.args
    at = b.alloca("ptr")
    b.store(held(first), at)
    with b.forever():
        frame = b.load(at, "ptr")
        leave(frame.compare("==", null(b)), 0)
        code = b.call("ptr", "PyFrame_GetCode", frame)
        drop(code)
        own = b.call("i64", "met_code", notes, code)
        with b.when(own.compare("==", 0)):
            instruction = b.convert("sext", b.call("i32", "PyFrame_GetLasti", frame), "i64")
            Record(NativeCallNote, note).set(code=code, instruction=instruction)
        with b.when(own.compare("!=", 1)):
            drop(frame)
            b.ret(b.convert("zext", own < 0, "i64"))
        b.store(b.call("ptr", "PyFrame_GetBack", frame), at)
        drop(frame)


def _begin(module: Module) -> None:
    """Fills the note of a call that begins; 1 behind an error."""
    b = module.function("i64", "call_begins", [("ptr", "notes"), ("ptr", "note")])
    notes, pointer = b.args
    note, thread, frame = (
        Record(NativeCallNote, pointer),
        b.call("i64", "pthread_self"),
        b.call("ptr", "PyEval_GetFrame"),
    )
    leave(b.call("i64", "met_thread", notes, thread).compare("!=", 0), 1)
    note.set(thread=thread, code=null(b), instruction=b.const(0, "i64"))
    with b.when(frame.compare("!=", null(b))):
        leave(b.call("i64", "note_place", notes, pointer, frame).compare("!=", 0), 1)
    note.set(began=b.call("i64", "ticks"))
    b.ret(b.const(0, "i64"))


def _end(module: Module) -> None:
    """Notes a call that has ended, in the trace that it began in, if that is still taken."""
    params = [("ptr", "notes"), ("ptr", "note"), ("ptr", "steps"), ("ptr", "result")]
    b = module.function("void", "call_ended", params)
    notes, pointer, steps, result = b.args
    ended, note = b.call("i64", "ticks"), Record(NativeCallNote, pointer)
    refused = result.compare("==", singleton(b, "_Py_NotImplementedStruct"))
    with b.when(refused | current(b).compare("!=", notes)):
        b.ret()
    place = b.call("ptr", ROOM, notes, b.const(SIZE, "i64"))
    with b.when(place.compare("!=", null(b))):
        told = {"thread": note.thread, "began": note.began, "code": note.code, "instruction": note.instruction}
        Record(NativeCallNote, place).set(what=steps, count=b.const(CALLED, "i64"), ended=ended, **told)
    b.ret()


class CallNote:
    """The note of a call in the code of a function that returns ``failed`` where it can't be begun."""

    def __init__(self, b: Builder, told: IrValue, failed: IrValue) -> None:
        self._notes, self._note = current(b), b.alloca("i64", SIZE)
        note = Record(NativeCallNote, self._note)
        note.set(began=b.const(0, "i64"))
        with b.when(self._notes.compare("!=", null(b)) & told.compare("!=", 0)):
            leave(b.call("i64", "call_begins", self._notes, self._note).compare("!=", 0), failed)

    def end(self, steps: IrValue, result: IrValue) -> None:
        b = steps.b
        with b.when(Record(NativeCallNote, self._note).began.compare("!=", 0)):
            b.call("void", "call_ended", self._notes, self._note, steps, result)
