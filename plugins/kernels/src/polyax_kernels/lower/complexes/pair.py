"""``Pair``: what stands for a complex array in a program of real ones, and the primitives that change its form.

In memory a complex array of shape S is a real one of shape S + (2,), its words: that is how it comes and goes. Within a
program it is two arrays of shape S, its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import real_part
from polyax.ir.primitive import Primitive, def_rule
from polyax_kernels.ir.expr import Expr, const
from polyax_kernels.ir.kernel import Stage, Store
from polyax_kernels.lower.lowering import Out, Read, Update
from polyax_kernels.lower.rules.table import kernels

part_p = Primitive("part")
"""Part 0, the real one, or 1 of the words of complex numbers."""
words_p = Primitive("words")
"""The words of the complex numbers that have these parts."""
AFTERWARDS = "programs are rewritten once they have been transformed"
for _p in (part_p, words_p):
    for _rule in ("jvp", "transpose", "batch", "factors"):
        _p.never(_rule, AFTERWARDS)


@def_rule(part_p, "abstract_eval")
def _part(words: ShapedArray, *, index: int) -> list[ShapedArray]:
    return [ShapedArray(words.shape[:-1], words.dtype)]


@def_rule(words_p, "abstract_eval")
def _words(re: ShapedArray, im: ShapedArray) -> list[ShapedArray]:
    return [ShapedArray((*re.shape, 2), re.dtype)]


@kernels("part")
def _read_part(out: Out, words: Read, *, index: int) -> Expr:
    return words(*out.i, const(index))


@kernels("words")
def _write_words(out: Out, re: Read, im: Read) -> Update:
    """Both at once, since they mostly share what they are computed from."""
    axes, i = out.grid(re.shape)
    stores = [Store(out.slot, (*i, const(n)), x(*i)) for n, x in enumerate((re, im))]
    return Update(axes, (Stage((), tuple(stores)),))


Form = Callable[[], Any]


class Pair:
    """A complex value, of which the form that somebody asks for is computed once."""

    __slots__ = ("_later", "_parts", "_words")

    def __init__(
        self, parts: tuple[Any, Any] | None = None, words: Any = None, later: tuple[Form, Form] | None = None
    ) -> None:
        self._parts = parts
        self._words = words
        self._later = later
        """What computes the parts, and what computes the words, if either can be had without the other."""

    @staticmethod
    def of(value: Any) -> Pair:
        """That of a constant."""
        re, im = (np.array(part(value)) for part in (np.real, np.imag))
        return Pair((re, im) if re.shape else (re[()], im[()]))

    @property
    def is_stored(self) -> bool:
        """Whether it is in memory as words, and nobody has asked for its parts."""
        return self._parts is None and self._later is None

    @property
    def is_whole(self) -> bool:
        """Whether its words needn't be put together."""
        return self._words is not None or self._later is not None

    @property
    def parts(self) -> tuple[Any, Any]:
        if self._parts is None and self._later is not None:
            self._parts = self._later[0]()
        if self._parts is None:
            re, im = (part_p.bind1(self._words, index=n) for n in (0, 1))
            self._parts = re, im
        return self._parts

    @property
    def words(self) -> Any:
        if self._words is None and self._later is not None:
            self._words = self._later[1]()
        if self._words is None:
            self._words = words_p.bind1(*self._parts or ())
        return self._words

    @property
    def shape(self) -> tuple[int, ...]:
        return aval_of(self.words).shape[:-1] if self._parts is None else aval_of(self._parts[0]).shape


def is_complex(aval: ShapedArray) -> bool:
    return aval.dtype.kind == "c"


def as_words(aval: ShapedArray) -> ShapedArray:
    """The type of a value of type ``aval`` as it comes and goes."""
    return ShapedArray((*aval.shape, 2), real_part(aval.dtype)) if is_complex(aval) else aval


def as_parts(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of the parts of complex values, and of all others, in order."""
    found: list[ShapedArray] = []
    for a in avals:
        found += [ShapedArray(a.shape, real_part(a.dtype))] * 2 if is_complex(a) else [a]
    return found


def taken_apart(values: Sequence[Any]) -> list[Any]:
    """Values with the parts of complex ones, in order."""
    return [part for x in values for part in (x.parts if isinstance(x, Pair) else (x,))]


def put_together(parts: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """The values of types ``avals`` that have been taken apart."""
    rest = iter(parts)
    return [Pair((next(rest), next(rest))) if is_complex(a) else next(rest) for a in avals]
