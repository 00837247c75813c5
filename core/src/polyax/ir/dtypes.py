"""Data types: canonical 32-bit defaults, weak types, the promotion lattice, extended types.

The lattice is JAX's ("Type promotion semantics" in its documentation): Python scalars are weakly typed nodes
``i* f* c*`` between the strong types, and promotion is the least upper bound.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from polyax.ir.config import config

DType = Any  # np.dtype, or an ExtendedDType

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float0 = np.dtype([("float0", np.void, 0)])
"""The tangent type of integers and booleans: no information, no bytes."""


class extended(np.generic):
    """What ``issubdtype`` knows all extended types as; never made."""


class prng_key(extended):
    """What ``issubdtype`` knows the types of random keys as; never made."""


class ExtendedDType:
    """A type whose elements are arrays of a physical type, such as typed random keys (``key<fry>[]``).

    A subclass sets ``name`` (as printed in full), ``short`` (as printed in jaxprs), ``physical`` (the dtype of the
    representation), ``element_shape`` (trailing dimensions of the representation of one element), and ``type``, which
    is what ``issubdtype`` is asked about.
    """

    type: type[extended]
    name: str
    short: str
    physical: np.dtype
    element_shape: tuple[int, ...] = ()
    itemsize: int

    def __repr__(self) -> str:
        return self.name


_BOOL = [np.dtype(bool)]
_UINTS = [np.dtype(t) for t in ("uint8", "uint16", "uint32", "uint64")]
_INTS = [np.dtype(t) for t in ("int8", "int16", "int32", "int64")]
_FLOATS = [bfloat16, *(np.dtype(t) for t in ("float16", "float32", "float64"))]
_COMPLEX = [np.dtype(t) for t in ("complex64", "complex128")]
BOOL, UINTS, INTS, FLOATS, COMPLEX = map(frozenset, (_BOOL, _UINTS, _INTS, _FLOATS, _COMPLEX))
ALL = BOOL | UINTS | INTS | FLOATS | COMPLEX

NARROW_FLOATS = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
}  # fmt: skip
"""Types of less than 16 bits that numbers are kept in, a byte each. What computes with them does so in wider types and
rounds each result."""
NARROW_INTS = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("int1", "int2", "int4", "uint1", "uint2", "uint4")}
NARROW = frozenset(NARROW_FLOATS.values()) | frozenset(NARROW_INTS.values())
KNOWN = ALL | NARROW | {float0}
"""The dtypes that arrays may have, extended ones aside."""

DTYPE_CLASSES = frozenset(map(type, KNOWN))
"""The classes of the dtypes of arrays, each of which NumPy gives one of its own."""

PYTHON_SCALARS: dict[type, np.dtype] = {
    bool: np.dtype(bool),
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}

_PYTHON_TYPES = tuple(PYTHON_SCALARS)

_NARROW = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}

_NARROW_INEXACT = frozenset(NARROW_FLOATS.values())
_NARROW_INTEGER = frozenset(NARROW_INTS.values())
_NEVER_NARROWED = KNOWN - set(_NARROW)

_SHORT = {"bool": "bool", "bfloat16": "bf16", "float0": "float0"}


def is_python_scalar(x: Any) -> bool:
    """Whether ``x`` is a number of Python's own types, or of one made from them; NumPy's are not."""
    return isinstance(x, _PYTHON_TYPES) and not isinstance(x, np.generic)


def is_extended(dtype: DType) -> bool:
    return isinstance(dtype, ExtendedDType)


@functools.lru_cache(None)
def _known_dtype(dtype: Any) -> DType:
    if isinstance(dtype, type) and dtype in PYTHON_SCALARS:
        return PYTHON_SCALARS[dtype]
    return np.dtype(getattr(dtype, "dtype", dtype) if not isinstance(dtype, type) else dtype)


def as_dtype(dtype: Any) -> DType:
    """Any spelling of a dtype (``'f4'``, ``float``, ``jnp.float32``, ...) as ``np.dtype``; not canonicalized."""
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype
    if hasattr(dtype, "__array__") and not isinstance(dtype, type):
        raise ValueError(
            "Passing an array as a dtype argument is no longer supported; instead of dtype=arr use dtype=arr.dtype."
        )
    return _known_dtype(dtype)


def canonicalize(dtype: Any) -> DType:
    """The dtype that arrays get: 64-bit types become 32-bit ones unless ``config.enable_x64`` is set."""
    dtype = as_dtype(dtype)
    if dtype in _NEVER_NARROWED or is_extended(dtype):
        return dtype
    if not config.enable_x64:
        dtype = _NARROW.get(dtype, dtype)
    if dtype not in KNOWN:
        raise TypeError(f"JAX does not support dtype {dtype}; supported: {', '.join(sorted(d.name for d in ALL))}")
    return dtype


def short_name(dtype: DType) -> str:
    """``f32``, ``i8``, ``bool``, ``key<fry>``: the form that jaxprs print."""
    if is_extended(dtype):
        return dtype.short
    if dtype == float0:
        return "float0"
    name = dtype.name
    if name in _SHORT:
        return _SHORT[name]
    for long, short in (("uint", "u"), ("int", "i"), ("float", "f"), ("complex", "c")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def full_name(dtype: DType) -> str:
    return "float0" if dtype == float0 else dtype.name


CLASSES = {
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
    np.complexfloating, np.flexible, np.character,
}  # fmt: skip
"""NumPy's classes of types that are no type of arrays."""


