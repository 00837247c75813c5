"""Argument handling that the transformations share: flattening, static arguments, checks, names for error texts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


def name_of(fun: Callable[..., Any]) -> str:
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)


def check_callable(fun: Any) -> None:
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def wraps(fun: Callable[..., Any], docs: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    ""
    """Like ``functools.wraps`` for functions of another meaning: the name stays, ``docs`` say what changed."""

    def decorate(wrapper: Callable[..., Any]) -> Callable[..., Any]:
        functools.update_wrapper(wrapper, fun, updated=())
        wrapper.__doc__ = docs.format(fun=name_of(fun), doc=getattr(fun, "__doc__", None) or "")
        return wrapper

    return decorate


class Flat:
    """``fun`` on flat arguments: calls it with the tree and flattens what it returns into ``out_tree``."""

    __slots__ = ("fun", "in_tree", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: PyTreeDef) -> None:
        self.fun = fun
        self.in_tree = in_tree
        self.out_tree: PyTreeDef | None = None

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        out, self.out_tree = tree_flatten(self.fun(*args, **kwargs))
        for x in out:
            check_output(x, self.fun)
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
        out, self.out_tree = tree_flatten(main)
        for x in out:
            check_output(x, self.fun)
        return out


def check_output(x: Any, fun: Callable[..., Any]) -> None:
    if not is_array_like(x):
        raise TypeError(
            f"{name_of(fun)} must return arrays or scalars (in pytrees) to be transformed, but "
            f"returned a value of type {type(x)}: {x!r}"
        )


def check_arrays(args: Any, what: str) -> None:
    """Raises JAX's TypeError, naming the path of the first leaf that is no array."""
    for path, x in tree_leaves_with_path(args):
        if not is_array_like(x):
            raise TypeError(
                f"Cannot interpret value of type {type(x)} as an abstract array; it does not have a dtype attribute: "
                f"{what}{keystr(path)} is {x!r}. If it is meant as a setting, make it static."
            )


def arg_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], static: Iterable[str] = ()
) -> list[str]:
    """``x``, ``params['w']``: a name for each leaf of the arguments that are not static."""
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {**{f"args[{i}]": a for i, a in enumerate(args)}, **kwargs}
    return [
        name + keystr(path)
        for name, tree in bound.items()
        if name not in static
        for path, _ in tree_leaves_with_path(tree)
    ]


def as_indices(argnums: int | Sequence[int], count: int, what: str = "argnums") -> tuple[int, ...]:
    """Positions as non-negative numbers; ValueError when out of range."""
    out = []
    for i in (argnums,) if isinstance(argnums, int) else tuple(argnums):
        if not -count <= i < count:
            raise ValueError(f"{what} {i} is out of range for a call with {count} positional arguments")
        out.append(i % count)
    return tuple(out)


def shaped(x: Any) -> Any:
    """The aval of an array, or of anything with a shape and a dtype."""
    if not is_array_like(x) and hasattr(x, "shape") and hasattr(x, "dtype"):
        return ShapedArray(tuple(x.shape), dtypes.canonicalize(x.dtype), getattr(x, "weak_type", False))
    return aval_of(x)
