"""How exactly products are computed: what the operands are rounded to, and what sums are kept in."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes
from polyax.ir.config import config

__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "Precision"]


class Precision(enum.Enum):
    """How much accuracy a product may trade for speed. Names may stand for them, as in ``Precision("high")``."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _NAMES.get(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_NAMES: dict[object, Precision] = {
    "default": Precision.DEFAULT, "bfloat16": Precision.DEFAULT, "fastest": Precision.DEFAULT,
    "high": Precision.HIGH, "tensorfloat32": Precision.HIGH, "bfloat16_3x": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
}  # fmt: skip


class DotAlgorithm(NamedTuple):
    """A way of computing products, for ``precision=``.

    Attributes:
      lhs_precision_type, rhs_precision_type: the types that operands are rounded to.
      accumulation_type: the type of the sums.
      lhs_component_count, rhs_component_count: into how many parts of that type each number is split.
      num_primitive_operations: how many products of parts are summed.
      allow_imprecise_accumulation: whether sums may lose some bits.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    @property
    def precision(self) -> Precision:
        """The least precision that computes no worse than this asks for."""
        width = min(_digits(t) for t in (self.lhs_precision_type, self.rhs_precision_type))
        digits = width * min(self.lhs_component_count, self.rhs_component_count)
        return Precision.DEFAULT if digits <= 8 else Precision.HIGH if digits <= 16 else Precision.HIGHEST


def _digits(dtype: Any) -> int:
    """Binary digits of a fraction, and the one before it."""
    return dtypes.finfo(np.dtype(dtype)).nmant + 1


class DotAlgorithmPreset(enum.Enum):
    """Well-known ways of computing products, named after the types of operands and sums.

    A device that has no such way computes no worse, so programs run on all of them; JAX refuses some on processors.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    @property
    def precision(self) -> Precision:
        """The least precision that computes no worse than this asks for."""
        if self.name.startswith(("F32", "F64")) or self.name.endswith(("X6", "X9")):
            return Precision.HIGHEST
        return Precision.HIGH if self.name.startswith("TF32") or self.name.endswith("X3") else Precision.DEFAULT

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


def canonicalize_precision(precision: Any) -> tuple[Precision, Precision] | None:
    """None, a ``Precision``, an algorithm, the name of one, or a pair of precisions, as None or a pair.

    Raises:
      ValueError: no such precision.
    """
    precision = config.default_matmul_precision if precision is None else precision
    if precision is None:
        return None
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        precision = DotAlgorithmPreset[precision]
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        precision = precision.precision
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    found = [p if isinstance(p, Precision) else _NAMES.get(p) for p in pair]
    if len(found) != 2 or None in found:
        raise ValueError(
            f"Unsupported precision {precision!r}; expected one or two of {', '.join(map(str, _NAMES))}, or one of "
            f"{', '.join(DotAlgorithmPreset.__members__)}"
        )
    return tuple(found)  # type: ignore[return-value]
