"""Calls in native code: arguments in, steps, arrays in a tree out."""

from __future__ import annotations

from collections.abc import Callable

from polyax_cpu.calls import layout
from polyax_cpu.calls.layout import NativeCall, NativeLeaf, NativeNode, NativeResult, NativeShelf
from polyax_cpu.calls.objects import (
    clear,
    drop,
    drop_all,
    held,
    item,
    leave,
    none,
    null,
    put,
    singleton,
)
from polyax_cpu.calls.reading import CALL, FOUND, define_reading, types
from polyax_cpu.calls.slots import AVAL, BUFFER, SEAT, SEEN
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.native import RUN
from polyax_cpu.notes.calls import CallNote, define_call_notes
from polyax_cpu.records import Record

ENTER = "polyax_enter"


def source() -> str:
    """The text of a module with ``ENTER``, a Python function."""
    module = Module([ENTER])
    define_reading(module)
    define_call_notes(module)
    for define in (_refuse, _restore, _donate, _result, _join, _build, _run, _inner, _enter):
        define(module)
    return module.text()


def _enter(module: Module) -> None:
    """A Python function of ``(args, kwargs)``: the call's result, or NotImplemented if it isn't of this kind.

    Its own object is a tuple that begins with a capsule of a NativeCall.
    """
    b = module.function("ptr", ENTER, [("ptr", "self"), ("ptr", "args"), ("i64", "nargs")])
    capsule = b.call("ptr", "PyTuple_GetItem", b.args[0], b.const(0, "i64"))
    pointer = b.call("ptr", "PyCapsule_GetPointer", capsule, null(b))
    call = Record(NativeCall, pointer)
    note = CallNote(b, call.told, failed=null(b))
    bases, leaves = call.base_count, b.select(call.donates.compare("==", 0), b.const(0, "i64"), call.leaf_count)
    objects, memory, donors = b.array("ptr", bases), b.array("ptr", bases), b.array("ptr", leaves)
    clear(objects, bases)
    clear(donors, leaves)
    with b.loop(0, bases) as n:
        put(memory, n, item(call.given, n))
    args, kwargs = item(b.args[1], 0), item(b.args[1], 1)
    known = b.select(leaves.compare("==", 0), null(b), donors)
    result = b.call("ptr", "call_inner", pointer, args, kwargs, objects, memory, known)
    drop_all(objects, bases)
    drop_all(donors, leaves)
    note.end(call.at("steps"), result)
    b.ret(result)


def _inner(module: Module) -> None:
    """The same; what is found is dropped by who calls it."""
    b = module.function("ptr", "call_inner", [CALL, ("ptr", "args"), ("ptr", "kwargs"), *FOUND])
    pointer, args, kwargs, objects, bases, leaves = b.args
    call = Record(NativeCall, pointer)
    _refuse_if(b.call("i64", "PyObject_Size", call.tasks).compare("!=", 0))
    with b.loop(0, call.const_count) as n:
        x = held(item(call.holders, n))
        put(objects, n, x)
        _refuse_if(b.call("i64", "call_memory", pointer, x, b.at(bases, n, "ptr")).compare("!=", 0))
    _refuse_if(b.call("i64", "call_read", pointer, args, kwargs, objects, bases, leaves).compare("!=", 0))
    shelves, first = Record(NativeShelf, call.shelves), call.first_fresh
    with b.loop(0, call.shelf_count) as n:
        places = (b.at(array, first + n, "ptr") for array in (objects, bases))
        _refuse_if(b.call("i64", "call_take", pointer, shelves.item(n).pointer, *places).compare("!=", 0))
    with b.when(call.donates.compare("!=", 0)):
        _refuse_if(b.call("i64", "call_donate", pointer, objects, leaves).compare("!=", 0))
    result = b.call("ptr", "call_run", pointer, objects, bases)
    with b.when(leaves.compare("!=", null(b)) & result.compare("==", null(b))):
        b.call("void", "call_restore", pointer, objects, leaves)
    b.ret(result)


def _refuse_if(condition: IrValue) -> None:
    """The call goes the usual way where ``condition`` holds."""
    b = condition.b
    with b.when(condition):
        b.ret(b.call("ptr", "call_refuse"))


def _refuse(module: Module) -> None:
    """NotImplemented: Python says what is wrong, if anything is. But for what no program expects, such as Ctrl-C."""
    b = module.function("ptr", "call_refuse", [])
    kind = b.call("ptr", "PyErr_Occurred")
    with b.when(kind.compare("!=", null(b))):
        b.module.top("@PyExc_Exception = external global ptr")
        usual = b.call("i32", "PyErr_ExceptionMatches", b.load(b.pointer("@PyExc_Exception"), "ptr"))
        leave(usual.compare("==", 0), null(b))
        b.call("void", "PyErr_Clear")
    b.ret(held(singleton(b, "_Py_NotImplementedStruct")))


# --- donation -----------------------------------------------------------------------------------------------------


def _donate(module: Module) -> None:
    """Deletes the arrays that are donated, whose memory nobody else may see. Returns 1, with all alive, if Python has
    to copy memory, or to say that an array comes as two arguments."""
    b = module.function("i64", "call_donate", [CALL, ("ptr", "objects"), ("ptr", "leaves")])
    pointer, objects, leaves = b.args
    call = Record(NativeCall, pointer)
    every = Record(NativeLeaf, call.leaves)
    refuse = lambda: b.call("void", "call_restore", pointer, objects, leaves)
    for donated in (1, 0):  # an array that comes twice is without a buffer when it is met again
        with b.loop(0, call.leaf_count) as n:
            leaf, x = every.item(n), item(leaves, n)
            with b.when(leaf.donated.compare("==", donated) & x.compare("!=", null(b))):
                buffer = BUFFER.get(x)
                leave(buffer.compare("!=", item(objects, leaf.base)), 1, refuse)
                if donated:
                    leave(SEEN.get(buffer).compare("!=", types(call).free), 1, refuse)
                    BUFFER.set(x, none(b))
    b.ret(b.const(0, "i64"))


