"""Python objects in native code: the little of CPython's interface that calls need, by functions that it documents.

Those that are asked for give new references, as the interpreter's do; null behind an error.
"""

from __future__ import annotations

from collections.abc import Callable

from polyax_cpu.llvm import Builder, IrValue


def null(b: Builder) -> IrValue:
    return b.pointer("null")


def singleton(b: Builder, name: str) -> IrValue:
    """An object of the interpreter's."""
    b.module.top(f"@{name} = external global i8")
    return b.pointer(f"@{name}")


def none(b: Builder) -> IrValue:
    return singleton(b, "_Py_NoneStruct")


def held(x: IrValue) -> IrValue:
    """``x``, with a reference of our own."""
    x.b.call("void", "Py_IncRef", x)
    return x


def drop(x: IrValue) -> None:
    """Gives back a reference; null is nothing."""
    x.b.call("void", "Py_DecRef", x)


def drop_all(array: IrValue, count: IrValue) -> None:
    with array.b.loop(0, count) as n:
        drop(item(array, n))


def attribute(x: IrValue, name: IrValue) -> IrValue:
    return x.b.call("ptr", "PyObject_GetAttr", x, name)


def item(array: IrValue, n: IrValue | int) -> IrValue:
    """An element of an array of pointers."""
    return array.b.load(array.b.at(array, n, "ptr"), "ptr")


def put(array: IrValue, n: IrValue | int, x: IrValue) -> None:
    array.b.store(x, array.b.at(array, n, "ptr"))


def clear(array: IrValue, count: IrValue) -> None:
    with array.b.loop(0, count) as n:
        put(array, n, null(array.b))


def same_type(x: IrValue, kind: IrValue) -> IrValue:
    """Whether the type of ``x`` is this one, no subclass."""
    found = x.b.call("ptr", "PyObject_Type", x)
    drop(found)
    return found.compare("==", kind)


def equal(x: IrValue, y: IrValue) -> IrValue:
    """1 if they are, 0 if not, -1 behind an error. Users' code may run."""
    return x.b.call("i32", "PyObject_RichCompareBool", x, y, x.b.const(2, "i32"))


def leave(condition: IrValue, value: IrValue | int, *also: Callable[[], object]) -> None:
    """Returns ``value`` where ``condition`` holds."""
    b = condition.b
    with b.when(condition):
        for run in also:
            run()
        b.ret(value if isinstance(value, IrValue) else b.const(value, "i64"))
