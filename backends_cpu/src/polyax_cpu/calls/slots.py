"""Attributes of Python objects in native code, by where classes with ``__slots__`` keep them: a load instead of a
search by name, of which calls would make a dozen for each array.

Knows the layout of CPython's descriptors (``PyMemberDescrObject``, ``PyMemberDef``), and looks whether it is right.
"""

from __future__ import annotations

import ctypes
import inspect
from types import MemberDescriptorType

from polyax.runtime.arrays.array import Array
from polyax_cpu.calls.objects import drop, held
from polyax_cpu.llvm import IrValue
from polyax_kernels.run.memory import Memory

OBJECT = 16
"""The kind of members that are objects (``Py_T_OBJECT_EX``)."""


class _Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("offset", ctypes.c_ssize_t)]


class _Descriptor(ctypes.Structure):
    _fields_ = [
        ("head", ctypes.c_char * object.__basicsize__),
        ("type", ctypes.py_object),
        ("name", ctypes.py_object),
        ("qualified_name", ctypes.c_void_p),
        ("member", ctypes.POINTER(_Member)),
    ]


class Slot:
    """Where objects of ``kind`` keep an attribute."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind = kind
        self.name = name

    def offset(self) -> int | None:
        """In bytes from their address; None if this Python isn't as expected."""
        descriptor = inspect.getattr_static(self.kind, self.name)
        if not isinstance(descriptor, MemberDescriptorType):
            return None
        found = _Descriptor.from_address(id(descriptor))
        if found.name != self.name:
            return None
        member = found.member.contents
        expected = (member.name, member.kind) == (self.name.encode(), OBJECT)
        return member.offset if expected else None

    def place(self, x: IrValue) -> IrValue:
        offset = self.offset()
        assert offset is not None
        return x.b.at(x, offset, "i8")

    def get(self, x: IrValue) -> IrValue:
        """A borrowed reference; null if the attribute isn't set."""
        return x.b.load(self.place(x), "ptr")

    def fill(self, x: IrValue, value: IrValue) -> None:
        """Of an object that is new."""
        x.b.store(held(value), self.place(x))

    def set(self, x: IrValue, value: IrValue) -> None:
        old = self.get(x)
        self.fill(x, value)
        drop(old)


ARRAYS = AVAL, BUFFER, SEAT = tuple(Slot(Array, name) for name in ("aval", "buffer", "_seat"))
MEMORIES = DATA, TASK, ADDRESS, SEEN, SHELF = tuple(
    Slot(Memory, name) for name in ("data", "task", "pointer", "seen", "shelf")
)


def known() -> bool:
    """Whether all of them are found."""
    return all(slot.offset() is not None for slot in (*ARRAYS, *MEMORIES))
