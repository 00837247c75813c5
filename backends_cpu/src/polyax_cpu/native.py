"""The native runtime, as LLVM IR: a pool of threads, and the loop that runs a program's steps. No Python inside.

Everything that a program does (kernels, products, copies) is a function of one type, ``void f(void **buffers, const
int64_t *scalars, int64_t begin, int64_t end)`` over a range that may be cut in pieces.

It is compiled without optimisation. Values that outlive a block then go through memory, so that fields are best loaded
where they are used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.native_pool import define_pool
from polyax_cpu.notes.clock import ANCHOR
from polyax_cpu.notes.native import NOTE, ROOM, define_notes, run_ended, step_ended
from polyax_cpu.records import (
    FUNCTION_PARAMS,
    NativeMembers,
    NativeRef,
    NativeStep,
    NativeSteps,
    NativeTable,
    Record,
    memory,
)

ASKED_AFTER = 100_000_000
"""Nanoseconds from question to question of a long loop: one may wait 5 ms for the interpreter's lock."""
MAX_OPERANDS = 128
"""Buffers of one step."""
RUN = "polyax_run"
CALLS = ("polyax_call", "polyax_call_members")
EXPORTS = ("polyax_start", "polyax_parallel", *CALLS, "polyax_call_out", "polyax_ask", "polyax_copy", ROOM, ANCHOR, RUN)


def source(triple: str) -> str:
    """The runtime's text for a processor."""
    module = Module(EXPORTS)
    define_pool(module, triple)
    define_notes(module)
    for define in (_run, _addresses, _call, _members, _call_members, _call_out, _ask, _copy):
        define(module)
    return module.text()


def _run(module: Module) -> None:
    """Runs steps on the memory that the bases point to. A step of less than no operands gets these themselves.

    Returns 1 behind a step that failed, else 0.
    """
    b = module.function("i64", RUN, [("ptr", "steps"), ("ptr", "bases")])
    steps, bases, pointers = Record(NativeSteps, b.args[0]), b.args[1], b.array("ptr", b.const(MAX_OPERANDS, "i64"))
    first = Record(NativeStep, steps.first)
    note = b.call("ptr", NOTE, steps.pointer)
    with b.loop(0, steps.count) as n:
        step = first.item(n)
        count, places = step.count, Record(NativeRef, step.operands)
        with b.loop(0, count) as k:
            b.store(memory(places.item(k), bases), b.at(pointers, k, "ptr"))
        buffers = b.select(count < 0, bases, pointers)
        with b.when(step.fails.compare("==", 0)):
            _launch(b, step, buffers)
        with b.when(step.fails.compare("!=", 0)):
            failed = b.invoke("i64", step.function, buffers, step.scalars, step.begin, step.end)
            with b.when(failed.compare("!=", 0)):
                step_ended(note, n)
                run_ended(note, n + 1)
                b.ret(b.const(1, "i64"))
        step_ended(note, n)
    run_ended(note, steps.count)
    b.ret(b.const(0, "i64"))


def _launch(b: Builder, step: Record, buffers: IrValue) -> None:
    """Calls a step's function: at once, or in pieces."""
    span, size = step.end - step.begin, step.piece
    with b.when(size >= span):
        b.invoke("void", step.function, buffers, step.scalars, step.begin, step.end)
    with b.when(size < span):
        work = (step.function, buffers, step.scalars, step.begin, step.end)
        b.call("void", "polyax_parallel", *work, size, (span + size - 1) / size, step.brief)


CALLED = [("ptr", "self"), ("ptr", "args"), ("i64", "nargs")]
"""The parameters of a Python function (METH_FASTCALL)."""


def _table(b: Builder) -> Record:
    """The table that is in the capsule of a Python function."""
    return Record(NativeTable, b.call("ptr", "PyCapsule_GetPointer", b.args[0], b.pointer("null")))


def _addresses(module: Module) -> None:
    """Looks up the memory of the objects in a list; None has none. Returns 1 if there was an error."""
    b = module.function("i64", "addresses", [("ptr", "objects"), ("ptr", "bases"), ("ptr", "attribute")])
    objects, bases, attribute = b.args
    null, none = b.pointer("null"), b.pointer("@_Py_NoneStruct")
    module.top("@_Py_NoneStruct = external global i8")
    with b.loop(0, b.call("i64", "PyList_Size", objects)) as n:
        item, slot = b.call("ptr", "PyList_GetItem", objects, n), b.at(bases, n, "ptr")
        b.store(null, slot)
        with b.when(item.compare("!=", none)):
            number = b.call("ptr", "PyObject_GetAttr", item, attribute)
            with b.when(number.compare("==", null)):
                b.ret(b.const(1, "i64"))
            b.store(b.call("ptr", "PyLong_AsVoidPtr", number), slot)
            b.call("void", "Py_DecRef", number)
    b.ret(b.const(0, "i64"))


def _find(b: Builder, table: Record, objects: IrValue, bases: IrValue) -> None:
    """``addresses``; the Python function ends if there was an error."""
    _check(b.call("i64", "addresses", objects, bases, table.attribute))


