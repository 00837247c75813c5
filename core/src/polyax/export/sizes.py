"""Symbolic dimensions as values: the primitive that programs have where a dimension is computed with."""

from __future__ import annotations

from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.dims import SymbolicDim
from polyax.ir.primitive import Primitive
from polyax.lax.filling import full

dim_as_value_p = Primitive("dim_as_value")
"""``dim_as_value[dim]``: a dimension as a scalar. In programs that run, ``dim`` is an integer."""


def dim_as_value(dim: Any) -> Any:
    """A dimension as a weakly typed scalar."""
    return dim_as_value_p.bind1(dim=dim)


def _typed(*, dim: Any) -> list[ShapedArray]:
    return [ShapedArray((), dtypes.default_int(), weak_type=True)]


def _constant(*, dim: Any) -> list[Any]:
    if isinstance(dim, SymbolicDim):
        raise NotImplementedError(
            "Evaluation rule for 'dim_as_value' is not implemented. It seems that you are using shape polymorphism "
            f"outside polyax.export: the size of the dimension {dim} isn't known here."
        )
    return [full((), dim, dtypes.default_int())]


dim_as_value_p.abstract_eval = _typed
dim_as_value_p.decompose = _constant
dim_as_value_p.jvp = lambda primals, tangents, *, dim: _never_called()
dim_as_value_p.batch = lambda axis, args, dims, *, dim: _never_called()
dim_as_value_p.never("transpose", "an integer has no cotangent")
dim_as_value_p.never("factors", "a scalar has no dimensions to cut")


def _never_called() -> Any:
    raise AssertionError("a primitive without operands is never differentiated or mapped")
