"""``cond`` and ``switch``, as users call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.cond import cond_p
from polyax.control.programs import share_consts
from polyax.control.structure import check_predicate, check_same, check_scalar, weaknesses, with_weak_types
from polyax.ir import dtypes
from polyax.ir.config import config
from polyax.ops.basis import convert_element_type
from polyax.ops.compare import clamp, ne
from polyax.trace.flat import check_callable, name_of, trace_tree
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_leaves, tree_unflatten

_MISSING: Any = object()


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _MISSING,
    linear: Any = None,
) -> Any:
    """``true_fun(*operands)`` if ``pred`` holds, else ``false_fun(*operands)``; both are traced, one runs.

    Under ``vmap`` with a mapped ``pred`` both run, and results are selected.

    Args:
      pred: a scalar; numbers hold unless they are zero.
      true_fun, false_fun: functions with results of one structure and equal types.
      operands: pytrees of arrays.

    Raises:
      TypeError: ``pred`` is no scalar, or the results of the functions differ.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3).item()
    4
    """
    if operand is not _MISSING:
        if operands:
            raise TypeError("if 'operand' keyword is passed then no positional operands can be passed, got both")
        operands = (operand,)
    check_callable(true_fun), check_callable(false_fun)
    aval = check_predicate("Pred", pred)
    if config.disable_jit and not isinstance(pred, Tracer):
        return (true_fun if pred else false_fun)(*operands)
    holds = pred if aval.dtype == bool else ne(pred, 0)
    index = convert_element_type(holds, "int32")
    return _choose(index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _MISSING,
) -> Any:
    """``branches[index](*operands)``, with the index clamped into range.

    Args:
      index: an integer scalar.
      branches: functions with results of one structure and equal types.

    >>> switch(5, [lambda x: x, lambda x: 10 * x], 4).item()
    40
    """
    if operand is not _MISSING:
        operands = (operand,)
    for fun in branches:
        check_callable(fun)
    if not branches:
        raise ValueError("Empty branch sequence")
    aval = check_scalar("Index", index)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"Index type must be an integer, got {aval}.")
    if len(branches) == 1:
        return branches[0](*operands)
    if config.disable_jit and not isinstance(index, Tracer):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    last = len(branches) - 1
    clamped = clamp(0, convert_element_type(index, "int32"), last)
    return _choose(clamped, tuple(branches), tuple(f"branch {n}" for n in range(len(branches))), operands)


def _choose(index: Any, funs: Sequence[Callable[..., Any]], names: Sequence[str], operands: Sequence[Any]) -> Any:
    traced = [trace_tree(fun, operands) for fun in funs]
    (first, tree), name = traced[0], names[0]
    for (other, other_tree), other_name, fun in zip(traced[1:], names[1:], funs[1:], strict=True):
        what = f"the results of {name} ({name_of(funs[0])}) and {other_name} ({name_of(fun)}) of a conditional must"
        check_same(what, (f"{name}'s", f"{other_name}'s"), (tree, other_tree), (first.out_avals, other.out_avals))
    weak = tuple(map(all, zip(*(weaknesses(c.out_avals) for c, _ in traced), strict=True)))
    branches, consts = share_consts([with_weak_types(c, weak) for c, _ in traced])
    outs = cond_p.bind(index, *consts, *tree_leaves(operands), branches=tuple(branches))
    return tree_unflatten(tree, outs)
