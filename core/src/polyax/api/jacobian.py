"""Jacobians and Hessians: vmapped pushforwards and pullbacks of the standard basis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from polyax.api.ad import check_forward_inputs, check_outputs, check_reverse_inputs
from polyax.api.arguments import check_int_or_tuple, restrict, wraps
from polyax.api.jvp import jvp
from polyax.api.vjp import vjp
from polyax.api.vmap import vmap
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ops.basis import broadcasted_iota, convert, convert_element_type, full, reshape
from polyax.ops.elementwise import eq
from polyax.ops.slicing import slice as slice_
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import check_callable
from polyax.trace.tree import tree_flatten, tree_map, tree_structure, tree_unflatten


def _standard_basis(tree: Any) -> Any:
    """The identity matrix of the flattened tree, with its columns in the structure of ``tree``."""
    leaves, treedef = tree_flatten(tree)
    avals = [aval_of(x) for x in leaves]
    total = sum(a.size for a in avals)
    row, column = (broadcasted_iota("int32", (total, total), i) for i in (0, 1))
    out = []
    for aval, (start, stop) in zip(avals, _spans(avals), strict=True):
        columns = _span(column, 1, start, stop)
        block = convert_element_type(eq(_span(row, 1, start, stop), columns), dtypes.tangent_dtype(aval.dtype))
        out.append(reshape(block, (total, *aval.shape)))
    return tree_unflatten(treedef, out)


def _spans(avals: Sequence[ShapedArray]) -> Iterator[tuple[int, int]]:
    """Where each array begins and ends when all are laid end to end."""
    start = 0
    for aval in avals:
        yield start, start + aval.size
        start += aval.size


def _span(x: Any, axis: int, start: int, stop: int) -> Any:
    """``x[..., start:stop, ...]``"""
    shape = aval_of(x).shape
    if (start, stop) == (0, shape[axis]):
        return x
    low = [start if i == axis else 0 for i in range(len(shape))]
    high = [stop if i == axis else n for i, n in enumerate(shape)]
    return slice_(x, low, high)


def _unravel(x: Any, axis: int, tree: Any) -> Any:
    """Cuts dimension ``axis`` of ``x`` into the leaves of ``tree``, each with its shape in that place."""
    leaves, treedef = tree_flatten(tree)
    avals = [aval_of(leaf) for leaf in leaves]
    shape = aval_of(x).shape
    axis %= len(shape)
    out = [
        reshape(_span(x, axis, *span), (*shape[:axis], *aval.shape, *shape[axis + 1 :]))
        for aval, span in zip(avals, _spans(avals), strict=True)
    ]
    return tree_unflatten(treedef, out)


def _as_weak_as(like: Any, tree: Any) -> Any:
    """The arrays of ``tree``, weakly typed if ``like`` is and they could stand for its tangents."""
    aval = aval_of(like)
    if not aval.weak_type:
        return tree
    return tree_map(lambda x: convert(x, aval.dtype, True) if aval_of(x).dtype == aval.dtype else x, tree)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one pushforward per input element, all at once.

    For an output of shape ``o`` and an argument of shape ``i`` the result has shape ``o + i``.

    >>> jacfwd(lambda x: x * x)(2.0).item()
    4.0
    """
    check_callable(fun)
    check_int_or_tuple("argnums", argnums)

    @wraps(fun, "Jacobian of {fun} with respect to positional argument(s) " + str(argnums) + ".")
    @api_boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        f, chosen = restrict(fun, argnums, args, kwargs)
        check_forward_inputs(chosen, "jacfwd", holomorphic)

        def push(tangents: Any) -> Any:
            return jvp(f, chosen, tangents, has_aux=has_aux)

        axes = (None, -1, None) if has_aux else (None, -1)
        y, columns, *aux = vmap(push, out_axes=axes)(_standard_basis(chosen))
        if holomorphic:
            check_outputs(y, "jacfwd", holomorphic)
        examples = chosen[0] if isinstance(argnums, int) else chosen
        jacobian = tree_map(lambda x, out: _as_weak_as(out, _unravel(_numbers(x, out), -1, examples)), columns, y)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacfun


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pullback per output element, all at once.

    >>> jacrev(lambda x: x * x)(2.0).item()
    4.0
    """
    check_callable(fun)
    check_int_or_tuple("argnums", argnums)

    @wraps(fun, "Jacobian of {fun} with respect to positional argument(s) " + str(argnums) + ".")
    @api_boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        f, chosen = restrict(fun, argnums, args, kwargs)
        check_reverse_inputs(chosen, "jacrev", holomorphic, allow_int)
        y, pullback, *aux = vjp(f, *chosen, has_aux=has_aux)
        check_outputs(y, "jacrev", holomorphic)
        rows = vmap(pullback)(_standard_basis(y))
        rows = rows[0] if isinstance(argnums, int) else rows
        examples = chosen[0] if isinstance(argnums, int) else chosen
        by_input = tree_map(lambda x, given: _as_weak_as(given, _unravel(_numbers(x, given), 0, y)), rows, examples)
        outer = tree_structure(examples)
        jacobian = _transpose_trees(outer, tree_structure(y), by_input)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacfun


def _numbers(x: Any, like: Any) -> Any:
    """Tangents of float0, which integers have, as zeros of their own type; keys have none."""
    aval, own = aval_of(x), aval_of(like).dtype
    return full(aval.shape, 0, own) if aval.dtype == dtypes.float0 and not dtypes.is_extended(own) else x


def _transpose_trees(outer: Any, inner: Any, tree: Any) -> Any:
    rows = zip(*(inner.flatten_up_to(t) for t in outer.flatten_up_to(tree)), strict=True)
    return tree_unflatten(inner, [tree_unflatten(outer, r) for r in rows])


jacobian = jacrev


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Hessian, forward over reverse.

    >>> hessian(lambda x: x ** 3)(2.0).item()
    12.0
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
