"""``checkify`` and the checks, as users call them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from polyax.experimental.checkify import nested, own_rules  # noqa: F401  (which register rules)
from polyax.experimental.checkify.checking import raise_if
from polyax.experimental.checkify.error import Error, init_error
from polyax.experimental.checkify.failures import ErrorCategory, FailedCheckError, user_checks
from polyax.experimental.checkify.interpreter import run_checked
from polyax.ir.source import user_source
from polyax.lax import lenient as lax
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.flat import check_callable, name_of
from polyax.trace.recording import SourceOf, trace_to_jaxpr
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_map, tree_unflatten


def checkify(f: Callable[..., Any], errors: Iterable[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """``f``, which gives the error that it met together with its result, instead of raising it.

    That is a pure function, which can be jitted and mapped. Checks inside of ``jit``, ``cond``, ``scan``,
    ``while_loop``, ``vmap``, ``pmap`` and ``shard_map`` are found. Of several errors the first is told.

    Args:
      f: a function of pytrees of arrays, which may call ``check``.
      errors: what is checked: ``user_checks`` (calls of ``check``), ``nan_checks``, ``div_checks`` (division by zero),
        ``index_checks`` (positions outside of arrays); ``float_checks``, ``automatic_checks`` and ``all_checks`` are
        several of them. Sets can be joined with ``|``.

    Returns:
      ``fun(*args, **kwargs) -> (error, result)``; see ``Error.get`` and ``Error.throw``.

    Raises:
      ValueError: it meets a ``while_loop`` under ``vmap`` whose condition differs between examples.

    >>> import polyax
    >>> import polyax.numpy as jnp
    >>> def f(x):
    ...     check(x > 0, "{x} isn't positive", x=x)
    ...     return jnp.log(x)
    >>> error, _ = polyax.jit(checkify(f))(-3.0)
    >>> error.get()
    "-3.0 isn't positive (`check` failed)"
    """
    check_callable(f)
    enabled = frozenset(errors)

    @api_boundary
    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        trees: list[PyTreeDef] = []

        def closed_over() -> list[Any]:
            leaves, tree = tree_flatten(f(*args, **kwargs))
            trees.append(tree)
            return leaves

        program = trace_to_jaxpr(closed_over, [], name=name_of(f), origin=SourceOf(f, list))
        error, outs = run_checked(program.jaxpr, program.consts, enabled, init_error, [])
        return error, tree_unflatten(trees[0], outs)

    return checked


@api_boundary
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raises an error if ``pred`` doesn't hold: at once, or as the result of the function that ``checkify`` makes.

    A program with checks can be compiled after ``checkify`` alone.

    Args:
      pred: a boolean scalar.
      msg: the text of the error, a format string for the other arguments, which are pytrees of arrays.
      debug: without ``checkify``, nothing is checked.

    Raises:
      JaxRuntimeError: it doesn't hold.
      TypeError: ``pred`` is no boolean scalar, or an argument of the text no array.

    >>> check(1 + 1 == 2, "numbers have changed")
    """
    if not _is_predicate(pred):
        raise TypeError(f"{'debug_check' if debug else 'check'} takes a scalar pred as argument, got {pred}")
    for x in tree_leaves((fmt_args, fmt_kwargs)):
        if not isinstance(x, (Array, np.ndarray, np.generic)):
            raise TypeError(
                f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {x!r} of type {type(x)}."
            )
    args, kwargs = tree_map(_strongly_typed, (fmt_args, fmt_kwargs))
    exception = FailedCheckError(user_source(), msg, *args, **kwargs)
    raise_if(init_error._with(lax.bitwise_not(pred), exception), debug)


def _is_predicate(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_)) or (isinstance(x, Array) and x.shape == () and x.dtype == bool)


def _strongly_typed(x: Any) -> Any:
    """Loops carry it, so that its type mustn't depend on what Python numbers it was made of."""
    return lax.convert_element_type(x, x.dtype)


@api_boundary
def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """``check`` in functions for ``checkify``; elsewhere, nothing.

    >>> debug_check(False, "nobody hears of it")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@api_boundary
def check_error(error: Error) -> None:
    """Raises the error that a function made by ``checkify`` gave, if it is one: ``check`` for errors.

    Raises:
      JaxRuntimeError: it is one.
      TypeError: ``error`` is no ``Error``.

    >>> check_error(init_error)
    """
    if not isinstance(error, Error):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    raise_if(error)