def _restore(module: Module) -> None:
    """Gives the arrays their memory back."""
    b = module.function("void", "call_restore", [CALL, ("ptr", "objects"), ("ptr", "leaves")])
    call, objects, leaves = Record(NativeCall, b.args[0]), b.args[1], b.args[2]
    every = Record(NativeLeaf, call.leaves)
    with b.loop(0, call.leaf_count) as n:
        leaf = every.item(n)
        with b.when(leaf.donated.compare("!=", 0)):
            BUFFER.set(item(leaves, n), item(objects, leaf.base))
    b.ret()


# --- results ------------------------------------------------------------------------------------------------------


def _run(module: Module) -> None:
    """Runs the steps and builds the results; null behind an error."""
    b = module.function("ptr", "call_run", [CALL, ("ptr", "objects"), ("ptr", "bases")])
    pointer, objects, bases = b.args
    call = Record(NativeCall, pointer)
    run = lambda: b.call("i64", RUN, call.at("steps"), bases)
    with b.when(call.release.compare("==", 0)):
        leave(run().compare("!=", 0), null(b))
    with b.when(call.release.compare("!=", 0)):
        thread = b.call("ptr", "PyEval_SaveThread")
        failed = run()
        b.call("void", "PyEval_RestoreThread", thread)
        leave(failed.compare("!=", 0), null(b))
    b.ret(b.call("ptr", "call_build", pointer, objects))


def _build(module: Module) -> None:
    """The results in their tree, whose nodes are put together from the last one on."""
    b = module.function("ptr", "call_build", [CALL, ("ptr", "objects")])
    pointer, objects = b.args
    call = Record(NativeCall, pointer)
    count, nodes, height = call.made_count, Record(NativeNode, call.made), b.alloca("i64")
    done = b.array("ptr", count)
    b.store(b.const(0, "i64"), height)
    with b.loop(0, count) as n:
        node = nodes.item(count - 1 - n)
        top = b.load(height, "i64") - node.count
        made = b.call("ptr", "call_join", pointer, node.pointer, b.at(done, top, "ptr"), objects)
        leave(made.compare("==", null(b)), null(b), lambda: drop_all(done, b.load(height, "i64")))
        drop_all(b.at(done, top, "ptr"), node.count)
        put(done, top, made)
        b.store(top + 1, height)
    b.ret(item(done, 0))


def _join(module: Module) -> None:
    """One node, of its children, of which the last one is the first."""
    b = module.function("ptr", "call_join", [CALL, ("ptr", "node"), ("ptr", "children"), ("ptr", "objects")])
    call, pointer, children, objects = b.args
    node = Record(NativeNode, pointer)
    kind, count = node.kind, node.count
    child = lambda n: item(children, count - 1 - n)
    with b.when(kind.compare("==", layout.LEAF)):
        b.ret(b.call("ptr", "call_result", call, node.leaf, objects))
    with b.when(kind.compare("==", layout.NONE)):
        b.ret(held(none(b)))
    with b.when(kind.compare("==", layout.DICT)):
        made = _made(b.call("ptr", "PyDict_New"))
        with b.loop(0, count) as n:
            key = b.call("ptr", "PyTuple_GetItem", node.data, n)
            failed = b.call("i32", "PyDict_SetItem", made, key, child(n)).compare("!=", 0)
            leave(failed, null(b), lambda: drop(made))
        b.ret(made)
    with b.when(kind.compare("==", layout.LIST)):
        b.ret(_filled(b, "PyList", count, child))
    made = _filled(b, "PyTuple", count, child)
    with b.when(kind.compare("==", layout.TUPLE)):
        b.ret(made)
    pair = _made(b.call("ptr", "PyTuple_New", b.const(2, "i64")))
    for n, x in enumerate((held(node.data), made)):
        b.call("i32", "PyTuple_SetItem", pair, b.const(n, "i64"), x)
    result = b.call("ptr", "PyObject_CallObject", node.unflatten, pair)
    drop(pair)
    b.ret(result)


def _made(x: IrValue) -> IrValue:
    leave(x.compare("==", null(x.b)), null(x.b))
    return x


def _filled(b: Builder, name: str, count: IrValue, child: Callable[[IrValue], IrValue]) -> IrValue:
    """A new list or tuple."""
    made = _made(b.call("ptr", f"{name}_New", count))
    with b.loop(0, count) as n:
        b.call("i32", f"{name}_SetItem", made, n, held(child(n)))
    return made


def _result(module: Module) -> None:
    """A new array."""
    b = module.function("ptr", "call_result", [CALL, ("ptr", "result"), ("ptr", "objects")])
    call, result, objects = Record(NativeCall, b.args[0]), Record(NativeResult, b.args[1]), b.args[2]
    found = item(objects, result.base)
    buffer = b.select(found.compare("==", null(b)), item(call.holders, result.base), found)
    with b.when(result.shared.compare("!=", 0)), b.when(SEEN.get(buffer).compare("==", types(call).free)):
        SEEN.set(buffer, types(call).shared)
    made = _made(b.call("ptr", "PyType_GenericAlloc", types(call).array, b.const(0, "i64")))
    for slot, value in {AVAL: result.aval, BUFFER: buffer, SEAT: call.seat}.items():
        slot.fill(made, value)
    b.ret(made)
