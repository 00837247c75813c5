"""Models in the making: tensors with Python's operators, each of which adds a node.

Must not know primitives: what these become is said in ``rules``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from polyax.backend import ShapedArray

OPSET, IR_VERSION = 21, 10
"""What ONNX Runtime 1.20 and later read."""


class NotInOnnx(Exception):
    """The engine doesn't take an equation; the text says why."""


def tensor_type(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class Model:
    """Nodes and constants, as they are asked for."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names = 0

    def name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def constant(self, value: Any, dtype: Any) -> Tensor:
        array = np.asarray(value).astype(dtype)
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return Tensor(self, name, array.dtype, array.shape)

    def ints(self, *values: int) -> Tensor:
        """A vector, as operators take shapes and axes."""
        return self.constant(np.array(values, np.int64), np.int64)

    def add(self, op: str, inputs: Sequence[Tensor | None], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, ["" if i is None else i.name for i in inputs], names, **attributes))
        return names

    def finished(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str) -> bytes:
        """The model, in ONNX's own form."""
        ends = [
            [helper.make_tensor_value_info(t.name, tensor_type(t.dtype), list(t.shape)) for t in tensors]
            for tensors in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, name or "program", *ends, initializer=self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()


class Tensor:
    """A value of a model, whose type is known."""

    __hash__ = None  # type: ignore[assignment]  # == makes a node

    def __init__(self, model: Model, name: str, dtype: Any, shape: Sequence[int]) -> None:
        self.model = model
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shape = tuple(shape)

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype)

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def bits(self) -> int:
        return 8 * self.dtype.itemsize

    def op(
        self, op: str, *others: Any, dtype: Any = None, shape: Sequence[int] | None = None, **attributes: Any
    ) -> Tensor:
        """``op(self, *others)``: of this type and the shape that broadcasting gives, unless others are given."""
        inputs = [self, *(None if o is None else self.like(o) for o in others)]
        if shape is None:
            shape = np.broadcast_shapes(*(i.shape for i in inputs if i is not None))
        (name,) = self.model.add(op, inputs, **attributes)
        return Tensor(self.model, name, self.dtype if dtype is None else dtype, shape)

    def like(self, value: Any) -> Tensor:
        """A constant of this type, unless it is a tensor."""
        return value if isinstance(value, Tensor) else self.model.constant(value, self.dtype)

    def cast(self, dtype: Any) -> Tensor:
        """As C does it: rules say what happens out of range."""
        return self if self.dtype == dtype else self.op("Cast", dtype=dtype, to=tensor_type(dtype))

    def reshape(self, shape: Sequence[int]) -> Tensor:
        if tuple(shape) == self.shape:
            return self
        return self.op("Reshape", self.model.ints(*shape), shape=shape, allowzero=1)

    def expand(self, shape: Sequence[int]) -> Tensor:
        if tuple(shape) == self.shape:
            return self
        if 0 in shape:  # the engine leaves dimensions of one element as they are
            return self.model.constant(np.zeros(shape), self.dtype)
        return self.op("Expand", self.model.ints(*shape), shape=shape)

    def transpose(self, order: Sequence[int]) -> Tensor:
        if list(order) == list(range(len(self.shape))):
            return self
        return self.op("Transpose", shape=[self.shape[i] for i in order], perm=list(order))

    def slice(self, starts: Sequence[int], limits: Sequence[int], steps: Sequence[int]) -> Tensor:
        """Limits of -1 with steps below 0 are before the first element."""
        shape = [len(range(*s)) for s in zip(starts, limits, steps, strict=True)]
        ends = [(-(2**62) if step < 0 else limit) for limit, step in zip(limits, steps, strict=True)]
        ints = self.model.ints
        return self.op("Slice", ints(*starts), ints(*ends), ints(*range(len(shape))), ints(*steps), shape=shape)

    def reduce(self, op: str, axes: Sequence[int]) -> Tensor:
        shape = [n for i, n in enumerate(self.shape) if i not in axes]
        return self.op(op, self.model.ints(*axes), shape=shape, keepdims=0) if axes else self

    def concat(self, others: Sequence[Tensor], axis: int) -> Tensor:
        total = self.shape[axis] + sum(o.shape[axis] for o in others)
        return self.op("Concat", *others, shape=[*self.shape[:axis], total, *self.shape[axis + 1 :]], axis=axis)

    def where(self, yes: Any, no: Any) -> Tensor:
        """``yes`` where this is true, else ``no``; one of them is a tensor."""
        typed = yes if isinstance(yes, Tensor) else no
        yes, no = typed.like(yes), typed.like(no)
        wide = {"bool": "uint8", "int16": "int32", "uint16": "int32", "uint64": "int64"}.get(typed.dtype.name)
        if wide is not None:
            return self.where(yes.cast(wide), no.cast(wide)).cast(typed.dtype)
        return self.op("Where", yes, no, dtype=typed.dtype)

    def compare(self, op: str, other: Any) -> Tensor:
        if self.is_bool and op != "Equal":
            return self.cast("int32").compare(op, self.like(other).cast("int32"))
        return self.op(op, other, dtype="bool")

    def nan(self) -> Tensor:
        return self.op("IsNaN", dtype="bool")

    def __add__(self, other: Any) -> Tensor:
        return self.op("Add", other)

    def __radd__(self, other: Any) -> Tensor:
        return self + other

    def __sub__(self, other: Any) -> Tensor:
        return self.op("Sub", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.like(other) - self

    def __mul__(self, other: Any) -> Tensor:
        return self.op("Mul", other)

    def __truediv__(self, other: Any) -> Tensor:
        return self.op("Div", other)

    def __neg__(self) -> Tensor:
        return 0 - self if self.dtype.kind == "u" or (self.bits == 16 and not self.is_float) else self.op("Neg")

    def __and__(self, other: Any) -> Tensor:
        return self.op("And" if self.is_bool else "BitwiseAnd", other)

    def __or__(self, other: Any) -> Tensor:
        return self.op("Or" if self.is_bool else "BitwiseOr", other)

    def __xor__(self, other: Any) -> Tensor:
        return self.op("Xor" if self.is_bool else "BitwiseXor", other)

    def __invert__(self) -> Tensor:
        return self.op("Not" if self.is_bool else "BitwiseNot")

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self.compare("Equal", other)

    def __lt__(self, other: Any) -> Tensor:
        return self.compare("Less", other)

    def __le__(self, other: Any) -> Tensor:
        return self.compare("LessOrEqual", other)

    def __gt__(self, other: Any) -> Tensor:
        return self.compare("Greater", other)

    def __ge__(self, other: Any) -> Tensor:
        return self.compare("GreaterOrEqual", other)
