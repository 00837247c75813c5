"""Structural keys: kernels that compile to the same code have the same key, in all processes."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from polyax_kernels.ir.dependences import postorder_with_extents
from polyax_kernels.ir.expr import Axis, Expr
from polyax_kernels.ir.kernel import Kernel, Store, kernel_roots, store_roots


def structural_key(kernel: Kernel) -> str:
    """A digest of everything but names: axes are numbered by their first use.

    >>> import numpy as np
    >>> from polyax_kernels.ir.expr import consing, index, load
    >>> from polyax_kernels.ir.kernel import Operand, Stage
    >>> def copy(name):
    ...     axis, f32 = Axis(3, name), np.dtype("float32")
    ...     store = Store(1, (index(axis),), load(0, f32, (index(axis),)))
    ...     return Kernel((axis,), (Stage((), (store,)),), (Operand((3,), f32, "in"), Operand((3,), f32, "out")))
    >>> with consing():
    ...     structural_key(copy("i")) == structural_key(copy("j"))
    True
    """
    found = vars(kernel).get(_KNOWN)
    if found is None:
        found = vars(kernel)[_KNOWN] = _Writer().kernel(kernel)
    return found


_KNOWN = "structural key"
"""Where kernels keep theirs."""


@functools.cache
def _name(dtype: np.dtype) -> str:
    """NumPy works out names anew each time."""
    return dtype.name


class _Writer:
    def __init__(self) -> None:
        self.axes: dict[Axis, int] = {}
        self.numbers: dict[Expr, int] = {}
        self.hash = hashlib.sha256()

    def put(self, *parts: object) -> None:
        self.hash.update((" ".join(map(str, parts)) + "\n").encode())

    def axis(self, axis: Axis) -> str:
        if axis not in self.axes:
            self.axes[axis] = len(self.axes)
            extent = axis.extent
            self.put("axis", f"p{extent.attr}" if isinstance(extent, Expr) and extent.kind == "param" else extent)
        return f"a{self.axes[axis]}"

    def expr(self, x: Expr) -> None:
        attr = x.attr
        if x.kind == "index":
            attr = self.axis(x.attr)
        elif x.kind == "fold":
            attr = f"{x.attr.combine} {x.attr.which} {' '.join(map(self.axis, x.attr.axes))}"
        elif x.kind == "load":
            attr = f"{x.attr.slot} {x.attr.masked}"
        elif x.kind == "const":
            attr = repr(x.attr)
        self.numbers[x] = len(self.numbers)
        self.put(x.kind, _name(x.dtype), attr, *(self.numbers[a] for a in x.args))

    def store(self, store: Store) -> None:
        self.put("store", store.slot, store.combine, *(self.numbers[x] for x in store_roots(store)))

    def kernel(self, kernel: Kernel) -> str:
        for operand in kernel.operands:
            self.put("operand", operand.shape, _name(operand.dtype), operand.role)
        self.put("grid", *map(self.axis, kernel.grid), kernel.ordered)
        for x in postorder_with_extents(kernel_roots(kernel)):
            self.expr(x)
        for stage in kernel.stages:
            self.put("stage", *map(self.axis, stage.axes))
            for store in stage.stores:
                self.store(store)
        return self.hash.hexdigest()
