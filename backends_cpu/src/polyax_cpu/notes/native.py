"""What native runs note while a trace is taken: which steps, on which thread, and when each of them ended.

A run takes room for its note, so that threads don't wait for each other; where there is none, it isn't noted.
"""

from __future__ import annotations

import ctypes

from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.native_pool import atomic_add, atomic_load
from polyax_cpu.notes.clock import ANCHOR, define_clock
from polyax_cpu.records import NativeAnchor, NativeNote, NativeNotes, NativeSteps, Record

CURRENT = ctypes.c_void_p()
"""The address of the ``NativeNotes`` in use, which native code reads under the name ``NOTES``; null without a trace."""
NOTES, NOTE, ROOM = "polyax_notes", "note", "polyax_room"
WORD = 8
HEAD = ctypes.sizeof(NativeNote) // WORD
ANCHORED = -2
"""The ``count`` of what tells the time by two clocks."""
EVERY = 1 << 21
"""So many ticks later the clocks are compared again: about a millisecond, in which they don't drift apart."""


def imports() -> dict[str, int]:
    """What modules that note have to import."""
    return {NOTES: ctypes.addressof(CURRENT)}


def define_notes(module: Module) -> None:
    for define in (define_clock, _room, _anchor, _note_anchor, _note):
        define(module)


def current(b: Builder) -> IrValue:
    """The notes in use, or null."""
    b.module.top(f"@{NOTES} = external global ptr")
    return atomic_load(b.pointer(f"@{NOTES}"))


def _room(module: Module) -> None:
    """Room for so many words, each of them 0; null if there is none, which is counted."""
    b = module.function("ptr", ROOM, [("ptr", "notes"), ("i64", "size")])
    notes, size = Record(NativeNotes, b.args[0]), b.args[1]
    place = atomic_add(notes.at("used"), size)
    with b.when(place + size > notes.capacity):
        atomic_add(notes.at("lost"), 1)
        b.ret(b.pointer("null"))
    b.ret(b.at(notes.words, place, "i64"))


def _anchor(module: Module) -> None:
    """Looks at both clocks: three words."""
    b = module.function("void", ANCHOR, [("ptr", "times")])
    for n, clock in enumerate(("ticks", "now", "ticks")):
        b.store(b.call("i64", clock), b.at(b.args[0], n, "i64"))
    b.ret()


def _note_anchor(module: Module) -> None:
    """Notes what both clocks show; where there is no room, no note of a program is lost by that."""
    b = module.function("void", "note_anchor", [("ptr", "notes")])
    pointer, null = b.args[0], b.pointer("null")
    notes = Record(NativeNotes, pointer)
    notes.set(anchored=b.call("i64", "ticks"))
    place = b.call("ptr", ROOM, pointer, b.const(ctypes.sizeof(NativeAnchor) // WORD, "i64"))
    with b.when(place.compare("==", null)):
        atomic_add(notes.at("lost"), -1)
        b.ret()
    anchor = Record(NativeAnchor, place)
    anchor.set(what=pointer, count=b.const(ANCHORED, "i64"))
    b.call("void", ANCHOR, anchor.at("before"))
    b.ret()


def _note(module: Module) -> None:
    """The note of a run that begins; null if it isn't noted."""
    b = module.function("ptr", NOTE, [("ptr", "steps")])
    steps, null, found = Record(NativeSteps, b.args[0]), b.pointer("null"), current(b)
    with b.when(found.compare("==", null)):
        b.ret(null)
    began = b.call("i64", "ticks")
    with b.when(began - Record(NativeNotes, found).anchored > EVERY):
        b.call("void", "note_anchor", found)
    place = b.call("ptr", ROOM, found, steps.count + HEAD)
    with b.when(place.compare("!=", null)):
        thread = b.call("i64", "pthread_self")
        Record(NativeNote, place).set(what=steps.pointer, count=steps.count, thread=thread, began=began)
    b.ret(place)


def step_ended(note: IrValue, n: IrValue) -> None:
    """Code that notes when step ``n`` ended, if the run is noted."""
    b = note.b
    with b.when(note.compare("!=", b.pointer("null"))):
        b.store(b.call("i64", "ticks"), b.at(note, n + HEAD, "i64"))


def run_ended(note: IrValue, count: IrValue) -> None:
    """Code that notes that no step will end but the first ``count``."""
    b = note.b
    with b.when(note.compare("!=", b.pointer("null"))):
        Record(NativeNote, note).set(ended=count)
