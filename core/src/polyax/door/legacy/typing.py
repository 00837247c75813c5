"""``jax._src.typing``: names of annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.runtime.arrays.array import Array as Array
from polyax.typing import ArrayLike as ArrayLike
from polyax.typing import DTypeLike as DTypeLike

Shape = Sequence[int]
DimSize = int
DuckTypedArray = Any
