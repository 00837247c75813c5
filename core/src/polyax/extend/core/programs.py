"""Programs as data, primitives of one's own, and traces, under JAX's names.

Thin: what isn't re-exported is a line or two over ``polyax.ir`` and ``polyax.trace``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from polyax.extend.primitive import Primitive as Primitive
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, is_array_like
from polyax.ir.check import check_jaxpr as check_jaxpr
from polyax.ir.effects import NO_EFFECTS as no_effects
from polyax.ir.effects import Effect as Effect
from polyax.ir.effects import Effects as Effects
from polyax.ir.errors import ConcretizationTypeError
from polyax.ir.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from polyax.ir.errors import JaxprTypeError as JaxprTypeError
from polyax.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from polyax.ir.jaxpr import Eqn as JaxprEqn
from polyax.ir.jaxpr import Jaxpr as Jaxpr
from polyax.ir.jaxpr import Literal as Literal
from polyax.ir.jaxpr import Var as Var
from polyax.ir.jaxpr import eval_jaxpr, sub_jaxprs
from polyax.ir.primitive import ambient
from polyax.ir.source import NOWHERE, Nowhere, Source
from polyax.ir.source import DebugInfo as DebugInfo
from polyax.runtime.arrays.array import Array
from polyax.trace.context import axis_env, current_trace
from polyax.trace.context import set_trace as set_current_trace
from polyax.trace.tracer import Trace, Tracer

__all__ = [
    "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn",
    "JaxprTypeError", "Literal", "Primitive", "TraceTag", "Var", "array_types", "check_jaxpr", "concrete_or_error",
    "find_top_trace", "gensym", "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval",
    "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype", "safe_map",
    "safe_zip", "set_current_trace", "subjaxprs", "take_current_trace", "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip

array_types: set[type] = {Array, Tracer, np.ndarray, np.generic, bool, int, float, complex}
"""The types of values that programs take."""


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype: itself, or ``float0`` for what has no derivatives."""
    return dtypes.tangent_dtype(dtypes.as_dtype(primal_dtype))


class DropVar(Var):
    """A variable that nothing reads; programs of polyax have none, interpreters may bind results to it."""

    def __repr__(self) -> str:
        return "_"


# --- programs -----------------------------------------------------------------------------------------------------


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Any:
    """The function that a program stands for; with ``args`` its results, a list.

    >>> import polyax
    >>> jaxpr_as_fun(polyax.make_jaxpr(lambda x: x + 1.0)(2.0))(2.0)[0].item()
    3.0
    """

    def fun(*xs: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, xs)

    return fun(*args) if args else fun


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters."""
    for value in params.values():
        for v in value if isinstance(value, tuple) else (value,):
            if isinstance(v, (Jaxpr, ClosedJaxpr)):
                yield v if isinstance(v, Jaxpr) else v.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that the equations of ``jaxpr`` hold."""
    return (inner.jaxpr for eqn in jaxpr.eqns for inner in sub_jaxprs(eqn))


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Var],
    primitive: Any,
    params: dict[str, Any],
    effects: Effects = no_effects,
    source_info: Source | Nowhere | None = None,
    ctx: None = None,
) -> JaxprEqn:
    """An equation."""
    line = (source_info or NOWHERE).traceback
    return JaxprEqn(primitive, invars, outvars, primitive.known_params(params), frozenset(effects), line)


def gensym(suffix: str = "") -> Callable[[ShapedArray], Var]:
    """A maker of new variables of given types; their names are chosen when a program is printed."""
    return Var


# --- types --------------------------------------------------------------------------------------------------------


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch.

    >>> import polyax.core
    >>> mapped_aval(3, 0, polyax.core.ShapedArray((3, 4), np.dtype('float32')))
    ShapedArray(float32[4])

    Raises:
      ValueError: that axis of ``aval`` doesn't have ``size`` elements.
    """
    if axis is None:
        return aval
    if not 0 <= axis < aval.ndim or aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval} must exist and have {size} elements")
    return aval.with_shape(aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: None = None) -> ShapedArray:
    """The type of a batch of ``size`` examples of type ``aval``."""
    return aval if axis is None else aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


def valid_jaxtype(x: Any) -> bool:
    """Whether programs take ``x``."""
    return is_array_like(x)


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """``force(val)`` (or ``val``), unless it is being traced.

    Raises:
      ConcretizationTypeError: it is; ``context`` tells what it is needed for.
    """
    if isinstance(val, Tracer):
        try:
            return (force or Tracer.item)(val)
        except (TypeError, ValueError) as e:
            raise ConcretizationTypeError(
                f"Abstract tracer value encountered where concrete value is expected: {val}. {context}"
            ) from e
    return val if force is None else force(val)


# --- the current trace --------------------------------------------------------------------------------------------


class TraceTag:
    """Marks what belongs to one transformation; equal to itself alone."""


class take_current_trace:
    """Inside the ``with`` block nothing is traced; the block gets the trace that was current."""

    def __enter__(self) -> Trace:
        found = current_trace()
        self._away = set_current_trace(None)
        self._away.__enter__()
        return found

    def __exit__(self, *error: Any) -> None:
        self._away.__exit__(*error)


def find_top_trace(_: Any = None) -> Trace:
    """The trace that primitives are applied in."""
    return current_trace()


def get_opaque_trace_state(convention: str | None = None) -> Any:
    """A value that is equal as long as the current trace is the same."""
    return id(current_trace()), tuple(axis_env().items())


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    return _any_trace("DynamicJaxprTrace")


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    return _any_trace("BatchTrace")


def _any_trace(name: str) -> bool:
    trace = ambient.trace
    while trace is not None:
        if type(trace).__name__ == name:
            return True
        trace = getattr(trace, "parent", None)
    return False


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    return list(axis_env())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    return bool(axis_env())


# --- lists of equal length ----------------------------------------------------------------------------------------


def safe_map(f: Callable[..., Any], *lists: Any) -> list[Any]:
    """``list(map(f, *lists))`` of lists of one length, which is checked.

    Raises:
      ValueError: their lengths differ.
    """
    return [f(*row) for row in safe_zip(*lists)]


def safe_zip(*lists: Any) -> list[tuple[Any, ...]]:
    """``list(zip(*lists))`` of lists of one length, which is checked."""
    columns = [list(xs) for xs in lists]
    if len({len(c) for c in columns}) > 1:
        raise ValueError(f"length mismatch: {[len(c) for c in columns]}")
    return list(zip(*columns, strict=True))