def issubdtype(dtype: Any, kind: Any) -> bool:
    """``np.issubdtype`` that knows bfloat16 and extended types."""
    if dtype in CLASSES:
        return isinstance(kind, type) and issubclass(dtype, kind)
    dtype = as_dtype(dtype)
    if is_extended(dtype):
        return isinstance(kind, type) and issubclass(dtype.type, kind)
    if dtype == bfloat16 or dtype in NARROW:
        return kind in _kinds_above(dtype)
    return np.issubdtype(dtype, kind)


def _kinds_above(dtype: DType) -> tuple[Any, ...]:
    """What a type that NumPy doesn't know stands below, and it itself."""
    if dtype.name in NARROW_INTS:
        sign = np.unsignedinteger if dtype.name.startswith("u") else np.signedinteger
        return np.generic, np.number, np.integer, sign, dtype, dtype.type
    return np.generic, np.number, np.inexact, np.floating, dtype, dtype.type


def is_float(dtype: DType) -> bool:
    return dtype in FLOATS or dtype in _NARROW_INEXACT


def is_complex(dtype: DType) -> bool:
    return dtype in COMPLEX


def is_inexact(dtype: DType) -> bool:
    return dtype in FLOATS or dtype in COMPLEX or dtype in _NARROW_INEXACT


def is_integer(dtype: DType) -> bool:
    return dtype in INTS or dtype in UINTS or dtype in _NARROW_INTEGER


def is_signed(dtype: DType) -> bool:
    """Whether these are integers, negative ones too."""
    return is_integer(dtype) and not is_unsigned(dtype)


def is_unsigned(dtype: DType) -> bool:
    return dtype in UINTS or (dtype in _NARROW_INTEGER and dtype.name.startswith("u"))


def bits_of(dtype: DType) -> int:
    """How many bits an element has; narrow types have as few as they need."""
    if dtype not in NARROW:
        return 8 * dtype.itemsize
    return int((iinfo if dtype in _NARROW_INTEGER else finfo)(dtype).bits)


def _own_dtype(x: Any) -> DType:
    """The dtype of an array, or what ``x`` names."""
    return as_dtype(x if isinstance(x, type) else getattr(x, "dtype", x))


def finfo(dtype: Any) -> Any:
    dtype = _own_dtype(dtype)
    return ml_dtypes.finfo(dtype) if dtype == bfloat16 or dtype in NARROW else np.finfo(dtype)


def iinfo(dtype: Any) -> Any:
    dtype = _own_dtype(dtype)
    return ml_dtypes.iinfo(dtype) if dtype in NARROW else np.iinfo(dtype)


