"""Traces and tracers. A trace gives primitives a meaning; a tracer is a value that belongs to one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes, errors
from polyax.ir.aval import ShapedArray, Typed
from polyax.ir.primitive import Primitive
from polyax.ir.source import Source, user_source


class Trace:
    """An interpretation of primitives. ``alive`` until its transformation ends; then its tracers are leaked."""

    __slots__ = ("__weakref__", "alive", "inner", "name")

    def __init__(self, name: str = "") -> None:
        self.alive = True
        self.inner: dict[Any, Any] = {}
        """Programs of functions that close over values of this trace, by function and kind of call."""
        self.name = name

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        """The list of results. Traces of libraries that are written for JAX have ``process_primitive`` instead."""
        made = self.process_primitive(primitive, args, params)
        return made if primitive.multiple_results else [made]

    def process_primitive(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The results, or the only one."""
        raise NotImplementedError(f"{self!r} has neither process nor process_primitive")

    def full_raise(self, x: Any) -> Any:
        """``x``: JAX has this name for what it no longer does."""
        return x

    def invalidate(self) -> None:
        self.alive = False
        self.inner.clear()

    def __repr__(self) -> str:
        return type(self).__name__


class Tracer(Typed):
    """A stand-in for an array: it has a type, and no value."""

    __slots__ = ("__weakref__", "_trace", "aval")
    __array_priority__ = 1000

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self._trace = trace
        self.aval = aval

    def origin(self) -> str:
        """Where the value comes from, for error texts."""
        return ""

    def made_at(self) -> str:
        """The user's line that computed it, for error texts."""
        return ""

    def to_static(self) -> str:
        """The remedy of giving it a value, where an argument that it depends on could be static."""
        return ""

    def known(self) -> Any:
        """Its value, where somebody can tell it; else None."""
        return None

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.TracerArrayConversionError(
            f"The numpy.ndarray conversion method __array__() was called on traced array with shape "
            f"{self.aval.str_short()}{self.origin()}\nUse polyax.numpy instead of numpy inside transformed "
            "functions, or move the NumPy computation outside of them."
        )

    def __bool__(self) -> bool:
        if not self.aval.size:
            raise ValueError(
                "The truth value of an empty array is ambiguous. "
                "Use `array.size > 0` to check that an array is not empty."
            )
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all(): "
                f"the array is {self.aval.str_short()}"
            )
        if (value := self.known()) is not None:
            return bool(value)
        raise errors.TracerBoolConversionError(
            f"Attempted boolean conversion of traced array with shape {self.aval.str_short()}."
            f"{self.origin()}\nUse polyax.numpy.where or polyax.lax.cond for control flow that depends on values."
            f"{self.to_static()}"
        )

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.is_integer(self.aval.dtype):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        if (value := self.known()) is not None:
            return operator.index(value)
        raise errors.TracerIntegerConversionError(
            f"The __index__() method was called on traced array with shape {self.aval.str_short()}.{self.origin()}\n"
            f"Index with polyax.numpy operations.{self.to_static()}"
        )

    def __int__(self) -> int:
        return self._concretize("int", int)

    def __float__(self) -> float:
        return self._concretize("float", float)

    def __complex__(self) -> complex:
        return self._concretize("complex", complex)

    def _concretize(self, name: str, convert: Callable[[Any], Any]) -> Any:
        if self.aval.shape:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.aval.ndim}")
        return self._converted(
            convert,
            f"The problem arose with the `{name}` function. If trying to convert the data type of a value, try using "
            f"`x.astype({name})` instead.",
        )

    def _converted(self, convert: Callable[[Any], Any], told: str) -> Any:
        if (value := self.known()) is not None:
            return convert(value)
        raise errors.ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: traced array with shape "
            f"{self.aval.str_short()}\n{told}{self.origin()}"
        )

    def item(self, *args: int) -> Any:
        told = "This occurred in the item() method of an array. Outside of what is transformed it gives the number."
        return self._converted(lambda value: np.asarray(value).item(*args), told)

    def tolist(self) -> Any:
        told = f"The tolist() method was called on traced array with shape {self.aval.str_short()}."
        return self._converted(lambda value: np.asarray(value).tolist(), told)

    def tobytes(self, order: Any = "C") -> bytes:
        told = f"The tobytes() method was called on traced array with shape {self.aval.str_short()}."
        return self._converted(lambda value: np.asarray(value, self.aval.dtype).tobytes(order), told)

    def __dlpack__(self, **kwargs: Any) -> Any:
        told = f"The __dlpack__() method was called on traced array with shape {self.aval.str_short()}."
        return self._converted(lambda value: value.__dlpack__(**kwargs), told)

    def block_until_ready(self) -> Tracer:
        return self

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__!r}")

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}>with<{self._trace!r}>"  # as the source documents print it; newer JAX differs


def leaked(x: Tracer, source: Source | None = None) -> errors.UnexpectedTracerError:
    """The error about a tracer that outlived its transformation, or that is used outside of it."""
    where = user_source()
    at = f", at {where}" if where else ""
    what = f"with type {x.aval.str_short()} wrapped in a {type(x).__name__}"
    if x._trace.alive:
        return errors.UnexpectedTracerError(
            f"Encountered an unexpected tracer. An intermediate value {what} was used where that transformation "
            f"doesn't see it{at}.{x.origin()}\nA function with rules of its own (custom_jvp, custom_vjp) can't be "
            "differentiated with respect to values that it closes over: pass them as arguments, and extend the rules "
            "by them."
        )
    origin = getattr(x._trace, "origin", None)
    leak = origin and f" The function being traced when the value leaked was {origin} traced for {origin.traced_for}."
    made = x.made_at()
    return errors.UnexpectedTracerError(
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference "
        f"to an intermediate value {what} to escape the scope of the transformation: it was used after the function "
        f"had ended{at}.{leak or ''}{f' The leaked intermediate value was created on line {made}.' if made else ''}\n"
        "Functions that are transformed must return their results: none may be kept in global state, an attribute or a "
        "list."
    )


def check_alive(x: Tracer) -> None:
    if not x._trace.alive:
        raise leaked(x)
