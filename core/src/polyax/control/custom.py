"""What functions with derivative rules of their own share: arguments that aren't differentiated, flattening, checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.errors import UnexpectedTracerError
from polyax.trace.flat import Flat, check_callable, name_of
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_flatten


class SymbolicZero:
    """What a rule that asks for ``symbolic_zeros`` gets in place of a tangent or cotangent that is zero."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


class Signature:
    """A function whose arguments at ``nondiff`` positions belong to the rule instead of being differentiated."""

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int], nondiff_argnames: Sequence[str]
    ) -> None:
        check_callable(fun)
        self.fun = fun
        self.name = name_of(fun)
        try:
            self.signature = inspect.signature(fun)
        except (TypeError, ValueError):
            self.signature = None
        names = list(self.signature.parameters) if self.signature else []
        self.nondiff = tuple(sorted({*nondiff_argnums, *(names.index(n) for n in nondiff_argnames)}))

    def positional(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments, defaults included, by position.

        Raises:
          TypeError: they don't fit the function, or some can only be given by name.
        """
        if self.signature is None:
            if kwargs:
                raise TypeError(f"{self.name} has no signature, so its arguments must be given by position")
            return tuple(args)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"keyword arguments could not be resolved to positions for {self.name}: {list(bound.kwargs)}"
            )
        return bound.args

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The arguments that aren't differentiated, and the others."""
        nondiff = [n % len(args) for n in self.nondiff]
        return [args[n] for n in nondiff], [x for n, x in enumerate(args) if n not in nondiff]

    def flat(self, args: Sequence[Any]) -> tuple[Flat, list[Any], list[Any]]:
        """The function of the leaves of what is differentiated, these leaves, and the other arguments."""
        nondiff, dynamic = self.split(args)
        positions = [n % len(args) for n in self.nondiff]
        leaves, tree = tree_flatten((tuple(dynamic), {}))

        def fun(*xs: Any) -> Any:
            values = list(xs)
            for n, x in zip(positions, nondiff, strict=True):
                values.insert(n, x)
            return self.fun(*values)

        fun.__name__ = self.name
        return Flat(fun, tree), leaves, nondiff


def refuse_closed_over(kind: str, tangents: Sequence[Any]) -> None:
    """Values that a function closes over have no place in its rule."""
    if any(type(t) is not Zero for t in tangents):
        raise UnexpectedTracerError(
            f"Detected differentiation of a {kind} function with respect to a closed-over value. That isn't supported "
            f"because the rule only says how to differentiate the {kind} function with respect to its arguments. Pass "
            "the closed-over value as an argument, and extend the rule by it."
        )


def tangent_type(x: Any) -> ShapedArray:
    """The type of tangents and cotangents of a value."""
    return aval_of(x).to_tangent_aval()
