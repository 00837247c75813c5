"""Building blocks of elementary functions, over values of float32 or float64. Knows no function's coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

INF = float("inf")
NAN = float("nan")
LEAST = {"float": 149, "double": 1074}  # the least number is two to this power, inverted
MAGIC = {"float": 1.5 * 2**23, "double": 1.5 * 2**52}  # adding it rounds to an integer, held in the low bits


class Value(Protocol):
    """A number in code that is being written: operators and the methods of its builder ``b`` write more of it.

    ``type`` is ``float``, ``double``, ``i32``, ``i64`` or ``i1``. Python numbers take the other operand's type.
    Integers are signed and wrap; ``>>`` keeps the sign. Comparisons give an ``i1``, false for NaN but for ``!=``.
    """

    @property
    def b(self) -> Any:
        """``select(condition, x, y)``; by LLVM's names ``convert(operation, x, type)`` and ``intrinsic(name, *xs)``;
        ``scales``, and if that holds ``scaled(x, n)``: x * 2^n, rounded once, in an instruction, and
        ``scales_by(n)``: whether that ``n`` may be a float; if it writes branches, ``rarely(condition, then, x)``:
        ``then()`` where a condition holds that hardly ever does, else ``x``."""
        ...

    @property
    def type(self) -> str: ...
    def like(self, x: Any, /) -> Any:
        """``x`` as a value of this type."""
        ...

    def compare(self, relation: str, other: Any, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = __add__
    __invert__ = __neg__


class Operators:
    """Python's operators of a ``Value``, in terms of ``compare(relation, other)`` and ``infix(sign, other, swap)``,
    which writes ``self sign other``, or the other way round."""

    def infix(self, sign: str, other: Any, swap: bool = False) -> Any:
        raise NotImplementedError

    def compare(self, relation: str, other: Any) -> Any:
        raise NotImplementedError

    __add__ = __radd__ = lambda self, other: self.infix("+", other)
    __mul__ = __rmul__ = lambda self, other: self.infix("*", other)
    __sub__ = lambda self, other: self.infix("-", other)
    __rsub__ = lambda self, other: self.infix("-", other, swap=True)
    __truediv__ = lambda self, other: self.infix("/", other)
    __rtruediv__ = lambda self, other: self.infix("/", other, swap=True)
    __and__ = lambda self, other: self.infix("&", other)
    __or__ = lambda self, other: self.infix("|", other)
    __xor__ = lambda self, other: self.infix("^", other)
    __lshift__ = lambda self, other: self.infix("<<", other)
    __rshift__ = lambda self, other: self.infix(">>", other)
    __lt__ = lambda self, other: self.compare("<", other)
    __le__ = lambda self, other: self.compare("<=", other)
    __gt__ = lambda self, other: self.compare(">", other)
    __ge__ = lambda self, other: self.compare(">=", other)


Function = Callable[..., Any]
V = TypeVar("V", bound=Value)


def fma(x: V, y: V | float, z: V | float) -> V:
    return x.b.intrinsic("fma", x, x.like(y), x.like(z))


def poly(x: V, *coefficients: float) -> V:
    """Horner's rule; the constant comes first."""
    total = x.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = fma(x, total, c)
    return total


def bits(x: V) -> V:
    return x.b.convert("bitcast", x, "i32" if x.type == "float" else "i64")


def from_bits(n: V) -> V:
    return n.b.convert("bitcast", n, "float" if n.type == "i32" else "double")


def absolute(x: V) -> V:
    return x.b.intrinsic("fabs", x)


def with_sign(x: V, sign: V) -> V:
    return x.b.intrinsic("copysign", x, sign)


def select(condition: V, x: V | float, y: V | float) -> V:
    return condition.b.select(condition, x, y)


def nearest(x: V, scale: float) -> tuple[V, V]:
    """``x * scale`` rounded to an integer, as a float and in the low bits of an integer; |result| < 2^21."""
    magic = MAGIC[x.type]
    shifted = fma(x, scale, magic)
    return shifted - magic, bits(shifted)


def power_of_two(n: V) -> V:
    """2^n as a float, for an exponent in the normal range; only the low bits of ``n`` count."""
    shift, bias = (23, 127) if n.type == "i32" else (52, 1023)
    return from_bits((n + bias) << shift)


def scale(x: V, n: V, whole: V | None = None) -> V:
    """``x * 2^n``, in two steps where there is no instruction for it, so that overflow and denormals come out right.
    ``n`` as ``nearest`` gives it in the low bits of an integer, and ``whole`` as a float."""
    if x.b.scales and whole is not None and x.b.scales_by(whole):
        return x.b.scaled(x, whole)
    low = n & 0xFFF
    signed = (low ^ 0x800) - 0x800
    if x.b.scales:
        return x.b.scaled(x, signed)
    half = signed >> 1
    return x * power_of_two(half) * power_of_two(signed - half)


def branches(b: Any) -> bool:
    """Whether a builder writes branches."""
    return hasattr(b, "rarely")


def deepened(type: str, deep: V, exponents: Sequence[V], scaled: Callable[..., V]) -> V:
    """``scaled(*exponents)``, subnormal in ``deep`` lanes: there the bits count how often the least number is in it.
    Some processors take a hundred times as long for an operation that gives a subnormal number, or finds that less than
    one is left, and masks of attention and costs of transport make such exponents."""
    b, least, whole = deep.b, LEAST[type], "i32" if type == "float" else "i64"
    if not branches(b):
        return scaled(*exponents)
    y = scaled(*[b.rarely(deep, lambda n=n: n + n.like(least), n) for n in exponents])
    return b.rarely(deep, lambda: from_bits(b.convert("fptosi", y + 0.5, whole)), y)


def split(x: V) -> tuple[V, V]:
    """``k`` (a float) and ``m`` in [sqrt(1/2), sqrt(2)) with ``x = m 2^k``, for finite positive ``x``."""
    single = x.type == "float"
    shift, small = (23, 2.0**-126) if single else (52, 2.0**-1022)
    tiny = x < small
    n = bits(select(tiny, x * 2.0**shift, x))
    root = 0x3F3504F3 if single else 0x3FE6A09E667F3BCD
    k = (n - root) >> shift
    m = from_bits(n - (k << shift))
    k = x.b.convert("sitofp", k, x.type)
    return k - select(tiny, float(shift), x.like(0.0)), m


def to64(f: Function) -> Function:
    """A float32 function that computes in float64."""

    def wrapped(*xs: V) -> V:
        b = xs[0].b
        return b.convert("fptrunc", f(*(b.convert("fpext", x, "double") for x in xs)), "float")

    return wrapped


def clamp(x: V, low: float, high: float) -> V:
    """NaN stays NaN."""
    least = select(x < low, low, x)
    return select(least > high, high, least)
