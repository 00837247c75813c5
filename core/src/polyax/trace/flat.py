"""User functions of pytrees as functions of flat lists, which is what traces run. Checks what they return."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of, is_array_like, not_an_array
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import ambient
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.recording import SourceOf, trace_to_jaxpr
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


def name_of(fun: Callable[..., Any]) -> str:
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)


def check_callable(fun: Any) -> None:
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun!r}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


class Flat:
    """``fun`` on flat arguments: calls it with the tree and flattens what it returns into ``out_tree``."""

    __slots__ = ("fun", "in_tree", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: PyTreeDef) -> None:
        self.fun = fun
        self.in_tree = in_tree
        self.out_tree: PyTreeDef | None = None

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        return self._flattened(self.fun(*args, **kwargs))

    def _flattened(self, result: Any) -> list[Any]:
        out, self.out_tree = tree_flatten(result)
        if not all(map(is_array_like, out)):
            raise _no_array_in(result, self.fun)
        return out

    def unflatten(self, outs: Sequence[Any]) -> Any:
        assert self.out_tree is not None
        return tree_unflatten(self.out_tree, outs)


class FlatAux(Flat):
    """The same for ``fun`` with ``has_aux``: returns the flat main output and keeps the rest in ``aux``."""

    __slots__ = ("aux",)

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        pair = self.fun(*args, **kwargs)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            what = f"a {type(pair).__name__}" + (f" of length {len(pair)}" if isinstance(pair, (tuple, list)) else "")
            raise TypeError(f"expected function with aux output to return a two-element tuple, but got {what}: {pair}")
        main, self.aux = pair
        return self._flattened(main)


def _no_array_in(result: Any, fun: Callable[..., Any]) -> TypeError:
    """The error about the first leaf of a function's result that is no array."""
    path, x = next((path, x) for path, x in tree_leaves_with_path(result) if not is_array_like(x))
    at = f" at output component {keystr(path)}" if path else ""
    origin = getattr(ambient.trace, "origin", None)
    if origin is None:
        return not_an_array(x, f": {SourceOf(fun, list)} returned it{at}.")
    return TypeError(
        f"function {origin} traced for {origin.traced_for} returned a value of type {type(x)}{at}, which is not a "
        f"valid JAX type: {x!r}"
    )


TO_SET = "If it is meant as a setting, make it static."


def check_arrays(args: Any, what: str) -> None:
    """Raises JAX's TypeError, naming the path of the first leaf that is no array."""
    for path, x in tree_leaves_with_path(args):
        if not is_array_like(x):
            at = f" at {keystr(path)}" if path else ""
            raise not_an_array(x, f": {what}{at} is {x!r}. {TO_SET}")


def arg_names(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """``x``, ``params['w']``: a name for each leaf of the arguments."""
    try:
        signature = inspect.signature(fun)
        named, parameters = list(signature.bind_partial(*args).arguments.items()), signature.parameters
    except (TypeError, ValueError):
        named, parameters = [(f"args[{i}]", a) for i, a in enumerate(args)], kwargs
    rest = next((n for n, p in parameters.items() if getattr(p, "kind", None) is inspect.Parameter.VAR_KEYWORD), None)
    named += [(n if rest is None or n in parameters else f"{rest}[{n!r}]", x) for n, x in sorted(kwargs.items())]
    return [name + keystr(path) for name, tree in named for path, _ in tree_leaves_with_path(tree)]


def leaf_names(fun: Callable[..., Any], in_tree: PyTreeDef) -> list[str]:
    """The same for the structure of ``(args, kwargs)``."""
    args, kwargs = tree_unflatten(in_tree, [0] * in_tree.num_leaves)
    return arg_names(fun, args, kwargs)


def trace_tree(fun: Callable[..., Any], args: Sequence[Any], what: str = "jit") -> tuple[ClosedJaxpr, PyTreeDef]:
    """The program of ``fun`` for arguments of these types (arrays or avals), and the structure of its result.

    ``what``: what it is traced for, in error texts.
    """
    leaves, in_tree = tree_flatten((tuple(args), {}))
    flat = Flat(fun, in_tree)
    avals = [x if isinstance(x, ShapedArray) else aval_of(x) for x in leaves]
    origin = SourceOf(fun, lambda: arg_names(fun, args, {}), what, in_tree)
    closed = trace_to_jaxpr(flat, avals, name=name_of(fun), origin=origin)
    assert flat.out_tree is not None
    return closed, flat.out_tree
