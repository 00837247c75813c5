"""Arguments in native code: a call's trees are compared with those that it should have, and buffers are taken from
their leaves.

Each function returns 0, or 1 if the call is of another kind, or can't be run at once. What may run users' code is given
objects that it holds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from polyax_cpu.calls import layout
from polyax_cpu.calls.layout import NativeCall, NativeLeaf, NativeNode, NativeShelf
from polyax_cpu.calls.objects import (
    attribute,
    drop,
    drop_all,
    equal,
    held,
    item,
    leave,
    none,
    null,
    put,
    same_type,
)
from polyax_cpu.calls.slots import ADDRESS, AVAL, BUFFER, DATA, SEAT, SEEN, SHELF, TASK
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import Record

CALL, LEAF = ("ptr", "call"), [("ptr", "leaf"), ("ptr", "x")]
FOUND = [("ptr", "objects"), ("ptr", "bases"), ("ptr", "leaves")]
"""What is found: of each base its object and address, of each leaf the object if some are donated."""


def define_reading(module: Module) -> None:
    for define in (_memory, _take, _static, _array, _host, _leaf, _visit, _read):
        define(module)


def types(call: Record) -> Record:
    return Record(layout.NativeTypes, call.at("types"))


# --- trees --------------------------------------------------------------------------------------------------------


def _read(module: Module) -> None:
    """Walks both trees, of positional arguments and of those by name, as the nodes say that they should be."""
    b = module.function("i64", "call_read", [CALL, ("ptr", "args"), ("ptr", "kwargs"), *FOUND])
    pointer, args, kwargs, objects, bases, leaves = b.args
    call = Record(NativeCall, pointer)
    stack, height = b.array("ptr", call.depth), b.alloca("i64")
    put(stack, 0, held(kwargs))
    put(stack, 1, held(args))
    b.store(b.const(2, "i64"), height)
    nodes = Record(NativeNode, call.nodes)
    with b.loop(0, call.node_count) as n:
        node, top = nodes.item(n), b.load(height, "i64") - 1
        b.store(top, height)
        x = item(stack, top)
        failed = b.call("i64", "call_visit", pointer, node.pointer, x, stack, height, objects, bases, leaves)
        drop(x)
        leave(failed.compare("!=", 0), 1, lambda: drop_all(stack, b.load(height, "i64")))
    b.ret(b.const(0, "i64"))


def _visit(module: Module) -> None:
    """One node: its children, of which each has a reference, come to the stack, the first one on top."""
    params = [CALL, ("ptr", "node"), ("ptr", "x"), ("ptr", "stack"), ("ptr", "height"), *FOUND]
    b = module.function("i64", "call_visit", params)
    call, pointer, x, stack, height, *found = b.args
    node = Record(NativeNode, pointer)
    kind, count = node.kind, node.count
    with b.when(kind.compare("==", layout.LEAF)):
        b.ret(b.call("i64", "call_leaf", call, node.leaf, x, *found))
    leave(same_type(x, node.type).compare("==", 0), 1)
    for own, name in ((layout.TUPLE, "PyTuple"), (layout.LIST, "PyList")):
        with b.when(kind.compare("==", own)):
            leave(b.call("i64", f"{name}_Size", x).compare("!=", count), 1)
            _push(count, stack, height, lambda n, name=name: b.call("ptr", f"{name}_GetItem", x, n))
            b.ret(b.const(0, "i64"))
    with b.when(kind.compare("==", layout.DICT)):
        leave(b.call("i64", "PyDict_Size", x).compare("!=", count), 1)
        key = lambda n: b.call("ptr", "PyTuple_GetItem", node.data, n)
        _push(count, stack, height, lambda n: b.call("ptr", "PyDict_GetItemWithError", x, key(n)))
    with b.when(kind.compare("==", layout.CUSTOM)):
        _take_apart(b, node, x, stack, height)
    b.ret(b.const(0, "i64"))


def _push(count: IrValue, stack: IrValue, height: IrValue, child: Callable[[IrValue], IrValue]) -> None:
    """``child`` gives borrowed references; null, if there is none."""
    b = count.b
    with b.loop(0, count) as n:
        x = child(count - 1 - n)
        leave(x.compare("==", null(b)), 1)
        top = b.load(height, "i64")
        put(stack, top, held(x))
        b.store(top + 1, height)


def _take_apart(b: Builder, node: Record, x: IrValue, stack: IrValue, height: IrValue) -> None:
    """A registered type, by the function that was registered."""
    parts = b.call("ptr", "PyObject_CallOneArg", node.flatten, x)
    leave(parts.compare("==", null(b)), 1)
    pair = b.call("ptr", "PySequence_Tuple", parts)
    drop(parts)
    leave(pair.compare("==", null(b)), 1)
    end = lambda: drop(pair)
    leave(b.call("i64", "PyTuple_Size", pair).compare("!=", 2), 1, end)
    one, two = (b.call("ptr", "PyTuple_GetItem", pair, b.const(n, "i64")) for n in (0, 1))
    leave(equal(two, node.data).compare("!=", 1), 1, end)
    children = b.call("ptr", "PySequence_Tuple", one)
    drop(pair)
    leave(children.compare("==", null(b)), 1)
    right = b.call("i64", "PyTuple_Size", children).compare("==", node.count)
    with b.when(right):
        _push(node.count, stack, height, lambda n: b.call("ptr", "PyTuple_GetItem", children, n))
    drop(children)
    leave(right.compare("==", 0), 1)


# --- leaves -------------------------------------------------------------------------------------------------------


def _leaf(module: Module) -> None:
    b = module.function("i64", "call_leaf", [CALL, *LEAF, *FOUND])
    call, pointer, x, objects, bases, leaves = b.args
    leaf = Record(NativeLeaf, pointer)
    leave(same_type(x, leaf.type).compare("==", 0), 1)
    kind = leaf.kind
    with b.when(kind.compare("==", layout.STATIC)):
        b.ret(b.call("i64", "call_static", pointer, x))
    with b.when(kind.compare("==", layout.STATIC_FLOAT)):
        bits = b.convert("bitcast", b.call("double", "PyFloat_AsDouble", x), "i64")
        b.ret(b.convert("zext", bits.compare("!=", leaf.hash), "i64"))
    with b.when(kind.compare("==", layout.ARRAY)):
        with b.when(leaves.compare("!=", null(b))):
            put(leaves, leaf.number, held(x))
        b.ret(b.call("i64", "call_array", call, pointer, x, objects, bases))
    b.ret(b.call("i64", "call_host", call, pointer, x, objects, bases))


def _static(module: Module) -> None:
    """A part of the program: it is the same if it is found in a dictionary by the other."""
    b = module.function("i64", "call_static", LEAF)
    leaf, x = Record(NativeLeaf, b.args[0]), b.args[1]
    leave(b.call("i64", "PyObject_Hash", x).compare("!=", leaf.hash), 1)
    b.ret(b.convert("zext", equal(leaf.value, x).compare("!=", 1), "i64"))


def _array(module: Module) -> None:
    """An array where it should be, of the type that it should have, whose contents are there."""
    b = module.function("i64", "call_array", [CALL, *LEAF, *FOUND[:2]])
    pointer, leaf_pointer, x, objects, bases = b.args
    call, leaf = Record(NativeCall, pointer), Record(NativeLeaf, leaf_pointer)
    leave(SEAT.get(x).compare("!=", leaf.seat), 1)
    aval = AVAL.get(x)
    known = b.call("ptr", "PyList_GetItem", call.avals, leaf.number)
    with b.when(aval.compare("!=", known)):
        leave(aval.compare("==", null(b)), 1)
        pair = held(aval), held(known)
        alike = equal(*pair)
        drop(known)
        leave(alike.compare("!=", 1), 1, lambda: drop(aval))
        b.call("i32", "PyList_SetItem", call.avals, leaf.number, aval)
    buffer = BUFFER.get(x)
    leave(buffer.compare("==", null(b)), 1)
    put(objects, leaf.base, held(buffer))
    b.ret(b.call("i64", "call_memory", pointer, buffer, b.at(bases, leaf.base, "ptr")))


def _memory(module: Module) -> None:
    """The address of a buffer's memory, unless it is still to be filled."""
    b = module.function("i64", "call_memory", [CALL, ("ptr", "buffer"), ("ptr", "place")])
    pointer, buffer, place = b.args
    call = Record(NativeCall, pointer)
    leave(same_type(buffer, types(call).memory).compare("==", 0), 1)
    leave(TASK.get(buffer).compare("!=", none(b)), 1)
    b.store(b.call("ptr", "PyLong_AsVoidPtr", ADDRESS.get(buffer)), place)
    b.ret(b.const(0, "i64"))


