"""Native functions that Python calls directly: no conversion of arguments by ctypes, which takes longer than small
programs run. Knows the layout of CPython's method table.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from polyax_cpu import pool
from polyax_cpu.records import NativeSteps, NativeTable

METH_FASTCALL = 0x0080
ATTRIBUTE = "pointer"
"""The attribute of a buffer that holds the address of its memory."""


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@functools.cache
def _method(address: int) -> _MethodDef:
    return _MethodDef(b"run", address, METH_FASTCALL, b"Runs the steps of a program.")


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def native_function(address: int, structure: ctypes.Structure, keep: Any = None) -> Callable[..., Any]:
    """The Python function whose code is at ``address``; its own object is a tuple: a capsule of ``structure``, and what
    must live as long as the function."""
    capsule = _new_capsule(ctypes.addressof(structure), None, None)
    return _new_function(ctypes.addressof(_method(address)), (capsule, structure, keep), None)


class Entry:
    """``entry.run(bases)`` runs steps on the memory of ``bases``; None has none. ``entry.run_members(every)`` does it
    for the bases of each member of a group, on all threads.

    ``release``: the interpreter's lock is released meanwhile. The functions must not outlive the entry.
    """

    __slots__ = ("_table", "address", "run", "run_members")

    def __init__(self, steps: NativeSteps, release: bool) -> None:
        self._table = NativeTable(steps, release, id(ATTRIBUTE))
        self.address = ctypes.addressof(self._table) + NativeTable.steps.offset
        capsule = _new_capsule(ctypes.addressof(self._table), None, None)
        function = lambda name: _new_function(ctypes.addressof(_method(pool.symbols()[name])), capsule, None)
        self.run: Callable[[list[Any]], None] = function("polyax_call")
        self.run_members: Callable[[list[Any]], None] = function("polyax_call_members")
