"""``Ref``: a reference to an array that changes. Outside of programs it holds the array; inside, tracers stand for it.

What indexing does is filled in by ``access``.
"""

from __future__ import annotations

from typing import Any

from polyax.ir.aval import Typed, aval_of
from polyax.ir.primitive import ambient
from polyax.ir.refs import AbstractRef, is_ref
from polyax.ops.basis import convert
from polyax.ops.convert import copy


class _RefType(type):
    """Tracers of references are references to ``isinstance``, as in JAX."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Ref and isinstance(instance, Typed) and is_ref(instance)
        )


class Ref(Typed, metaclass=_RefType):
    """A reference to an array that changes, made by ``new_ref``: ``ref[...]`` reads it, ``ref[...] = x`` writes to it.

    >>> import polyax
    >>> ref = polyax.new_ref(polyax.numpy.zeros(3))
    >>> ref[1] = 2.0
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_refs", "_shared", "aval")
    aval: AbstractRef

    def __init__(self, aval: AbstractRef, refs: Any) -> None:
        self.aval = aval  # pyright: ignore[reportIncompatibleVariableOverride]
        self._refs = refs
        self._shared = True

    @classmethod
    def holding(cls, x: Any, kind: Any = None) -> Ref:
        """A reference that holds a copy of ``x``."""
        aval = aval_of(x)
        ref = cls(AbstractRef(aval, kind=kind), _copied(convert(x, aval.dtype, aval.weak_type)))
        ref._shared = False
        return ref

    def held(self) -> Any:
        """What it holds; from now on somebody else has it as well, so that it can't be written over in place."""
        self._shared = True
        return self._refs

    def hold(self, x: Any, shared: bool = True) -> None:
        """Takes ``x`` instead; ``shared``: whether others have it as well."""
        self._refs = x
        self._shared = shared

    def take(self, x: Any, shared: bool = True) -> None:
        """Takes the result of a program instead, as strongly typed as what is written."""
        self.hold(convert(x, x.dtype, self.aval.weak_type), shared)

    def own(self) -> Any:
        """What it holds, which nobody else has, so that it can be given away to be written over."""
        if self._shared:
            self.hold(_copied(self._refs), shared=False)
        return self._refs

    @property
    def sharding(self) -> Any:
        return self._refs.sharding

    @property
    def committed(self) -> bool:
        return True

    def unsafe_buffer_pointer(self) -> int:
        """The address of what it holds."""
        return self._refs.unsafe_buffer_pointer()

    def block_until_ready(self) -> Ref:
        self._refs.block_until_ready()
        return self

    def __repr__(self) -> str:
        return "Ref" + repr(_copied(self._refs)).removeprefix("Array")  # what is shown can't be written over

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __copy__(self) -> Ref:
        return Ref.holding(self._refs, self.aval.kind)

    def __deepcopy__(self, memo: Any) -> Ref:
        return self.__copy__()


def _copied(x: Any) -> Any:
    """In programs, values need no copies."""
    return copy(x) if ambient.trace is None else x


class Cell(Ref):
    """What stands for a reference while a program is written anew without references: it holds the value of now."""

    __slots__ = ("ended",)

    def __init__(self, aval: AbstractRef, value: Any) -> None:
        super().__init__(aval, value)
        self.ended = False
