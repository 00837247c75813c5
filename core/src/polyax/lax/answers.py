"""Small answers about types and shapes, and taking slices by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of, is_array_like
from polyax.ir.dims import SymbolicDim
from polyax.ops.basis import convert, full, reshape
from polyax.ops.compare import lt
from polyax.ops.conv_shapes import ConvDimensionNumbers
from polyax.ops.gather import GatherDimensionNumbers, gather
from polyax.ops.joining import concatenate
from polyax.ops.precision import DotAlgorithm, DotAlgorithmPreset, Precision

__all__ = ["ConvGeneralDilatedDimensionNumbers", "PrecisionLike", "dtype", "index_take", "shape_as_value"]

PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)
"""What a ``precision=`` may be."""

ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
"""What ``dimension_numbers=`` of a convolution may be."""


def dtype(x: Any) -> Any:
    """The dtype of an array, a number, or a dtype in any spelling.

    Raises:
      TypeError: ``x`` is none of these.

    >>> dtype(1.5)
    dtype('float32')
    """
    if is_array_like(x) and not isinstance(x, type):
        return aval_of(x).dtype
    try:
        return dtypes.canonicalize(x)
    except TypeError:
        raise TypeError(f"Cannot determine dtype of {x}") from None


def shape_as_value(shape: Sequence[Any]) -> Any:
    """A shape as an array of integers; symbolic dimensions are computed.

    >>> shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    kind = dtypes.default_int()
    dims = [reshape(convert(_as_value(n), kind), (1,)) for n in shape]
    return concatenate(dims, 0) if dims else full((0,), 0, kind)


def _as_value(dim: Any) -> Any:
    return dim.__jax_array__() if isinstance(dim, SymbolicDim) else int(dim)


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """Slices of ``src`` at the positions that ``idxs`` give along ``axes``, which are taken away; clamped into range.

    Args:
      idxs: an array of integers for each of ``axes``, all of one dimension and one length.

    Returns:
      An array whose first dimension goes over the positions, the others over what is left of ``src``.

    Raises:
      ValueError: there isn't an array of indices for each axis.

    >>> import numpy as np
    >>> index_take(np.arange(6).reshape(2, 3), (np.array([0, 2]),), (1,)).tolist()
    [[0, 3], [2, 5]]
    """
    if len(idxs) != len(axes):
        raise ValueError(f"index_take needs an array of indices for each axis, got {len(idxs)} for axes {tuple(axes)}")
    shape = np.shape(src)
    columns = [_from_end(x, shape[a]) for x, a in zip(idxs, axes, strict=True)]
    indices = concatenate([reshape(x, (*np.shape(x), 1)) for x in columns], 1)
    numbers = GatherDimensionNumbers(tuple(range(1, 1 + len(shape) - len(axes))), tuple(sorted(axes)), tuple(axes))
    sizes = tuple(1 if n in axes else size for n, size in enumerate(shape))
    return gather(src, indices, numbers, sizes, mode="clip")


def _from_end(index: Any, size: int) -> Any:
    """Indices of which negative ones count from the end."""
    index = convert(index, aval_of(index).dtype)
    return index + convert(lt(index, 0), aval_of(index).dtype) * size