def extremes(dtype: DType) -> tuple[Any, Any]:
    """The lowest and the highest number: infinities, where there are any."""
    if is_integer(dtype):
        return dtype.type(iinfo(dtype).min), dtype.type(iinfo(dtype).max)
    low, high = (np.asarray(x).astype(dtype)[()] for x in (-np.inf, np.inf))
    if np.isinf(np.asarray(high, np.float64)):
        return low, high
    return dtype.type(finfo(dtype).min), dtype.type(finfo(dtype).max)


def wrapped(x: Any, dtype: DType) -> Any:
    """A Python scalar as a NumPy one of ``dtype``: integers are taken modulo what it can hold; floats become integers
    as devices make them, truncated and saturated, 0 for NaN.

    Raises:
      TypeError: a complex number for a real dtype.

    >>> wrapped(300, np.dtype("uint8")), wrapped(300.5, np.dtype("uint8"))
    (np.uint8(44), np.uint8(255))
    """
    if isinstance(x, complex) and dtype not in COMPLEX and dtype not in BOOL:
        raise TypeError(f"{full_name(dtype)} can't hold the complex number {x}.")
    if isinstance(x, float) and is_integer(dtype):
        x = _saturated(x, dtype)
    if isinstance(x, int) and is_integer(dtype):
        if dtype in _NARROW_INTEGER:
            return np.asarray(x % (1 << bits_of(dtype)), np.uint8).view(dtype)[()]
        bits = 8 * dtype.itemsize
        return np.asarray(x % (1 << bits), f"uint{bits}").astype(dtype)[()]
    return np.asarray(x).astype(dtype)[()]


def _saturated(x: float, dtype: DType) -> int:
    limits = iinfo(dtype)
    return int(min(max(x, limits.min), limits.max)) if x == x else 0


def real_part(dtype: DType) -> DType:
    """float32 for complex64, float64 for complex128, else the dtype itself."""
    return np.dtype(f"float{dtype.itemsize * 4}") if dtype in COMPLEX else dtype


def tangent_dtype(dtype: DType) -> DType:
    """float0 for everything that has no derivative."""
    return dtype if is_inexact(dtype) else float0


def default_float() -> np.dtype:
    return canonicalize(np.dtype("float64"))


def default_int() -> np.dtype:
    return canonicalize(np.dtype("int64"))


# --- promotion ----------------------------------------------------------------------------------------------------

_I, _F, _C = "i*", "f*", "c*"
_WEAK_NODE = {"i": _I, "u": _I, "f": _F, "V": _F, "c": _C}


def _edges() -> dict[Any, list[Any]]:
    u, i, (bf, f2, f4, f8), (c4, c8) = _UINTS, _INTS, _FLOATS, _COMPLEX
    up: dict[Any, list[Any]] = {_BOOL[0]: [_I], _I: [u[0], i[0]]}
    for k in range(3):
        up[u[k]] = [i[k + 1], u[k + 1]]
        up[i[k]] = [i[k + 1]]
    up |= {u[3]: [_F], i[3]: [_F], _F: [bf, f2, _C], bf: [f4], f2: [f4]}
    up |= {f4: [f8, c4], f8: [c8], _C: [c4], c4: [c8], c8: []} | {narrow: [] for narrow in NARROW}
    up[_I] = [*up[_I], *NARROW_INTS.values()]
    up[_F] = [*up[_F], *NARROW_FLOATS.values()]
    return up


def _upper_bounds() -> dict[Any, frozenset[Any]]:
    edges = _edges()

    @functools.lru_cache(None)
    def above(node: Any) -> frozenset[Any]:
        return frozenset({node}).union(*(above(n) for n in edges[node]))

    return {node: above(node) for node in edges}


_ABOVE = _upper_bounds()


@functools.lru_cache(None)
def _least_upper_bound(nodes: frozenset[Any]) -> Any:
    for dtype in nodes - _ABOVE.keys():
        raise ValueError(f"{dtype=} is not a valid dtype for JAX type promotion.")
    common = frozenset.intersection(*(_ABOVE[n] for n in nodes))
    least = [n for n in common if common <= _ABOVE[n]]
    if not least:
        raise _no_path(nodes)
    return least[0]


class TypePromotionError(ValueError):
    """There is no dtype that others are promoted to together."""


