"""Abstract values: what is known of an array while tracing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from polyax.ir import dtypes
from polyax.ir.config import config
from polyax.ir.dims import SymbolicDim
from polyax.ir.dtypes import DType, ExtendedDType

_BYTE = np.dtype("uint8")


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """What a value is along axes that are manual, as in ``shard_map``.

    Args:
      varying: the axes along which it varies.
      unreduced: those along which it is a part of a sum that is still to be made.
      reduced: those along which it is the same, and its cotangent such a part.

    Raises:
      ValueError: an axis is among the varying ones and among others.

    >>> ManualAxisType(varying=frozenset({"x"})).varying
    frozenset({'x'})
    """

    varying: frozenset[Any] = frozenset()
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()

    def __post_init__(self) -> None:
        for name in ("varying", "unreduced", "reduced"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if self.varying & axes:
                raise ValueError(
                    f"varying and {name} cannot have common mesh axes. Got varying={self.varying} and {name}={axes}"
                )

    def update(self, **changes: Any) -> ManualAxisType:
        """The same with other axes."""
        return replace(self, **changes)

    def invarying(self, mesh: Any) -> frozenset[Any]:
        """The manual axes of the mesh along which it is the same, and its cotangent as well."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced


NO_SUMS: tuple[frozenset[Any], frozenset[Any]] = (frozenset(), frozenset())


class ShapedArray:
    """Shape, dtype and weak type of an array.

    ``told`` is None, or says which dimensions are cut along explicit axes of a mesh (``meshes.explicit``); ``vma`` are
    the mesh axes that a value varies over inside ``shard_map``, ``sums`` those along which it is a sum still to be
    made, and those along which its cotangent is.
    """

    __slots__ = ("_hash", "dtype", "shape", "sums", "told", "vma", "weak_type")
    placed: ClassVar[bool] = True
    """Whether it says of arrays where they lie: on the mesh in force, where nothing else is told."""
    fitted: ClassVar[Callable[[tuple[int, ...], Any], Any]]
    """How arrays of a shape are cut that lie so, which types tell; ``meshes.explicit`` sets it, and the next."""
    uncut: ClassVar[Callable[[int], Any]]
    """What is said of arrays with so many dimensions, of which types tell nothing."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        weak_type: bool = False,
        sharding: Any = None,
        vma: frozenset[str] = frozenset(),
        sums: tuple[frozenset[Any], frozenset[Any]] = NO_SUMS,
        manual_axis_type: ManualAxisType | None = None,
    ) -> None:
        if manual_axis_type is not None:  # as JAX calls these two together
            vma, sums = manual_axis_type.varying, (manual_axis_type.unreduced, manual_axis_type.reduced)
        if type(shape) is not tuple or type(dtype) not in dtypes.DTYPE_CLASSES:
            shape, dtype = tuple(shape), dtypes.as_dtype(dtype)
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.told = None if sharding is None else ShapedArray.fitted(shape, sharding)
        self.vma = vma
        self.sums = sums
        self._hash = hash((shape, dtype, weak_type))

    @property
    def sharding(self) -> Any:
        """How it is cut, as far as its type tells, on the mesh in force if that is not at all."""
        return ShapedArray.uncut(len(self.shape)) if self.told is None else self.told

    @property
    def manual_axis_type(self) -> ManualAxisType:
        return ManualAxisType(varying=self.vma, unreduced=self.sums[0], reduced=self.sums[1])

    mat = manual_axis_type  # as JAX calls it for short

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def physical(self) -> ShapedArray:
        """Of an extended dtype, the type of its representation, whose words have a dimension."""
        dtype = self.dtype
        if not isinstance(dtype, ExtendedDType):
            return self
        return ShapedArray((*self.shape, *dtype.element_shape), dtype.physical)

    @property
    def stored(self) -> ShapedArray:
        """The type of what devices hold: of an extended dtype, its representation; of a narrow one, bytes."""
        return ShapedArray(self.shape, _BYTE) if self.dtype in dtypes.NARROW else self.physical

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ShapedArray)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.told == other.told
            and self.vma == other.vma
            and self.sums == other.sums
        )

    def with_shape(self, shape: tuple[int, ...], **changes: Any) -> ShapedArray:
        """The same with another shape; how an array of it is cut has to be said anew."""
        return self.update(**{"shape": shape, "sharding": None, **changes})

    def update(self, **changes: Any) -> ShapedArray:
        """The same with other fields; dimensions stay cut as they were, also of another shape.

        Raises:
          ValueError: those of another shape don't fall into equal blocks, or some that were cut are gone.
        """
        fields: dict[str, Any] = {n: getattr(self, n) for n in _FIELDS}
        fields["sharding"] = self.told
        return ShapedArray(**(fields | changes))

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        return self.update(dtype=dtypes.tangent_dtype(self.dtype))

    at_least_vspace = to_tangent_aval  # as libraries call it

    def str_short(self, short_dtypes: bool = False) -> str:
        """``float32[3,4]``, or ``f32[3,4]`` in jaxprs; inside ``shard_map`` with the axes that it varies along:
        ``float32[3,4]{V:x}``."""
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.full_name(self.dtype)
        spec = None if self.told is None else self.told.spec
        named = () if spec is None else spec.partitions
        sizes = map(_cut_size, self.shape, (*named, *[None] * (self.ndim - len(named))))
        sums = self.sums if spec is None else (self.sums[0] | spec.unreduced, self.sums[1] | spec.reduced)
        return f"{name}[{','.join(map(str, sizes))}]{axes_text(self.vma, *sums)}"

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


class UnplacedArray(ShapedArray):
    """The type of what lies nowhere yet, equal to that of an array that isn't cut: NumPy's, and what a program makes of
    one alone. It is cut as what it is used with."""

    __slots__ = ()
    placed = False


_FIELDS = "shape", "dtype", "weak_type", "vma", "sums"


def axes_text(
    vma: frozenset[Any], unreduced: frozenset[Any] = frozenset(), reduced: frozenset[Any] = frozenset()
) -> str:
    """``{V:x}``, ``{V:(x,y), U:z}``; nothing if a value is the same everywhere."""
    found: list[str] = []
    for letter, axes in (("V", vma), ("U", unreduced), ("R", reduced)):
        names = sorted(map(str, axes))
        if names:
            found.append(f"{letter}:{names[0]}" if len(names) == 1 else f"{letter}:({','.join(names)})")
    return f"{{{', '.join(found)}}}" if found else ""


def _cut_size(size: int, axes: Any) -> str:
    if axes is None:
        return str(size)
    return f"{size}@({','.join(map(str, axes))})" if isinstance(axes, tuple) else f"{size}@{axes}"


class Typed:
    """What has an ``aval``, arrays and tracers: its parts as attributes."""

    __slots__ = ()
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        return self.aval.itemsize

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    def __len__(self) -> int:
        return len(self.aval)


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Equal up to weak types: what may be substituted for each other at run time."""
    return a.shape == b.shape and a.dtype == b.dtype


