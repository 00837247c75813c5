"""``accuracy=``: how exact an elementwise function has to be."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

__all__ = ["AccuracyMode", "Tolerance"]


class AccuracyMode(enum.Enum):
    """The best accuracy that a device offers, or its usual one; here they are the same."""

    HIGHEST = 1
    DEFAULT = 2

    @property
    def is_accuracy(self) -> bool:
        return True


@dataclass(frozen=True)
class Tolerance:
    """How large an error may be: absolute, relative, or in units in the last place.

    Raises:
      ValueError: one of them is negative.
    """

    is_accuracy: ClassVar[bool] = True
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0:
            raise ValueError(f"Tolerances must be non-negative, got {self}.")
