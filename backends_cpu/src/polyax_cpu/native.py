"""The native runtime, as LLVM IR: a pool of threads, and the loop that runs a program's steps. No Python inside.

Everything that a program does (kernels, products, copies) is a function of one type, ``void f(void **buffers, const
int64_t *scalars, int64_t begin, int64_t end)`` over a range that may be cut in pieces.

It is compiled without optimisation. Values that outlive a block then go through memory, so that fields are best loaded
where they are used.
"""

from __future__ import annotations

from polyax_cpu.large_arguments import EXACT, define_exact
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.native_loops import define_loops
from polyax_cpu.native_pool import define_pool
from polyax_cpu.records import FUNCTION_PARAMS, NativeRef, NativeStep, NativeSteps, NativeTable, Record, memory

MAX_OPERANDS = 128
"""Buffers of one step."""
LINE = 64
"""Pieces that are longer than this begin at a multiple of it."""
EXPORTS = ("polyax_start", "polyax_parallel", "polyax_call", "polyax_copy", "polyax_loop", "polyax_cond", *EXACT)


def source(triple: str) -> str:
    """The runtime's text for a processor."""
    module = Module(EXPORTS)
    define_pool(module, triple)
    define_loops(module)
    define_exact(module)
    for define in (_run, _call, _copy):
        define(module)
    return module.text()


def _run(module: Module) -> None:
    """Runs steps on the memory that the bases point to. A step of less than no operands gets these themselves."""
    b = module.function("void", "polyax_run", [("ptr", "steps"), ("ptr", "bases")])
    steps, bases, pointers = Record(NativeSteps, b.args[0]), b.args[1], b.array("ptr", b.const(MAX_OPERANDS, "i64"))
    first = Record(NativeStep, steps.first)
    with b.loop(0, steps.count) as n:
        step = first.item(n)
        count, places = step.count, Record(NativeRef, step.operands)
        with b.loop(0, count) as k:
            b.store(memory(places.item(k), bases), b.at(pointers, k, "ptr"))
        _launch(b, step, b.select(count < 0, bases, pointers))
    b.ret()


def _launch(b: Builder, step: Record, buffers: IrValue) -> None:
    """Calls a step's function: at once, or in pieces, which begin at whole lines if they are as long as one."""
    with b.when(step.pieces <= 1):
        b.invoke("void", step.function, buffers, step.scalars, step.begin, step.end)
    with b.when(step.pieces > 1):
        function, scalars, begin, end, pieces = step.function, step.scalars, step.begin, step.end, step.pieces
        span = end - begin
        even = span / pieces
        size = b.select(even >= LINE, (even + (LINE - 1)) & -LINE, even + 1)
        b.call("void", "polyax_parallel", function, buffers, scalars, begin, end, size, (span + size - 1) / size)


def _call(module: Module) -> None:
    """A Python function (METH_FASTCALL): runs a table, which is in its capsule, on the memory of the objects in a list;
    None has none."""
    b = module.function("ptr", "polyax_call", [("ptr", "self"), ("ptr", "args"), ("i64", "nargs")])
    null, none = b.pointer("null"), b.pointer("@_Py_NoneStruct")
    module.top("@_Py_NoneStruct = external global i8")
    table = Record(NativeTable, b.call("ptr", "PyCapsule_GetPointer", b.args[0], null))
    objects = b.load(b.args[1], "ptr")
    size, attribute = b.call("i64", "PyList_Size", objects), table.attribute
    bases = b.array("ptr", size)
    with b.loop(0, size) as n:
        item, slot = b.call("ptr", "PyList_GetItem", objects, n), b.at(bases, n, "ptr")
        b.store(null, slot)
        with b.when(item.compare("!=", none)):
            number = b.call("ptr", "PyObject_GetAttr", item, attribute)
            with b.when(number.compare("==", null)):
                b.ret(null)
            b.store(b.call("ptr", "PyLong_AsVoidPtr", number), slot)
            b.call("void", "Py_DecRef", number)
    _work_off(b, table, bases)
    b.call("void", "Py_IncRef", none)
    b.ret(none)


def _work_off(b: Builder, table: Record, bases: IrValue) -> None:
    steps, release = table.at("steps"), table.release
    with b.when(release.compare("==", 0)):
        b.call("void", "polyax_run", steps, bases)
    with b.when(release.compare("!=", 0)):
        thread = b.call("ptr", "PyEval_SaveThread")
        b.call("void", "polyax_run", steps, bases)
        b.call("void", "PyEval_RestoreThread", thread)


def _copy(module: Module) -> None:
    """What steps call to copy bytes from the first buffer to the second."""
    b = module.function("void", "polyax_copy", FUNCTION_PARAMS)
    buffers, _, begin, end = b.args
    source, target = (b.at(b.load(b.at(buffers, n, "ptr"), "ptr"), begin, "i8") for n in (0, 1))
    b.call("void", "llvm.memmove.p0.p0.i64", target, source, end - begin, b.const(False, "i1"))
    b.ret()