_PYTHON_AVALS: dict[tuple[type, bool], ShapedArray] = {}


def python_scalar_aval(kind: type) -> ShapedArray:
    """The aval of a Python scalar: weakly typed, except for booleans."""
    key = kind, config.get("enable_x64")
    found = _PYTHON_AVALS.get(key)
    if found is None:
        dtype = dtypes.canonicalize(dtypes.PYTHON_SCALARS[kind])
        found = _PYTHON_AVALS[key] = ShapedArray((), dtype, weak_type=kind is not bool)
    return found


def aval_of(x: Any) -> ShapedArray:
    """The abstract value of a tracer, Array, NumPy array or scalar.

    Raises:
      TypeError: ``x`` is no array type.
      ValueError: it has to become one first.
    """
    if isinstance(x, Typed):
        return x.aval
    kind = type(x)
    if kind in dtypes.PYTHON_SCALARS:
        return python_scalar_aval(kind)
    if isinstance(x, (np.ndarray, np.generic)):
        if kind is not np.ndarray:
            refuse_masked(x)
        dtype = x.dtype if x.dtype == dtypes.float0 else dtypes.canonicalize(x.dtype)
        return UnplacedArray(x.shape, dtype) if x.ndim else ShapedArray((), dtype)
    for base, _ in dtypes.PYTHON_SCALARS.items():  # subclasses: IntEnum, np.float64 and the like
        if isinstance(x, base):
            return python_scalar_aval(base)
    if isinstance(x, SymbolicDim):
        return aval_of(x.__jax_array__())
    if hasattr(x, "__jax_array__"):
        raise ValueError(
            "Triggering __jax_array__() during abstractification is no longer supported. To avoid this error, either "
            f"explicitly convert your {type(x).__name__} using polyax.numpy.asarray(), or register it as a pytree."
        )
    if (aval := getattr(x, "aval", None)) is not None:  # what rules and programs have in place of arrays
        return aval
    raise not_an_array(x)


def unwrap(x: Any) -> Any:
    """The array behind an object with the ``__jax_array__`` protocol; all else as it is."""
    if isinstance(x, Typed) or not hasattr(x, "__jax_array__"):
        return x
    return x.__jax_array__()


def not_an_array(x: Any, where: str = "") -> TypeError:
    """The error about a value that stands where only arrays may; ``where`` ends its first sentence."""
    return TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type{where}")


def refuse_masked(x: Any) -> None:
    """Raises ValueError for an array of NumPy with a mask, which programs wouldn't heed."""
    module = sys.modules.get("numpy.ma")  # NumPy loads it, which takes milliseconds, for those who make such arrays
    if isinstance(x, getattr(module, "MaskedArray", ())):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to JAX functions. Use arr.filled() to convert the "
            "value to a standard numpy array."
        )


def is_array_like(x: Any) -> bool:
    return (
        hasattr(x, "aval")
        or isinstance(x, (bool, int, float, complex, np.generic))
        or (isinstance(x, np.ndarray) and x.dtype in dtypes.KNOWN)
        or hasattr(x, "__jax_array__")
    )
