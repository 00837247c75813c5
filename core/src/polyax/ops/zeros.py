"""Arithmetic on tangents and cotangents that may be symbolic zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.meshes.resharding import retyped
from polyax.ops.basis import add, weak_scalar, zeros
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.varying import pvary


def zeros_like_aval(aval: ShapedArray) -> Any:
    """An array of zeros of the type ``aval``; a scalar needs no equation."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if aval.shape or dtypes.is_extended(aval.dtype):
        found = zeros(aval)
    else:
        found = weak_scalar(0, aval.dtype) if aval.weak_type else aval.dtype.type(0)
    found = retyped(found, aval) if aval.told is not None else found
    return pvary(found, aval.vma) if aval.vma else found


def instantiate(t: Any) -> Any:
    """``t``, as an array if it is a symbolic zero."""
    return zeros_like_aval(t.aval) if type(t) is Zero else t


def zero_cotangents(*operands: Any) -> list[Any]:
    """What the operands of a transposition get from a cotangent that is zero."""
    return [Zero(x.aval) if is_undef(x) else None for x in operands]


def add_tangents(a: Any, b: Any) -> Any:
    """The sum of two tangents or cotangents, either of which may be a symbolic zero."""
    if type(a) is Zero:
        return b
    return a if type(b) is Zero else add(a, b)