def _take(module: Module) -> None:
    """New memory from a shelf, for a base. As ``Shelf.take`` does it where there is a free block."""
    b = module.function("i64", "call_take", [CALL, ("ptr", "shelf"), ("ptr", "object"), ("ptr", "place")])
    call_pointer, shelf_pointer, target, place = b.args
    call, shelf = Record(NativeCall, call_pointer), Record(NativeShelf, shelf_pointer)
    count = b.call("i64", "PyList_Size", shelf.free)
    with b.when(count.compare("==", 0)):
        made = b.call("ptr", "PyObject_CallNoArgs", shelf.take)
        leave(made.compare("==", null(b)), 1)
        b.store(made, target)
        b.ret(b.call("i64", "call_memory", call_pointer, made, place))
    block = held(b.call("ptr", "PyList_GetItem", shelf.free, count - 1))
    b.call("i32", "PyList_SetSlice", shelf.free, count - 1, count, null(b))
    memory = b.call("ptr", "PyType_GenericAlloc", types(call).memory, b.const(0, "i64"))
    leave(memory.compare("==", null(b)), 1, lambda: drop(block))
    b.store(memory, target)
    data, number = (b.call("ptr", "PyTuple_GetItem", block, b.const(n, "i64")) for n in (0, 1))
    values = {DATA: data, ADDRESS: number, SHELF: shelf.shelf, TASK: none(b), SEEN: types(call).free}
    for slot, value in values.items():
        slot.fill(memory, value)
    b.store(b.call("ptr", "PyLong_AsVoidPtr", number), place)
    drop(block)
    b.ret(b.const(0, "i64"))


