"""What all sparse arrays have in common, and the errors and warnings about storing them badly."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyax.trace.tracer import Tracer


class SparseEfficiencyError(ValueError):
    """A sparse array would be stored with many explicit zeros."""


class SparseEfficiencyWarning(UserWarning):
    """A sparse array is stored with many explicit zeros."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A routine of a vendor's library can't be used for a sparse array."""


class JAXSparse(ABC):
    """An array of which some elements are stored, and all others are zero.

    Args:
      args: the arrays that it consists of.
      shape: that of the array they stand for.
    """

    data: Any
    shape: tuple[int, ...]
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.shape = tuple(map(int, shape))

    @property
    @abstractmethod
    def nse(self) -> int:
        """How many elements are stored, of each batch."""

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Any:
        return self.transpose()

    @abstractmethod
    def tree_flatten(self) -> tuple[Any, Any]: ...

    @classmethod
    @abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any: ...

    @abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any: ...

    @abstractmethod
    def todense(self) -> Any: ...

    def block_until_ready(self) -> Any:
        """Waits until all its arrays are computed."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype}{list(self.shape)}{self._counts()})"
        except Exception:  # its parts are no arrays, as in the middle of a map of a tree
            text = f"{name}(<invalid>)"
        data = getattr(self, "data", None)
        return f"{type(data).__name__}[{text}]" if isinstance(data, Tracer) else text

    def _counts(self) -> str:
        return f", nse={self.nse}"

    if TYPE_CHECKING:  # refused below, where a format doesn't define it; ``BCOO`` gets all of them from ``operators``

        def astype(self, *args: Any, **kwargs: Any) -> Any: ...
        def reshape(self, *args: Any, **kwargs: Any) -> Any: ...
        def sum(self, *args: Any, **kwargs: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __iter__(self) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __getitem__(self, other: Any) -> Any: ...


def _refuse(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self)}.{name}")

    method.__name__ = name
    return method


for _name in (
    *("sum", "__neg__", "__pos__", "__matmul__", "__rmatmul__", "__mul__", "__rmul__", "__add__", "__radd__"),
    *("__sub__", "__rsub__", "__getitem__"),
):
    setattr(JAXSparse, _name, _refuse(_name))
