"""Scalar types and constants. ``float32`` and its like are callables that make arrays, and stand for dtypes."""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import Typed
from polyax.numpy.arrays import asarray
from polyax.numpy.promotion import aval_of, canonical_dtype, convert, ensure_array, exact, is_arraylike, unwrap
from polyax.runtime.arrays.placing import on_mesh_in_force

__all__ = [
    "ComplexWarning",
    "bfloat16",
    "bool_",
    "can_cast",
    "cdouble",
    "character",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "flexible",
    "float16",
    "float32",
    "float64",
    "float_",
    "floating",
    "generic",
    "iinfo",
    "inexact",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "iscomplexobj",
    "isdtype",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "nan",
    "newaxis",
    "number",
    "object_",
    "pi",
    "promote_types",
    "result_type",
    "signedinteger",
    "single",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]  # fmt: skip


class _ScalarMeta(type):
    """Classes that compare equal to the NumPy type they stand for, and make arrays when called."""

    dtype: np.dtype[Any]

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: Any) -> bool:
        return cls is other or cls.dtype.type == other or (isinstance(other, np.dtype) and cls.dtype == other)

    def __call__(cls, x: Any) -> Any:
        dtype = canonical_dtype(cls.dtype)
        if dtypes.is_python_scalar(x):
            return on_mesh_in_force(ensure_array(cls.__name__, exact(x, dtype)))
        if not is_arraylike(x):  # arrays and tracers may be in it
            return asarray(x, dtype)
        return on_mesh_in_force(ensure_array(cls.__name__, convert(unwrap(x), dtype)))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)


def scalar_type(name: str, numpy_type: Any) -> Any:
    dtype = np.dtype(numpy_type)
    doc = f"The dtype {dtype.name}; ``{name}(x)`` converts ``x`` to an array of it."
    return _ScalarMeta(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "polyax.numpy"})


bool_ = scalar_type("bool", np.bool_)
uint8 = scalar_type("uint8", np.uint8)
uint16 = scalar_type("uint16", np.uint16)
uint32 = scalar_type("uint32", np.uint32)
uint64 = scalar_type("uint64", np.uint64)
int8 = scalar_type("int8", np.int8)
int16 = scalar_type("int16", np.int16)
int32 = scalar_type("int32", np.int32)
int64 = scalar_type("int64", np.int64)
bfloat16 = scalar_type("bfloat16", ml_dtypes.bfloat16)
float16 = scalar_type("float16", np.float16)
float32 = single = scalar_type("float32", np.float32)
float64 = double = scalar_type("float64", np.float64)
complex64 = csingle = scalar_type("complex64", np.complex64)
complex128 = cdouble = scalar_type("complex128", np.complex128)
int_, uint, float_, complex_ = int64, uint64, float64, complex128

dtype = np.dtype
generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_
ComplexWarning = np.exceptions.ComplexWarning

pi, e, inf, nan, euler_gamma = np.pi, np.e, np.inf, np.nan, np.euler_gamma
newaxis = None

finfo, promote_types = dtypes.finfo, dtypes.promote_types


def iinfo(int_type: Any) -> Any:
    """The limits of an integer type.

    Raises:
      ValueError: it is another type.

    >>> iinfo("int8").max
    127
    """
    return dtypes.iinfo(int_type)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype ``arg1`` is below ``arg2`` in NumPy's hierarchy of types.

    >>> import polyax.numpy as jnp
    >>> jnp.issubdtype(jnp.int32, jnp.integer)
    True
    """
    kind = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else dtypes.as_dtype(arg2).type
    return dtypes.issubdtype(arg1, kind)


def result_type(*args: Any) -> Any:
    """The dtype that arrays, scalars and dtypes combine to.

    >>> import polyax.numpy as jnp
    >>> jnp.result_type(jnp.int8, 1.0)
    dtype('float32')
    """
    return promoted(*args)[0]


def promoted(*args: Any) -> tuple[Any, bool]:
    """The same, and whether arrays of that dtype would be weakly typed."""
    if not args:
        raise ValueError("at least one array or dtype is required")
    return dtypes.promote_weak(*map(_type_of, args))


def _type_of(x: Any) -> tuple[Any, bool]:
    if is_arraylike(x) and not isinstance(x, type):
        aval = aval_of(unwrap(x))
        return aval.dtype, aval.weak_type
    if not isinstance(x, (type, np.dtype)) and hasattr(x, "dtype"):  # an array of a library's own
        return dtypes.canonicalize(x.dtype), False
    of_numpy = isinstance(x, (str, np.dtype)) or (isinstance(x, type) and issubclass(x, np.generic))
    dtype = canonical_dtype(x) if of_numpy else dtypes.canonicalize(x)  # which warns where it narrows
    return dtype, isinstance(x, type) and x in (int, float, complex)


def can_cast(from_: Any, to: Any, casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "safe") -> bool:
    """Whether NumPy would cast ``from_`` to ``to``, dtypes or arrays, under the rule ``casting``."""
    source, target = (x if isinstance(x, type) else getattr(x, "dtype", x) for x in (from_, to))
    return bool(np.can_cast(dtypes.as_dtype(source), dtypes.as_dtype(target), casting=casting))


_KINDS: dict[str, frozenset[Any]] = {
    "bool": dtypes.BOOL,
    "signed integer": dtypes.INTS | {d for n, d in dtypes.NARROW_INTS.items() if n.startswith("i")},
    "unsigned integer": dtypes.UINTS | {d for n, d in dtypes.NARROW_INTS.items() if n.startswith("u")},
    "integral": dtypes.INTS | dtypes.UINTS | frozenset(dtypes.NARROW_INTS.values()),
    "real floating": dtypes.FLOATS | frozenset(dtypes.NARROW_FLOATS.values()),
    "complex floating": dtypes.COMPLEX,
    "numeric": (dtypes.ALL - dtypes.BOOL) | dtypes.NARROW,
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype``, or that of an array, is of a kind of the array API standard, such as ``'integral'``.

    ``kind`` may also be a dtype, or a tuple of which one has to fit.

    Raises:
      ValueError: an unknown kind.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    found = dtypes.as_dtype(dtype.dtype if isinstance(dtype, (Typed, np.ndarray)) else dtype)
    return any(_is_kind(found, k) for k in kinds)


def _is_kind(dtype: Any, kind: Any) -> bool:
    if isinstance(kind, str) and kind in _KINDS:
        return dtype in _KINDS[kind]
    try:
        return dtype == dtypes.as_dtype(kind)
    except TypeError:
        raise ValueError(f"Unrecognized kind {kind!r}: expected a dtype or one of {', '.join(_KINDS)}") from None


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a number, or an array without dimensions."""
    return bool(np.isscalar(element)) or (is_arraylike(element) and aval_of(unwrap(element)).ndim == 0)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of ``x`` is complex."""
    return dtypes.is_complex(_type_of(x)[0]) if is_arraylike(x) else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype of ``x`` is not complex."""
    return not iscomplexobj(x)


def iterable(y: Any) -> bool:
    """Whether ``y`` can be iterated over."""
    return bool(np.iterable(y))
