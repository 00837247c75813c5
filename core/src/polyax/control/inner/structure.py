"""Checks of what decides between branches; weak types of what programs give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.control.inner.programs import derived, run
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops.basis import convert
from polyax.transforms.memo import memoize_by_jaxpr


def check_predicate(x: Any) -> ShapedArray:
    """The type of what decides between two branches.

    Raises:
      TypeError: it is no scalar number.
    """
    if isinstance(x, (list, tuple, str)):
        raise TypeError(f"Pred must be a scalar, got {x} of type {type(x)}")
    try:
        aval = aval_of(x)
    except TypeError:
        raise TypeError(f"Pred type must be either boolean or number, got {x}.") from None
    if aval.shape:
        raise TypeError(f"Pred must be a scalar, got {x} of shape {aval.shape}.")
    if not (aval.dtype == bool or dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype}.")
    return aval


def check_index(x: Any) -> ShapedArray:
    """The type of the number of a branch.

    Raises:
      TypeError: it is no integer scalar.
    """
    if np.shape(x):
        raise TypeError(f"Branch index must be scalar, got {x} of shape {np.shape(x)}.")
    try:
        aval = aval_of(x)
    except TypeError:
        raise TypeError(f"Index type must be an integer, got {x}.") from None
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"Index type must be an integer, got {x} as {aval.dtype}")
    return aval


def weaknesses(avals: Sequence[ShapedArray]) -> tuple[bool, ...]:
    return tuple(a.weak_type for a in avals)


@memoize_by_jaxpr
def with_weak_types(program: ClosedJaxpr, weak: tuple[bool, ...]) -> ClosedJaxpr:
    """The program whose outputs are weakly typed as ``weak`` says."""
    if weak == weaknesses(program.out_avals):
        return program

    def fun(*args: Any) -> list[Any]:
        return [convert(x, a.dtype, w) for x, a, w in zip(run(program, args), program.out_avals, weak, strict=True)]

    return derived(program, fun, program.in_avals)
