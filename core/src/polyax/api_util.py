"""``polyax.api_util``: functions of pytrees as functions of flat lists, for transformations of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from polyax.extend.core import safe_map as safe_map
from polyax.extend.linear_util import AuxStore, WrappedFun, transformation2, transformation_with_aux2
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.source import DebugInfo
from polyax.trace import paths
from polyax.trace.flat import arg_names
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

__all__ = [
    "argnums_partial", "debug_info", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs", "safe_map",
    "shaped_abstractify",
]  # fmt: skip


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: AuxStore, in_tree: PyTreeDef, *leaves: Any) -> list[Any]:
    """The wrapped function on the leaves of ``(args, kwargs)``; the second result gives the structure of its result.

    >>> from polyax.extend.linear_util import wrap_init
    >>> leaves, tree = tree_flatten(((1,), {"y": 2}))
    >>> flat, out_tree = flatten_fun(wrap_init(lambda x, y: {"sum": x + y}), tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([3], PyTreeDef({'sum': *}))
    """
    args, kwargs = tree_unflatten(in_tree, leaves)
    outs, tree = tree_flatten(f(*args, **kwargs))
    store.store(tree)
    return outs


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: AuxStore, in_tree: PyTreeDef, *leaves: Any) -> list[Any]:
    """The same for the leaves of ``args`` alone."""
    outs, tree = tree_flatten(f(*tree_unflatten(in_tree, leaves)))
    store.store(tree)
    return outs


@transformation2
def _with_fixed(f: Callable[..., Any], places: tuple[int, ...], fixed: tuple[Any, ...], *dynamic: Any) -> Any:
    args: list[Any] = list(fixed)
    for n, x in zip(places, dynamic, strict=True):
        args[n] = x
    return f(*args)


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """``f`` of the arguments ``dyn_argnums`` alone, the others being what they are in ``args``; and those arguments.

    Raises:
      ValueError: a fixed argument has no hash.
    """
    given = (dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums
    places = tuple(n % len(args) for n in given)
    fixed = tuple(None if n in places else x for n, x in enumerate(args))
    if require_static_args_hashable:
        for n, x in enumerate(fixed):
            if type(x).__hash__ is None:
                raise ValueError(f"the static argument {n} of {f.__name__} must have a hash, got {x!r} of {type(x)}")
    return _with_fixed(f, places, fixed), tuple(args[n] for n in places)


def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """One axis for each leaf of ``treedef`` from a tree that it begins with, in which None is a value.

    Args:
      kws: ``treedef`` is that of ``(args, kwargs)``, and axes are those of ``args``; those of ``kwargs`` are 0.

    Raises:
      ValueError: ``treedef`` doesn't begin with ``axis_tree``.
    """
    if kws:
        return paths.flatten_axes(name, treedef, (axis_tree, 0), tupled_args=tupled_args)
    return paths.flatten_axes(name, treedef, axis_tree, tupled_args=tupled_args)


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or a number.

    Raises:
      TypeError: it is neither.
    """
    return aval_of(x)


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """What error texts say of ``fun``: where it is, and names of the leaves of its arguments.

    Args:
      static_argnums, static_argnames: arguments that have no leaves.
      sourceinfo: where it is, if it isn't where Python says.

    >>> debug_info("jit", lambda x: x, ({"a": 1},), {}).arg_names
    ("x['a']",)
    """
    dynamic = [None if n in static_argnums else x for n, x in enumerate(args)]
    named = {k: None if k in static_argnames else v for k, v in kwargs.items()}
    told = DebugInfo.of(fun, traced_for, tuple(arg_names(fun, dynamic, named)))
    return told._replace(func_src_info=sourceinfo or told.func_src_info, result_paths=result_paths_thunk)
