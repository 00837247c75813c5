"""What ``check_jaxpr`` asks of equations that hold programs: of their parameters, and of types around and inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, same_type
from polyax.ir.errors import JaxprTypeError
from polyax.ir.jaxpr import ClosedJaxpr


def expect(holds: bool, primitive: str, name: str, value: Any, required: str) -> None:
    """Raises ``JaxprTypeError`` about the parameter ``name`` unless it ``holds``."""
    if not holds:
        text = str(value)
        between = "\n" if "\n" in text else " "
        of = type(value).__name__
        raise JaxprTypeError(f"invalid {primitive} param {name} of type {of}, {required} required:{between}{text}")


def expect_count(primitive: str, name: str, value: Any) -> None:
    expect(type(value) is int and value >= 0, primitive, name, value, "non-negative int")


def expect_program(primitive: str, name: str, value: Any) -> None:
    expect(type(value) is ClosedJaxpr, primitive, name, value, "ClosedJaxpr")


def expect_types(wanted: Sequence[ShapedArray], given: Sequence[ShapedArray], *texts: str) -> None:
    """Raises ``JaxprTypeError`` unless both are the same types; the texts stand before either."""
    if len(wanted) != len(given) or not all(map(same_type, wanted, given)):
        said = (f"{text}\n{_short(avals)}" for text, avals in zip(texts, (wanted, given), strict=True))
        raise JaxprTypeError("\n".join(said))


def _short(avals: Sequence[ShapedArray]) -> str:
    return " ".join(a.str_short(True) for a in avals)
