"""Computations of reductions: users' functions of scalars as programs, the known ones among them, and their use on
arrays. Knows no reduction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.inner.programs import run
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import PYTHON_SCALARS
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops import basis, compare, elementwise
from polyax.ops.window_folds import Arrays, Combine
from polyax.trace.flat import check_callable, name_of, trace_tree
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten
from polyax.transforms.vmap import AxisData, batch_flat, match_axis

MONOIDS: dict[Callable[..., Any], str] = {
    basis.add: "add",
    basis.mul: "mul",
    elementwise.max: "max",
    elementwise.min: "min",
    compare.bitwise_and: "and",
    compare.bitwise_or: "or",
    compare.bitwise_xor: "xor",
}
"""The functions that have primitives of their own for whole axes or windows; named as the primitives they apply."""


def identity(monoid: str, dtype: Any) -> Any:
    """What ``monoid`` leaves every value as it is with."""
    if monoid in ("max", "min"):
        return extreme(dtype, highest=monoid == "min")
    if monoid == "mul":
        return dtype.type(1)
    return np.invert(dtype.type(0)) if monoid == "and" else dtype.type(0)


def extreme(dtype: Any, *, highest: bool) -> Any:
    """The lowest or highest value of ``dtype``."""
    if dtype == np.bool_:
        return dtype.type(highest)
    low, high = dtypes.extremes(dtype)
    return high if highest else low


def known_monoid(computation: Callable[..., Any], operand: Any, init: Any) -> str | None:
    """The monoid of a function of this library, if ``init`` is known to be its identity."""
    try:
        monoid = MONOIDS.get(inspect.unwrap(computation))
    except TypeError:  # a callable without a hash
        return None
    dtype = aval_of(operand).dtype
    if monoid is None or isinstance(init, Tracer) or not accepts(monoid, dtype):
        return None
    return monoid if np.asarray(init).astype(dtype) == identity(monoid, dtype) else None


def accepts(monoid: str, dtype: Any) -> bool:
    """Whether it has a primitive for arrays of ``dtype``."""
    if monoid in ("and", "or", "xor"):
        return dtype == np.bool_ or dtypes.is_integer(dtype)
    if monoid in ("max", "min"):
        return not dtypes.is_complex(dtype)
    return dtype != np.bool_


def monoid_of(program: ClosedJaxpr) -> str | None:
    """The monoid that a program of two scalars applies, if that is all it does."""
    jaxpr = program.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or len(jaxpr.outvars) != 1:
        return None
    (eqn,) = jaxpr.eqns
    applied = jaxpr.outvars[0] is eqn.outvars[0] and set(map(id, eqn.invars)) == set(map(id, jaxpr.invars))
    name = eqn.primitive.name
    if not applied or name not in MONOIDS.values() or not accepts(name, program.in_avals[0].dtype):
        return None
    return name


def flat_operands(name: str, operands: Any, inits: Any) -> tuple[list[Any], list[Any], PyTreeDef]:
    """The leaves of both, checked: one scalar initial value, of its dtype, for each operand.

    Raises:
      ValueError: the structures differ, there is no operand, or an initial value is no scalar.
      TypeError: dtypes or shapes differ.
    """
    xs, tree = tree_flatten(operands)
    starts, start_tree = tree_flatten(inits)
    if tree != start_tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {tree} vs. {start_tree}")
    if not xs:
        raise ValueError(f"{name} must have at least one operand.")
    avals = [aval_of(x) for x in xs]
    shapes = [np.shape(i) for i in starts if np.shape(i)]
    if shapes and name == "reduce_window":
        raise TypeError(f"reduce_window expected init_values to be scalars but init_values have shapes {shapes}.")
    if shapes:
        raise ValueError(f"{name} found non-scalar initial value: {shapes}")
    if len({a.shape for a in avals}) > 1:
        raise TypeError(f"{name} operands must have equal shapes, got {', '.join(map(str, avals))}.")
    starts = [a.dtype.type(i) if type(i) in PYTHON_SCALARS else i for i, a in zip(starts, avals, strict=True)]
    for a, i in zip(avals, starts, strict=True):
        if aval_of(i).dtype != a.dtype:
            raise TypeError(f"{name} operands and initial values must have equal dtypes, got {a} and {aval_of(i)}.")
    return xs, starts, tree


def scalar_program(name: str, computation: Callable[..., Any], operands: Sequence[Any], tree: PyTreeDef) -> ClosedJaxpr:
    """The program of ``computation`` for scalars: two values of each operand to one.

    Raises:
      NotImplementedError: it closes over traced values.
      TypeError: its results aren't like its arguments.
    """
    check_callable(computation)
    avals = [aval_of(x).with_shape((), weak_type=False) for x in operands]
    like = tree_unflatten(tree, avals)
    program, out_tree = trace_tree(computation, (like, like))
    if any(isinstance(c, Tracer) for c in program.consts):
        raise NotImplementedError(
            f"Reduction computations can't close over Tracers, but {name_of(computation)} does: make the value an "
            f"operand of {name}, or write the loop with lax.scan."
        )
    found = program.out_avals
    if out_tree != tree:
        raise ValueError(
            f"{name} output must have the same tree structure as the operands: {name_of(computation)} takes "
            f"{_text(tree, avals)} twice and gives {_text(out_tree, found)}."
        )
    if [_type(a) for a in found] != [_type(a) for a in avals]:
        raise TypeError(
            f"the computation of {name} ({name_of(computation)}) must give values like its arguments: it takes "
            f"{_text(tree, avals)} twice and gives {_text(out_tree, found)}."
        )
    return program


def _type(aval: ShapedArray) -> Any:
    return aval.shape, aval.dtype


def _text(tree: PyTreeDef, avals: Sequence[ShapedArray]) -> str:
    return str(tree_unflatten(tree, [str(a) for a in avals])).replace("'", "")


def elementwise_on(program: ClosedJaxpr) -> Combine:
    """The program of scalars as a function of two lists of arrays of one shape."""

    def combine(xs: Arrays, ys: Arrays) -> Arrays:
        shape = np.shape(xs[0])

        def mapped(sizes: Sequence[int], args: Arrays) -> Arrays:
            if not sizes:
                return run(program, args)
            axis = AxisData(sizes[0])
            outs, dims = batch_flat(lambda *inner: mapped(sizes[1:], inner), axis, args, [0] * len(args))
            return [match_axis(axis, d, 0, y) for y, d in zip(outs, dims, strict=True)]

        return mapped(shape, [*xs, *ys])

    return combine
