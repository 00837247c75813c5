"""The table of scalar operations: what each computes for all inputs, what it costs, and how it is made of others.

Semantics are total and XLA's: integer division by zero is -1 and its remainder the dividend, shifts past the width give
0 (or the sign), casts saturate and take NaN to 0, NaN wins in min and max, -0 < +0 there. The table knows no language:
emitters take from it which operations exist, and tests hold them to its NumPy functions, those of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from polyax.ir.dtypes import BOOL, FLOATS, INTS, UINTS
from polyax.reference import rules_elementwise as np_
from polyax.reference import rules_special as special
from polyax_kernels.ir import decompositions
from polyax_kernels.ir.expr import COMPARISONS, Expr

WHOLE = INTS | UINTS
NUMBERS = WHOLE | FLOATS
BITS = WHOLE | BOOL


@dataclass(frozen=True)
class Scalar:
    """One operation. Operands have one dtype of ``dtypes`` (``select`` has a bool before them)."""

    name: str
    arity: int
    dtypes: frozenset[np.dtype]
    numpy: Callable[..., np.ndarray]
    """The definition, on arrays of one dtype; not for float16 and bfloat16, which are computed in float32."""
    cost: int = 1
    """In scalar operations after expansion: what the size limit of kernels counts."""
    decompose: Callable[..., Expr] | None = None
    """The same in other operations of the table, for emitters that lack it."""

    def result(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(bool) if self.name in COMPARISONS else dtype


TABLE: dict[str, Scalar] = {}


def _rounds_down(rest: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where a quotient with this ``rest`` is rounded down, not to zero; by zero nothing is."""
    return (rest != 0) & (y != 0) & ((rest < 0) != (y < 0))


def _floordiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np_.div(x, y) - _rounds_down(np_.rem(x, y), y).astype(x.dtype)


def _mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sign is the divisor's."""
    rest = np_.rem(x, y)
    return np.where(_rounds_down(rest, y), rest + y, rest)


def _nextafter(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``y`` itself where they are equal, be it another zero."""
    return np.where(x == y, y, np.nextafter(x, y))


def _define(
    arity: int, dtypes: Iterable[np.dtype], functions: dict[str, Callable[..., Any]], cost: int = 1, **costs: int
) -> None:
    for name, fun in functions.items():
        TABLE[name] = Scalar(name, arity, frozenset(dtypes), fun, costs.get(name, cost), decompositions.TABLE.get(name))


_define(
    2, NUMBERS, {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np_.div, "rem": np_.rem}, div=4, rem=6
)
_define(2, NUMBERS | BOOL, {"max": np_.max, "min": np_.min})
_define(2, WHOLE, {"floordiv": _floordiv, "mod": _mod}, 4)
_define(1, NUMBERS, {"neg": np.negative, "abs": np.abs, "sign": np_.sign, "square": np.square})
_define(2, BITS, {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor})
_define(1, BITS, {"not": np.invert})
_define(2, WHOLE, {n: getattr(np_, n) for n in ("shift_left", "shift_right_logical", "shift_right_arithmetic")}, 2)
_define(1, WHOLE, {"clz": np_.clz, "population_count": np_.population_count}, 2)
_define(2, NUMBERS | BOOL, {"eq": np.equal, "ne": np.not_equal})
_define(2, NUMBERS | BOOL, {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal})
_define(3, NUMBERS | BOOL, {"select": np.where})
_define(3, NUMBERS, {"clamp": lambda low, x, high: np_.min(np_.max(low, x), high)}, 2)
_define(1, FLOATS, {"is_finite": np.isfinite, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc})
_define(1, FLOATS, {"round": partial(np_.round, rounding_method=0), "round_even": np.rint}, 2)
_define(1, FLOATS, {"sqrt": np.sqrt, "rsqrt": np_.rsqrt, "logistic": np_.logistic}, 4, logistic=15)
_define(1, FLOATS, {n: getattr(np, n) for n in ("exp", "exp2", "log", "log1p", "expm1", "cbrt")}, 12)
_define(1, FLOATS, {n: getattr(np, n) for n in ("sin", "cos", "tan")}, 15)
_define(1, FLOATS, {n: getattr(np, n) for n in ("sinh", "cosh", "tanh")}, 20)
_define(1, FLOATS, {f"a{n}": getattr(np, f"arc{n}") for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}, 20)
_define(2, FLOATS, {"atan2": np.arctan2, "pow": np.power, "nextafter": _nextafter}, 25, nextafter=12)
_define(1, FLOATS, {n: getattr(special, n) for n in ("erf", "erfc", "erf_inv", "lgamma", "digamma")}, 30)


def cost(x: Expr) -> int:
    """What one evaluation of the node itself costs, in scalar operations; its operands not counted."""
    return TABLE[x.attr].cost if x.kind == "op" else int(x.kind in ("cast", "load", "fold"))


def evaluate(name: str, *args: Any) -> np.ndarray:
    """The operation on arrays, by the table.

    >>> evaluate("div", np.int32(7), np.int32(0))
    array(-1, dtype=int32)
    """
    arrays = [np.asarray(a) for a in args]
    with np.errstate(all="ignore"):
        return np.asarray(TABLE[name].numpy(*arrays), TABLE[name].result(arrays[-1].dtype))


def cast(x: Any, target: np.dtype) -> np.ndarray:
    """``x`` as ``target``, as ``Emitter.cast`` defines it.

    >>> cast(np.float32(1e10), np.dtype("int32"))
    array(2147483647, dtype=int32)
    """
    with np.errstate(all="ignore"):
        return np_.convert_element_type(x, new_dtype=np.dtype(target))
