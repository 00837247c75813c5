"""``jax.experimental.hijax``: names for types of one's own in programs, which polyax's programs don't have.

Libraries derive from these classes when they are imported, and use them only where they are told to. Using one is an
error that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from polyax.door.legacy.effects import control_flow_allowed_effects as control_flow_allowed_effects
from polyax.interpreters.ad import Zero as Zero
from polyax.interpreters.ad import instantiate_zeros as instantiate_zeros
from polyax.interpreters.ad import is_undefined_primal as is_undefined_primal
from polyax.ir.aval import ShapedArray as ShapedArray
from polyax.ref import AbstractRef as AbstractRef

AbstractValue = ShapedArray


class HiType:
    """A type of one's own."""


class MutableHiType(HiType):
    """A type of one's own, of things that change."""


class HiPrimitive:
    """An operation on values of such types."""

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Refused.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            f"{self.name!r} is an operation on types of its library's own (jax.experimental.hijax), which programs of "
            "polyax don't have: see docs/libraries.md"
        )


class VJPHiPrimitive(HiPrimitive):
    """An operation with a derivative of its own."""


class AvalQDD(NamedTuple):
    """A type, and what changes of it."""

    aval: Any
    qdd: Any


AvalMutableQDD = AvalQDD


class aval_method:
    """A method of tracers of a type."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:
    """A property of tracers of a type."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


_types: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Notes a type; values of it can't enter programs."""
    _types[val_cls] = typeof_fn
