"""``jax._src.literals``: classes of constants in programs. polyax's programs hold arrays, so nothing is of these unless
a library makes one."""

from __future__ import annotations

from typing import Any, Self

from polyax.ir.aval import ShapedArray


class TypedNdArray:
    """A constant of NumPy that knows its weak type, in JAX."""


class _TypedScalar:
    """A number of Python with the type, a weak one, that it has in programs."""

    dtype: Any
    aval: ShapedArray

    def __new__(cls, value: Any, dtype: Any) -> Self:
        made = super().__new__(cls, value)  # pyright: ignore[reportCallIssue]
        made.dtype = dtype
        made.aval = ShapedArray((), dtype, weak_type=True)
        return made

    def __getnewargs__(self) -> tuple[Any, Any]:
        (base,) = type(self).__bases__[1:]
        return base(self), self.dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__getnewargs__()[0]!r}, dtype={self.dtype.name})"


class TypedInt(_TypedScalar, int):
    """A Python integer that knows its dtype."""


class TypedFloat(_TypedScalar, float):
    """A Python float that knows its dtype."""


class TypedComplex(_TypedScalar, complex):
    """A complex number of Python that knows its dtype."""


LiteralArray = TypedNdArray
