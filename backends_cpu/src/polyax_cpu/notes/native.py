"""What native runs note while a trace is taken: which steps, on which thread, and when each of them ended.

A run takes room for its note, so that threads don't wait for each other; where there is none, it isn't noted.
"""

from __future__ import annotations

import ctypes

from polyax_cpu.llvm import IrValue, Module
from polyax_cpu.native_pool import atomic_add, atomic_load, atomic_store
from polyax_cpu.records import NativeJournal, NativeNote, NativeSteps, Record

JOURNAL, NOTE = "polyax_journal", "note"
WORD = 8
HEAD = ctypes.sizeof(NativeNote) // WORD


def define_journal(module: Module) -> None:
    module.top("@journal = internal global ptr null, align 8")
    _journal(module)
    _note(module)


def _journal(module: Module) -> None:
    """Sets where runs are noted from now on; null for nowhere."""
    b = module.function("void", JOURNAL, [("ptr", "journal")])
    atomic_store(b.args[0], b.pointer("@journal"))
    b.ret()


def _note(module: Module) -> None:
    """The note of a run that begins; null if it isn't noted."""
    b = module.function("ptr", NOTE, [("ptr", "steps")])
    steps, null = Record(NativeSteps, b.args[0]), b.pointer("null")
    found = atomic_load(b.pointer("@journal"))
    with b.when(found.compare("==", null)):
        b.ret(null)
    journal, size = Record(NativeJournal, found), steps.count + HEAD
    place = atomic_add(journal.at("used"), size)
    with b.when(place + size > journal.capacity):
        b.ret(null)
    note = Record(NativeNote, b.at(journal.words, place, "i64"))
    now = b.call("i64", "now")
    note.set(steps=steps.pointer, count=steps.count, thread=b.call("i64", "pthread_self"), began=now)
    b.ret(note.pointer)


def end_of_step(note: IrValue, n: IrValue) -> None:
    """Code that notes when step ``n`` ended, if the run is noted."""
    b = note.b
    with b.when(note.compare("!=", b.pointer("null"))):
        b.store(b.call("i64", "now"), b.at(note, n + HEAD, "i64"))
