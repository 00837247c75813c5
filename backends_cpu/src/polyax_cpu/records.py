"""Structures in memory that native code reads: one definition of each. Python makes them with ctypes, and code that is
written with a ``Builder`` takes the places of their fields from it, by name.
"""

from __future__ import annotations

import ctypes

from polyax_cpu.llvm import IrValue

ADDRESS, INTEGER = ctypes.c_void_p, ctypes.c_int64
_TYPES: dict[object, str] = {ADDRESS: "ptr", INTEGER: "i64"}
FUNCTION_PARAMS = [("ptr", "buffers"), ("ptr", "scalars"), ("i64", "begin"), ("i64", "end")]
"""The parameters of what steps call: a range that may be cut in pieces."""

LINE = 64
"""Pieces that are longer than this begin at a multiple of it."""


class NativeRef(ctypes.Structure):
    """A place in the memory of a program: which of the bases, and how many bytes behind it."""

    _fields_ = [("base", INTEGER), ("offset", INTEGER)]


class NativeStep(ctypes.Structure):
    """The call of a function; ``operands`` are ``count`` places, whose addresses are its buffers. ``brief``: pieces may
    be too short to wait for workers. ``fails``: it returns whether it failed, as an integer; Python knows the error
    then."""

    _fields_ = [
        ("function", ADDRESS),
        ("scalars", ADDRESS),
        ("begin", INTEGER),
        ("end", INTEGER),
        ("piece", INTEGER),
        ("brief", INTEGER),
        ("count", INTEGER),
        ("operands", ADDRESS),
        ("fails", INTEGER),
    ]


class NativeSteps(ctypes.Structure):
    """Steps that run one after the other."""

    _fields_ = [("first", ADDRESS), ("count", INTEGER)]


class NativeTable(ctypes.Structure):
    """Steps that Python calls. ``release``: without the interpreter's lock. ``attribute``: where objects say at which
    address their memory is."""

    _fields_ = [("steps", NativeSteps), ("release", INTEGER), ("attribute", ADDRESS)]


class NativeNotes(ctypes.Structure):
    """Where runs and calls are noted while a trace is taken: ``used`` of ``capacity`` words are; ``lost`` notes had no
    room. ``anchored``: when clocks were compared. ``threads`` and ``codes`` are tables of those that Python has met,
    each at the place of its ``hashed`` number, codes with a bit that says whether they are polyax's own; of others
    ``meet_thread`` and ``meet_code`` are told."""

    _fields_ = [
        ("words", ADDRESS),
        ("capacity", INTEGER),
        ("used", INTEGER),
        ("lost", INTEGER),
        ("anchored", INTEGER),
        ("threads", ADDRESS),
        ("codes", ADDRESS),
        ("meet_thread", ADDRESS),
        ("meet_code", ADDRESS),
    ]


class NativeNote(ctypes.Structure):
    """What is noted of a run: its steps, how many they are, the thread, and when it began. Their ends follow.
    ``ended``: how many of them have, once no more will."""

    _fields_ = [("what", ADDRESS), ("count", INTEGER), ("thread", INTEGER), ("ended", INTEGER), ("began", INTEGER)]


class NativeCallNote(ctypes.Structure):
    """What is noted of a call that has ended: its steps, and the code and the instruction of the user's that made it.
    ``count`` tells it from a run."""

    _fields_ = [
        ("what", ADDRESS),
        ("count", INTEGER),
        ("thread", INTEGER),
        ("code", ADDRESS),
        ("instruction", INTEGER),
        ("began", INTEGER),
        ("ended", INTEGER),
    ]


class NativeAnchor(ctypes.Structure):
    """A time by two clocks: nanoseconds, which were read between two looks at the one that notes are written by."""

    _fields_ = [("what", ADDRESS), ("count", INTEGER), ("before", INTEGER), ("time", INTEGER), ("after", INTEGER)]


class NativeMembers(ctypes.Structure):
    """Steps that several members run, each on ``width`` bases of its own."""

    _fields_ = [("steps", ADDRESS), ("width", INTEGER)]


class Record:
    """A structure at an address that native code knows: ``record.field`` is code that loads a field."""

    __slots__ = ("layout", "pointer")

    def __init__(self, layout: type[ctypes.Structure], pointer: IrValue) -> None:
        self.layout = layout
        self.pointer = pointer

    def at(self, field: str) -> IrValue:
        """The address of a field."""
        return self.pointer.b.at(self.pointer, getattr(self.layout, field).offset, "i8")

    def __getattr__(self, field: str) -> IrValue:
        fields = {name: type for name, type, *_ in self.layout._fields_}
        return self.pointer.b.load(self.at(field), _TYPES[fields[field]])

    def set(self, **values: IrValue) -> None:
        for field, value in values.items():
            self.pointer.b.store(value, self.at(field))

    def item(self, n: IrValue) -> Record:
        """One of an array of such structures, which begins here."""
        return Record(self.layout, self.pointer.b.at(self.pointer, n * ctypes.sizeof(self.layout), "i8"))


def memory(ref: Record, bases: IrValue) -> IrValue:
    """The address of the place that a ``NativeRef`` describes."""
    b = bases.b
    return b.at(b.load(b.at(bases, ref.base, "ptr"), "ptr"), ref.offset, "i8")