def _call(module: Module) -> None:
    """A Python function: runs a table on the memory of the objects in a list, and raises the error of a step."""
    b = module.function("ptr", "polyax_call", CALLED)
    table, objects = _table(b), b.load(b.args[1], "ptr")
    bases = b.array("ptr", b.call("i64", "PyList_Size", objects))
    _find(b, table, objects, bases)
    steps, release = table.at("steps"), table.release
    with b.when(release.compare("==", 0)):
        _check(b.call("i64", RUN, steps, bases))
    with b.when(release.compare("!=", 0)):
        _check(_released(b, lambda: b.call("i64", RUN, steps, bases)))
    _ret_none(b)


def _check(failed: IrValue) -> None:
    """The Python function ends if there was an error."""
    with failed.b.when(failed.compare("!=", 0)):
        failed.b.ret(failed.b.pointer("null"))


def _members(module: Module) -> None:
    """Runs the steps of ``NativeMembers`` for some of them; the buffers are the bases of all. None of them may fail."""
    b = module.function("void", "members", FUNCTION_PARAMS)
    bases, record, begin, end = b.args
    members = Record(NativeMembers, record)
    with b.loop(begin, end) as n:
        b.call("i64", RUN, members.steps, b.at(bases, n * members.width, "ptr"))
    b.ret()


def _call_members(module: Module) -> None:
    """A Python function: runs a table for several members, on all threads; each has a list of objects."""
    b = module.function("ptr", "polyax_call_members", CALLED)
    table, every = _table(b), b.load(b.args[1], "ptr")
    count, zero, one = b.call("i64", "PyList_Size", every), b.const(0, "i64"), b.const(1, "i64")
    width = b.call("i64", "PyList_Size", b.call("ptr", "PyList_GetItem", every, zero))
    bases = b.array("ptr", count * width)
    with b.loop(0, count) as n:
        _find(b, table, b.call("ptr", "PyList_GetItem", every, n), b.at(bases, n * width, "ptr"))
    members = Record(NativeMembers, b.alloca("i8", ctypes.sizeof(NativeMembers)))
    members.set(steps=table.at("steps"), width=width)
    work = b.pointer("@members"), bases, members.pointer, zero, count, one, count, one
    _released(b, lambda: b.call("void", "polyax_parallel", *work))
    _ret_none(b)


def _call_out(module: Module) -> None:
    """What steps call that need Python: the object whose address is the first scalar, with the address of the buffers.

    Returns 1 if it raised an error, which stays with this thread until ``polyax_call`` returns.
    """
    b = module.function("i64", "polyax_call_out", FUNCTION_PARAMS)
    buffers, scalars, _, _ = b.args
    state = b.call("i32", "PyGILState_Ensure")
    address = b.call("ptr", "PyLong_FromVoidPtr", buffers)
    result = b.call("ptr", "PyObject_CallOneArg", b.load(scalars, "ptr"), address)
    b.call("void", "Py_DecRef", address)
    b.call("void", "Py_DecRef", result)
    b.call("void", "PyGILState_Release", state)
    b.ret(b.convert("zext", result.compare("==", b.pointer("null")), "i64"))


def _ask(module: Module) -> None:
    """What a long loop calls now and then: it asks a Python function, which raises an error if the loop is to end. In
    the main thread so does Ctrl-C. ``due``: when to ask next; zero before the first call.

    Returns 1 if there was an error, which stays with this thread until ``polyax_call`` returns.
    """
    b = module.function("i64", "polyax_ask", [("ptr", "due"), ("ptr", "wanted")])
    due, wanted = b.args
    now, none = b.call("i64", "now"), b.const(0, "i64")
    first = b.load(due, "i64").compare("==", 0)
    with b.when(first | (now >= b.load(due, "i64"))):
        b.store(now + ASKED_AFTER, due)
        with b.when(first):
            b.ret(none)
        state = b.call("i32", "PyGILState_Ensure")
        result = b.call("ptr", "PyObject_CallNoArgs", wanted)
        b.call("void", "Py_DecRef", result)
        b.call("void", "PyGILState_Release", state)
        b.ret(b.convert("zext", result.compare("==", b.pointer("null")), "i64"))
    b.ret(none)


def _released(b: Builder, run: Callable[[], IrValue]) -> IrValue:
    """Releases the interpreter's lock meanwhile."""
    thread = b.call("ptr", "PyEval_SaveThread")
    result = run()
    b.call("void", "PyEval_RestoreThread", thread)
    return result


def _ret_none(b: Builder) -> None:
    none = b.pointer("@_Py_NoneStruct")
    b.call("void", "Py_IncRef", none)
    b.ret(none)


def _copy(module: Module) -> None:
    """What steps call to copy bytes from the first buffer to the second."""
    b = module.function("void", "polyax_copy", FUNCTION_PARAMS)
    buffers, _, begin, end = b.args
    source, target = (b.at(b.load(b.at(buffers, n, "ptr"), "ptr"), begin, "i8") for n in (0, 1))
    b.call("void", "llvm.memmove.p0.p0.i64", target, source, end - begin, b.const(False, "i1"))
    b.ret()
