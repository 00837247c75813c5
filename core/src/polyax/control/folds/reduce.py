"""``lax.reduce``: all elements along dimensions combined by any associative computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from polyax.control.folds.reducers import elementwise_on, flat_operands, known_monoid, monoid_of, scalar_program
from polyax.control.inner.lists import cut
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops import reduce as whole
from polyax.ops.basis import broadcast_in_dim, convert, match_axis, reduce_sum
from polyax.ops.window_folds import fold_axes, starting_with
from polyax.trace.tree import tree_leaves, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import batch_flat

OVER_AXES: dict[str, Callable[[Any, Sequence[int]], Any]] = {
    "add": reduce_sum,
    "mul": whole.reduce_prod,
    "max": whole.reduce_max,
    "min": whole.reduce_min,
    "and": whole.reduce_and,
    "or": whole.reduce_or,
    "xor": whole.reduce_xor,
}

reduce_p = Primitive("reduce", multiple_results=True)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """The elements of ``operands`` along ``dimensions``, combined by ``computation`` with ``init_values``.

    Sums, products, extrema and logic of this module with their identities become ``reduce_sum`` and so on. Everything
    else is combined in a tree, in order: differentiable in both modes, a logarithmic number of steps.

    Args:
      operands: a pytree of arrays of one shape.
      init_values: scalars in the same structure.
      computation: an associative function of two such pytrees of scalars.
      dimensions: those that the results don't have any more.

    Raises:
      ValueError: structures or dimensions that don't fit.
      TypeError: the computation's results aren't like its arguments.

    >>> import numpy as np
    >>> print(reduce(np.array([[1., 2.], [3., 4.]]), 0.0, lambda a, b: a + b + a * b, (1,)))
    [ 5. 19.]
    """
    if out_sharding is not None:
        raise NotImplementedError("reduce: out_sharding isn't built yet")
    dims = tuple(map(index, dimensions))
    xs, inits, tree = flat_operands("reduce", operands, init_values)
    monoid = known_monoid(computation, xs[0], inits[0]) if len(xs) == 1 else None
    if monoid is not None:
        outs = [OVER_AXES[monoid](xs[0], dims)]
    else:
        program = scalar_program("reduce", computation, xs, tree)
        outs = reduce_p.bind(*xs, *inits, computation=computation, dimensions=dims, jaxpr=program)
    weak = [aval_of(x).weak_type and aval_of(i).weak_type for x, i in zip(xs, tree_leaves(init_values), strict=True)]
    return tree_unflatten(tree, [convert(y, aval_of(y).dtype, w) for y, w in zip(outs, weak, strict=True)])


@def_rule(reduce_p, "abstract_eval")
def _abstract_eval(*avals: ShapedArray, dimensions: tuple[int, ...], **_: Any) -> list[ShapedArray]:
    xs = avals[: len(avals) // 2]
    return [ShapedArray(whole.reduced_shape(x, dimensions), x.dtype) for x in xs]


def folded(args: Sequence[Any], *, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...], **_: Any) -> Sequence[Any]:
    """What ``reduce`` computes, in primitives of arrays."""
    xs, inits = cut(args, len(args) // 2)
    combine, shape = elementwise_on(jaxpr), np.shape(xs[0])
    if any(shape[d] == 0 for d in dimensions):
        rest = tuple(n for d, n in enumerate(shape) if d not in dimensions)
        return [broadcast_in_dim(i, rest, ()) for i in inits]
    monoid = monoid_of(jaxpr)
    outs = fold_axes(combine, xs, dimensions) if monoid is None else [OVER_AXES[monoid](xs[0], dimensions)]
    return starting_with(combine, inits, outs, None)


@def_rule(reduce_p, "decompose")
def _decompose(*args: Any, **params: Any) -> Sequence[Any]:
    return folded(args, **params)


@def_rule(reduce_p, "jvp")
def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    return jvp_flat(lambda *args: folded(args, **params), primals, tangents)


reduce_p.factors = lambda *avals, dimensions, **_: whole.reduction_factors(avals, len(avals) // 2, dimensions)
reduce_p.never("transpose", "no computation is known to be linear; derivatives are taken of the tree of slices")


@def_rule(reduce_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, dimensions: tuple[int, ...], **params: Any) -> Any:
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        return batch_flat(lambda *xs: folded(xs, dimensions=dimensions, **params), axis, args, dims)
    xs = [match_axis(axis, d, 0, x) for x, d in zip(args[:n], dims[:n], strict=True)]
    outs = reduce_p.bind(*xs, *args[n:], dimensions=tuple(d + 1 for d in dimensions), **params)
    return outs, [0] * n


@def_rule(reduce_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]