def _host(module: Module) -> None:
    """A number, or memory of the host: it is copied to memory of its own."""
    b = module.function("i64", "call_host", [CALL, *LEAF, *FOUND[:2]])
    call_pointer, leaf_pointer, x, objects, bases = b.args
    call, leaf = Record(NativeCall, call_pointer), Record(NativeLeaf, leaf_pointer)
    place = b.at(bases, leaf.base, "ptr")
    failed = b.call("i64", "call_take", call_pointer, leaf.shelf, b.at(objects, leaf.base, "ptr"), place)
    leave(failed.compare("!=", 0), 1)
    memory, kind = b.load(place, "ptr"), leaf.kind
    done = lambda: b.ret(b.const(0, "i64"))
    with b.when(kind.compare("==", layout.FLOAT64)):
        b.store(b.call("double", "PyFloat_AsDouble", x), memory)
        done()
    with b.when(kind.compare("==", layout.FLOAT32)):
        wide = b.call("double", "PyFloat_AsDouble", x)
        narrow = b.convert("fptrunc", wide, "float")
        back = b.convert("fpext", narrow, "double")
        infinite = lambda v: b.intrinsic("fabs", v).compare("==", float("inf"))
        leave(infinite(back) & ~infinite(wide), 1)
        b.store(narrow, memory)
        done()
    with b.when(kind.compare("==", layout.BOOL)):
        truth = b.convert("trunc", b.call("i32", "PyObject_IsTrue", x), "i8")
        b.store(truth, memory)
        done()
    with b.when(kind.compare("==", layout.BYTES)):
        b.ret(_bytes(b, call, leaf, x, memory))
    number = b.call("i64", "PyLong_AsLongLong", x)
    failed = number.compare("==", -1) & b.call("ptr", "PyErr_Occurred").compare("!=", null(b))
    leave(failed, 1)
    with b.when(kind.compare("==", layout.INT64)):
        b.store(number, memory)
        done()
    short = b.convert("trunc", number, "i32")
    leave(b.convert("sext", short, "i64").compare("!=", number), 1)
    b.store(short, memory)
    done()


def _bytes(b: Builder, call: Record, leaf: Record, x: IrValue, memory: IrValue) -> IrValue:
    """Copies what ``x`` shows by the buffer protocol, if it is of the type and shape that it should have."""
    dtype = attribute(x, call.dtype)
    drop(dtype)
    leave(dtype.compare("!=", leaf.dtype), 1)
    view = Record(layout.PyBuffer, b.alloca("i8", ctypes.sizeof(layout.PyBuffer)))
    failed = b.call("i32", "PyObject_GetBuffer", x, view.pointer, b.const(layout.C_CONTIGUOUS, "i32"))
    leave(failed.compare("!=", 0), 1)
    end = lambda: b.call("void", "PyBuffer_Release", view.pointer)
    ndim = b.convert("sext", b.load(view.at("ndim"), "i32"), "i64")
    leave(ndim.compare("!=", leaf.ndim) | view.len.compare("!=", leaf.nbytes), 1, end)
    with b.loop(0, ndim) as n:
        size, wanted = (b.load(b.at(shape, n, "i64"), "i64") for shape in (view.shape, leaf.shape))
        leave(size.compare("!=", wanted), 1, end)
    b.call("void", "llvm.memcpy.p0.p0.i64", memory, view.buf, leaf.nbytes, b.const(False, "i1"))
    end()
    return b.const(0, "i64")
