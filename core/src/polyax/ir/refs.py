"""Types and effects of references to arrays that change. Must not know how they are read or written.

Nothing here costs anything as long as there are no such references: ``met.any`` tells whether there ever was one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effect, Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive


class RefEffect(Effect):
    """What an equation does to a reference."""


class ReadEffect(RefEffect):
    """It reads what a reference holds."""

    def __init__(self) -> None:
        super().__init__("Read")


class WriteEffect(RefEffect):
    """It writes to it."""

    def __init__(self) -> None:
        super().__init__("Write")


class AccumEffect(RefEffect):
    """It adds to it."""

    def __init__(self) -> None:
        super().__init__("Accum")


class LifeEffect(RefEffect):
    """It makes a reference, or ends its life."""

    def __init__(self) -> None:
        super().__init__("Life")


READS: Effects = frozenset({ReadEffect()})
WRITES: Effects = frozenset({WriteEffect()})
SWAPS: Effects = READS | WRITES
ADDS: Effects = frozenset({AccumEffect()})
LIVES: Effects = frozenset({LifeEffect()})


class _Met:
    """Whether a reference was ever made in this process."""

    any = False


met = _Met()


class AbstractRef(ShapedArray):
    """The type of a reference to an array of type ``inner_aval``.

    >>> import numpy as np
    >>> AbstractRef(ShapedArray((3,), np.dtype("float32")))
    Ref{float32[3]}
    """

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None) -> None:
        inner = inner_aval
        super().__init__(inner.shape, inner.dtype, inner.weak_type, inner.told, inner.vma, inner.sums)
        self._hash = hash((AbstractRef, inner))
        self.inner_aval = inner
        self.memory_space = memory_space
        self.kind = kind
        met.any = True

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractRef and self.inner_aval == other.inner_aval

    def update(self, **changes: Any) -> AbstractRef:
        return AbstractRef(self.inner_aval.update(**changes), self.memory_space, self.kind)

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()

    __str__ = __repr__


def is_ref(x: Any) -> bool:
    """Whether a value is a reference; of a type, whether it is that of one."""
    return type(getattr(x, "aval", x)) is AbstractRef


def touches_refs(effects: Effects) -> bool:
    """Whether these are effects on references, among others."""
    return any(isinstance(e, RefEffect) for e in effects)


def has_refs(program: ClosedJaxpr) -> bool:
    """Whether a program makes, takes or closes over references."""
    return any(map(is_ref, (*program.jaxpr.invars, *program.jaxpr.constvars))) or touches_refs(program.effects)


def holds_refs(primitive: Primitive, params: dict[str, Any]) -> bool:
    """Whether programs of an equation have to do with references, and it doesn't meet these itself."""
    if primitive.sub_jaxprs is None or primitive.takes_refs:
        return False
    return any(p is not None and has_refs(p) for p in primitive.sub_jaxprs(**params))


def refuse_refs(primitive: Primitive, avals: Iterable[ShapedArray]) -> None:
    """Raises ValueError if an operand is a reference and the primitive is for arrays."""
    if primitive.takes_refs or primitive.higher_order:
        return
    for aval in avals:
        if type(aval) is AbstractRef:
            raise ValueError(
                f"Attempting to pass a Ref {aval} to a primitive: {primitive} -- did you forget to unpack ([...]) the "
                "ref?"
            )
