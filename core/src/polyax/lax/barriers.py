"""What programs do to their own making: values lifted into them, kept apart, or kept alive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.effects import Effect, Effects
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import convert
from polyax.ops.zeros import instantiate
from polyax.trace.flat import check_arrays
from polyax.trace.recording import DynamicJaxprTrace, DynamicJaxprTracer
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["dce_sink", "dce_sink_p", "optimization_barrier", "optimization_barrier_p", "stage"]

# --- a barrier --------------------------------------------------------------------------------------------------------

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)
"""``optimization_barrier *xs``: the same values, all of which are there before any of them is used."""
optimization_barrier_p.linear_in = (0,)


def optimization_barrier(operand: Any, /) -> Any:
    """The same pytree of arrays; nothing is computed with any of them before all are there.

    Raises:
      TypeError: a leaf is no array.

    >>> optimization_barrier((1.5, 2.5))[0].item()
    1.5
    """
    check_arrays(operand, "the argument of optimization_barrier")
    leaves, tree = tree_flatten(operand)
    return tree_unflatten(tree, optimization_barrier_p.bind(*leaves) if leaves else [])


@def_rule(optimization_barrier_p, "abstract_eval")
def _barrier_abstract(*avals: ShapedArray) -> list[ShapedArray]:
    return list(avals)


@def_rule(optimization_barrier_p, "decompose")
def _barrier_decompose(*args: Any) -> list[Any]:
    return list(args)


@def_rule(optimization_barrier_p, "jvp")
def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    known = [n for n, t in enumerate(tangents) if type(t) is not Zero]
    dots = iter(optimization_barrier_p.bind(*[instantiate(tangents[n]) for n in known]))
    values = optimization_barrier_p.bind(*primals)
    return values, [t if type(t) is Zero else next(dots) for t in tangents]


@def_rule(optimization_barrier_p, "transpose")
def _barrier_transpose(cts: Sequence[Any], *args: Any) -> list[Any]:
    known = [ct for ct in cts if type(ct) is not Zero]
    passed = iter(optimization_barrier_p.bind(*known) if known else [])
    passed = [ct if type(ct) is Zero else next(passed) for ct in cts]
    return [ct if is_undef(x) else None for ct, x in zip(passed, args, strict=True)]


@def_rule(optimization_barrier_p, "batch")
def _barrier_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    return optimization_barrier_p.bind(*args), list(dims)


# --- a sink -----------------------------------------------------------------------------------------------------------

dce_sink_p = Primitive("dce_sink", multiple_results=True)
"""``dce_sink[prevent_mlir_dce] x``: nothing, for which ``x`` has to be computed."""
_KEPT: Effects = frozenset({Effect("NoDCE")})


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps the computation of a pytree of arrays in a program, although nothing uses its results.

    Args:
      prevent_mlir_dce: kept for compatibility: here compilers keep what programs keep.
    """
    for leaf in tree_leaves(val):
        dce_sink_p.bind(leaf, prevent_mlir_dce=prevent_mlir_dce)


@def_rule(dce_sink_p, "abstract_eval")
def _sink_abstract(x: ShapedArray, **_: Any) -> tuple[list[ShapedArray], Effects]:
    return [], _KEPT


@def_rule(dce_sink_p, "jvp")
def _sink_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    return dce_sink_p.bind(*primals, **params), []


@def_rule(dce_sink_p, "batch")
def _sink_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    return dce_sink_p.bind(*args, **params), []


dce_sink_p.impl = dce_sink_p.decompose = lambda x, **_: []
dce_sink_p.never("transpose", "it has no results")


# --- lifting ----------------------------------------------------------------------------------------------------------


def stage(x: Any, /) -> Any:
    """A number or a NumPy array as a value of the program that is being traced; as an array, if there is none.

    Raises:
      TypeError: it is no array.

    >>> stage(1.5).dtype
    dtype('float32')
    """
    check_arrays(x, "the argument of stage")
    aval = aval_of(x)
    trace = ambient.trace
    if isinstance(trace, DynamicJaxprTrace):
        return x if hasattr(x, "aval") else DynamicJaxprTracer(trace, trace.atom(x))
    return convert(x, aval.dtype, aval.weak_type)