def _no_path(nodes: Iterable[Any]) -> TypePromotionError:
    names = tuple(sorted(n if isinstance(n, str) else full_name(n) for n in nodes))
    narrow = " or ".join(n for n in names if n in NARROW_FLOATS or n in NARROW_INTS)
    return TypePromotionError(
        f"Input dtypes {names} have no available implicit dtype promotion path: {narrow} isn't promoted implicitly. "
        "Convert explicitly, such as with x.astype('float32')."
    )


_WEAK_DTYPE = {_I: np.dtype("int64"), _F: np.dtype("float64"), _C: np.dtype("complex128")}


@functools.lru_cache(None)
def _promote(types: tuple[tuple[DType, bool], ...], x64: bool, strict: bool) -> tuple[DType, bool]:
    dtypes = {d for d, _ in types}
    weak = all(w for _, w in types)
    if any(is_extended(d) or d == float0 for d in dtypes):
        if len(dtypes) > 1:
            strange = next(full_name(d) for d in dtypes if is_extended(d) or d == float0)
            names = ", ".join(sorted(map(full_name, dtypes)))
            raise ValueError(f"dtype={strange} is not a valid dtype for JAX type promotion, as of {names}.")
        return types[0][0], weak
    if len(dtypes) == 1:
        return types[0][0], weak
    if strict and len({d for d, w in types if not w}) > 1:
        raise _strictly_no_path(dtypes)
    if strict and not weak:
        _refuse_wider_kinds([d for d, w in types if not w], [d for d, w in types if w])
    nodes = frozenset(d if weak or not w else _WEAK_NODE.get(d.kind, d) for d, w in types)
    bound = _least_upper_bound(nodes)
    if bound in _WEAK_DTYPE:
        return _WEAK_DTYPE[bound], True
    return bound, weak


def _strictly_no_path(dtypes: Iterable[DType]) -> TypePromotionError:
    names = tuple(sorted(full_name(d) for d in dtypes))
    return TypePromotionError(
        f"Input dtypes {names} have no available implicit dtype promotion path when "
        "jax_numpy_dtype_promotion=strict. Convert explicitly with astype, or set jax_numpy_dtype_promotion=standard."
    )


def _refuse_wider_kinds(strong: Sequence[DType], weak: Sequence[DType]) -> None:
    """Raises TypePromotionError if weak types would make another kind of number of the strong one."""
    own, most = (max(map(_rank, group), default=0) for group in (strong, weak))
    if weak and (own < most or own == 0):
        raise _strictly_no_path({*strong, *weak})


def _rank(dtype: DType) -> int:
    """Bools, integers, floats and complex numbers, in this order."""
    return 3 if is_complex(dtype) else 2 if is_inexact(dtype) else 1 if is_integer(dtype) else 0


def promote_weak(*types: tuple[DType, bool]) -> tuple[DType, bool]:
    """The (dtype, weak_type) of a combination of (dtype, weak_type) pairs, canonicalized."""
    dtype, weak = _promote(types, config.enable_x64, config.numpy_dtype_promotion == "strict")
    return canonicalize(dtype), weak


def promote_types(a: Any, b: Any) -> DType:
    """The dtype that strongly typed ``a`` and ``b`` meet in; Python's own types are weak.

    It is of 64 bits if one of both is, also where arrays aren't: ``result_type`` is what they have.

    >>> promote_types('int32', 'float16'), promote_types('bool', 'int64')
    (dtype('float16'), dtype('int64'))
    """
    types = tuple((as_dtype(x), isinstance(x, type) and x in (int, float, complex)) for x in (a, b))
    found = _promote(types, config.enable_x64, config.numpy_dtype_promotion == "strict")[0]
    return canonicalize(found) if all(t in _NEVER_NARROWED for t, _ in types) else found


def wider(a: Any, b: Any) -> DType:
    """The same for conversions that functions make by themselves, which ``numpy_dtype_promotion='strict'`` doesn't
    refuse.

    >>> wider("float16", "float32")
    dtype('float32')
    """
    return canonicalize(_promote(((as_dtype(a), False), (as_dtype(b), False)), config.enable_x64, False)[0])
