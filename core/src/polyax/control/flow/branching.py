"""``cond`` and ``switch``, as users call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.flow.cond import bind_cond
from polyax.control.inner.bodies import Traced, traced
from polyax.control.inner.differences import alike, branch_results, check_same
from polyax.control.inner.programs import share_consts
from polyax.control.inner.structure import check_index, check_predicate, weaknesses, with_weak_types
from polyax.ir.aval import unwrap
from polyax.ir.config import config
from polyax.ir.jaxpr import is_literal_value
from polyax.ops.basis import convert_element_type
from polyax.ops.compare import clamp, ne
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_leaves, tree_unflatten
from polyax.trace.views import opened

_MISSING: Any = object()


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _MISSING,
) -> Any:
    """``true_fun(*operands)`` if ``pred`` holds, else ``false_fun(*operands)``; both are traced, one runs.

    Under ``vmap`` with a mapped ``pred`` both run, and results are selected. An older form gives each function an
    operand of its own: ``cond(pred, true_operand, true_fun, false_operand, false_fun)``.

    Args:
      pred: a scalar; numbers hold unless they are zero.
      true_fun, false_fun: functions with results of one structure and equal types.
      operands: pytrees of arrays.

    Raises:
      TypeError: ``pred`` is no scalar, or the results of the functions differ.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3).item()
    4
    """
    operands = _one_way(operands, operand)
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        return _cond_with_own_operands(pred, true_fun, false_fun, *operands)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if pred is None:
        raise TypeError("cond predicate is None")
    pred = unwrap(pred)
    aval = check_predicate(pred)
    if config.disable_jit and not isinstance(pred, Tracer):
        return (true_fun if pred else false_fun)(*operands)
    if is_literal_value(pred):
        index: Any = np.int32(bool(pred))
    else:
        index = convert_element_type(pred if aval.dtype == bool else ne(pred, 0), "int32")
    return choose_branch("cond", index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def _one_way(operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, which were given by position or, as a single one, by name."""
    if operand is _MISSING:
        return operands
    if operands:
        raise TypeError(
            f"if 'operand' keyword is passed then no positional operands can be passed, got operand={operand} and "
            f"positional operands {operands}"
        )
    return (operand,)


def _cond_with_own_operands(pred: Any, true_operand: Any, true_fun: Any, false_operand: Any, false_fun: Any) -> Any:
    return cond(pred, lambda x, _: true_fun(x), lambda _, x: false_fun(x), true_operand, false_operand)


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
    operands = _one_way(operands, operand)
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if not branches:
        raise ValueError("Empty branch sequence")
    check_index(index)
    if len(branches) == 1:
        return branches[0](*operands)
    if config.disable_jit and not isinstance(index, Tracer):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    last = len(branches) - 1
    if is_literal_value(index):
        chosen: Any = np.int32(min(max(int(index), 0), last))
    else:
        chosen = clamp(np.int32(0), convert_element_type(index, "int32"), np.int32(last))
    return choose_branch("switch", chosen, tuple(branches), _branch_names(len(branches)), operands)


def _branch_names(count: int) -> list[str]:
    return ["branch 0", *(f"branch{n}" for n in range(1, count))]


def choose_branch(
    what: str, index: Any, funs: Sequence[Callable[..., Any]], names: Sequence[str], operands: Sequence[Any]
) -> Any:
    """Traces the functions, which must agree, and binds a ``cond`` of them; ``index`` is in range. Results are weakly
    typed where those of the first one are, which for ``cond`` is what happens if the predicate is false."""
    step = -1 if what == "cond" else 1  # traced in the order in which users give them: true before false
    operands = opened(operands)
    programs = [traced(fun, operands, what=what) for fun in funs[::step]][::step]
    _check_branches(what, names, funs, programs)
    weak = weaknesses(programs[0][0].out_avals)
    branches, consts = share_consts([with_weak_types(c, weak) for c, _ in programs])
    outs = bind_cond(branches, index, [*consts, *tree_leaves(operands)])
    return tree_unflatten(programs[0][1], outs)


def _check_branches(
    what: str, names: Sequence[str], funs: Sequence[Callable[..., Any]], programs: Sequence[Traced]
) -> None:
    """Those that differ are told in the order in which users give them: true before false."""
    first, tree = programs[0]
    for n, (other, other_tree) in enumerate(programs[1:], 1):
        if tree == other_tree and all(map(alike, first.out_avals, other.out_avals)):
            continue
        a, b = (n, 0) if what == "cond" else (0, n)
        sides = branch_results(what, (names[a], names[b]), (funs[a], funs[b]))
        trees, avals = (programs[a][1], programs[b][1]), (programs[a][0].out_avals, programs[b][0].out_avals)
        check_same(sides, trees, avals)
