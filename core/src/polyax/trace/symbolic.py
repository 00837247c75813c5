"""Symbolic values that rules exchange instead of arrays: known zeros, and inputs that a transpose solves for."""

from __future__ import annotations

from typing import Any

from polyax.ir.aval import ShapedArray, aval_of


class Zero:
    """A tangent or cotangent known to be zero; no array is made for it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def of(x: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(aval_of(x).to_tangent_aval())

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefPrimal:
    """A linear input of a transpose rule: its type is known, its value is what is being solved for."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"A value of type {self.aval} for which a transposition solves is needed for the result: the function "
            "is not linear in it."
        )

    def __repr__(self) -> str:
        return f"UndefPrimal({self.aval})"


def is_undef(x: Any) -> bool:
    return type(x) is UndefPrimal


def is_zero(x: Any) -> bool:
    return type(x) is Zero
