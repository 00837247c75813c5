"""How arguments of library functions meet: array checks, dtype promotion with weak types, and rank promotion.

Knows the lattice of ``ir.dtypes`` and converts values; must not know any particular function.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from polyax.ir import dtypes, errors
from polyax.ir.aval import Typed, aval_of, unwrap
from polyax.ir.config import config
from polyax.ir.dtypes import DType, as_dtype, canonicalize, full_name
from polyax.ir.jaxpr import is_literal_value
from polyax.ir.primitive import ambient
from polyax.ir.refs import is_ref, met
from polyax.lax import lenient as lax
from polyax.ops.basis import canonical_axis, shape_tuple
from polyax.runtime.arrays.placing import from_host
from polyax.runtime.contract.tracebacks import warn_user
from polyax.trace.recording import recorder
from polyax.trace.tracer import Tracer

_SCALARS = (bool, int, float, complex)


def is_arraylike(x: Any) -> bool:
    """Arrays, tracers, NumPy arrays and scalars; not lists, tuples or None."""
    return isinstance(x, (Typed, np.ndarray, np.generic, *_SCALARS)) or hasattr(x, "__jax_array__")


def check_arraylike(name: str, *args: Any) -> None:
    """Raises ``TypeError`` naming the first argument of ``name`` that is no array."""
    for position, arg in enumerate(args):
        if not is_arraylike(arg) or (met.any and is_ref(_type_of(arg))):
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(arg)} at position {position}.")


def ensure_array(name: str, x: Any) -> Any:
    """``x`` as something with ``shape``, ``dtype`` and operators: an Array, a tracer or a NumPy value.

    Python scalars become weakly typed arrays.
    """
    check_arraylike(name, x)
    return as_array(unwrap(x))


def as_array(x: Any) -> Any:
    """Host values on the default device; arrays and tracers as they are."""
    return x if isinstance(x, Typed) else from_data(x)


def from_data(x: Any) -> Any:
    """Host values on the default device; scalars, in a program that is being recorded, are written there in place."""
    if ambient.trace is not None and is_literal_value(x) and (trace := recorder()) is not None:
        return trace.literal(x)
    return from_host(x)


def ensure_arrays(name: str, *args: Any) -> list[Any]:
    check_arraylike(name, *args)
    return [as_array(unwrap(x)) for x in args]


# --- dtypes -----------------------------------------------------------------------------------------------------------


def convert(x: Any, dtype: DType, weak_type: bool = False) -> Any:
    """``x`` with this dtype and weak type; host scalars stay host scalars, so that jaxprs print them in place."""
    if isinstance(x, Typed):
        aval = x.aval
        if aval.dtype == dtype and aval.weak_type == weak_type:
            return x
        return lax.convert_element_type_p.bind1(x, new_dtype=dtype, weak_type=weak_type)
    if not weak_type:
        return _host_cast(x, dtype)
    if isinstance(x, (np.ndarray, np.generic)):
        return lax.convert_element_type_p.bind1(x, new_dtype=dtype, weak_type=True)
    kind = {"i": int, "f": float, "c": complex}.get(dtype.kind)
    if kind is not None and canonicalize(dtypes.PYTHON_SCALARS[kind]) == dtype:
        return kind(x)
    return _host_cast(x, dtype)


def _host_cast(x: Any, dtype: DType) -> Any:
    """A NumPy value of this dtype; integers that it can't hold wrap around."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x if x.dtype == dtype else x.astype(dtype)
    return dtypes.wrapped(x, dtype)


def exact(x: Any, dtype: DType) -> Any:
    """A Python scalar as a NumPy one of ``dtype``.

    Raises:
      OverflowError: it is an integer, or a number that is to become one, which ``dtype`` can't hold.
      TypeError: it is complex, and ``dtype`` is not.
    """
    if dtypes.is_integer(dtype):
        return np.asarray(int(x), dtype)[()]
    if dtype in dtypes.NARROW:
        return np.asarray(int(x) if dtype.name in dtypes.NARROW_INTS else float(x)).astype(dtype)[()]
    return np.asarray(float(x) if dtypes.is_float(dtype) else x, dtype)[()]


def holds(dtype: DType, x: int) -> bool:
    """Whether ``x`` is one of the integers that ``dtype`` has."""
    return dtypes.is_integer(dtype) and dtypes.iinfo(dtype).min <= x <= dtypes.iinfo(dtype).max


def in_range(x: Any) -> Any:
    """``x``; a Python integer has to fit the type of integers, whatever it meets; NumPy's wrap around as in arrays."""
    if type(x) is int:
        if not holds(dtypes.default_int(), x):
            raise OverflowError(f"Python int {x} too large to convert to {dtypes.default_int().name}")
    elif isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu":
        return x.astype(canonicalize(x.dtype), copy=False)
    return x


def to_inexact(dtype: DType) -> DType:
    """The floating type that integers and booleans are computed in: float64 for those of 64 bits, else float32."""
    if dtypes.is_integer(dtype) or dtype in dtypes.BOOL:
        return dtypes.default_float() if dtype.itemsize == 8 else np.dtype("float32")
    return dtype


def to_numeric(dtype: DType) -> DType:
    """The type that booleans are computed in as numbers: int32, whatever the width of other integers."""
    return np.dtype("int32") if dtype in dtypes.BOOL else dtype


def to_complex(dtype: DType) -> DType:
    return dtypes.wider(to_inexact(dtype), np.complex64)


def strong(x: Any) -> Any:
    """``x`` without weak type."""
    return convert(x, aval_of(x).dtype)


def same(dtype: DType) -> DType:
    return dtype


def result_dtype(*args: Any) -> tuple[DType, bool]:
    """The (dtype, weak_type) that the arguments meet in."""
    return dtypes.promote_weak(*((a.dtype, a.weak_type) for a in map(aval_of, args)))


def promote_dtypes(*args: Any, to: Callable[[DType], DType] = same) -> list[Any]:
    """The arguments converted to their common dtype, mapped by ``to``."""
    dtype, weak_type = result_dtype(*args)
    target = to(dtype)
    return [convert(in_range(x), target, weak_type) for x in args]


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    return promote_dtypes(*args, to=to_inexact)


def promote_dtypes_numeric(*args: Any) -> list[Any]:
    return promote_dtypes(*args, to=to_numeric)


# --- shapes -----------------------------------------------------------------------------------------------------------


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """Equal ranks for all but scalars, by new leading axes; primitives broadcast axes of size one themselves."""
    shapes = [np.shape(x) for x in args]
    ranks = {len(s) for s in shapes if s}
    if len(ranks) < 2:
        return list(args)
    if config.numpy_rank_promotion != "allow":
        _complain_of_rank_promotion(name, shapes)
    rank = len(lax.broadcast_shapes(*shapes))
    return [lax.broadcast_to_rank(x, rank) for x in args]


def _complain_of_rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    listed = " ".join(map(str, shapes))
    if config.numpy_rank_promotion == "warn":
        warn_user(
            f"Following NumPy automatic rank promotion for {name} on shapes {listed}. Set the jax_numpy_rank_promotion "
            "config option to 'allow' to disable this warning.",
        )
        return
    raise ValueError(
        f"Operands could not be broadcast together for {name} on shapes {listed} and with the config option "
        "jax_numpy_rank_promotion='raise'. Reshape or use expand_dims, so that the ranks agree."
    )


# --- both -------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _scalar_kind(dtype: DType, weak_type: bool, kind: type, to: Callable[[DType], DType], settings: Any) -> type | None:
    """The type that a scalar of ``kind`` takes on beside arrays of ``dtype``; None if these would have to change."""
    if dtypes.is_extended(dtype) or dtype == dtypes.float0:
        return None
    meeting = dtypes.promote_weak((dtype, weak_type), (canonicalize(dtypes.PYTHON_SCALARS[kind]), kind is not bool))
    own = {"i": int, "f": float, "c": complex}.get(dtype.kind)
    if meeting != (dtype, weak_type) or to(dtype) != dtype or own is None:
        return None
    if canonicalize(dtypes.PYTHON_SCALARS[own]) != dtype:
        return None
    return own if weak_type else dtype.type


@functools.lru_cache(maxsize=256)
def _stays(dtype: DType, to: Callable[[DType], DType]) -> bool:
    return not dtypes.is_extended(dtype) and dtype != dtypes.float0 and to(dtype) == dtype


def _type_of(x: Any) -> Any:
    """The aval of an array or a tracer, else None: what only hands on the attributes of an array isn't one."""
    return x.aval if isinstance(x, Typed) else None


def _ready(args: tuple[Any, ...], to: Callable[[DType], DType]) -> list[Any] | None:
    """The arguments of the two common cases, arrays that agree and an array with a Python scalar; else None."""
    x, y = args[0], args[-1]
    first, last = _type_of(x), _type_of(y)
    if first is not None and last is not None:
        alike = first.dtype == last.dtype and first.weak_type == last.weak_type
        flat = len(first.shape) == len(last.shape) or not first.shape or not last.shape
        return list(args) if alike and flat and _stays(first.dtype, to) else None
    array, scalar = (first, y) if last is None else (last, x)
    kind = type(scalar)
    if array is None or kind not in dtypes.PYTHON_SCALARS or (kind is int and not -(2**31) <= scalar < 2**31):
        return None
    kind = _scalar_kind(array.dtype, array.weak_type, kind, to, config.trace_key())
    if kind is None:
        return None
    return [x, kind(y)] if last is None else [kind(x), y]


def promote_args(name: str, *args: Any, to: Callable[[DType], DType] = same) -> list[Any]:
    """Arguments of an elementwise function: checked, of one dtype, of one rank (or scalars).

    Raises:
      TypeError: an argument is no array, or has dtype float0, or is a key beside something else.
    """
    if len(args) <= 2 and (ready := _ready(args, to)) is not None:
        return ready
    check_arraylike(name, *args)
    args = tuple(map(unwrap, args))
    avals = [aval_of(x) for x in args]
    for aval in avals:
        if aval.dtype == dtypes.float0:
            raise TypeError(_float0_text(name))
        if dtypes.is_extended(aval.dtype) and len({a.dtype for a in avals}) > 1:
            names = ", ".join(full_name(a.dtype) for a in avals)
            raise TypeError(f"{name} does not accept dtype{'s' * (len(avals) > 1)} {names}.")
    return promote_shapes(name, *promote_dtypes(*args, to=to))


def promote_args_inexact(name: str, *args: Any) -> list[Any]:
    return promote_args(name, *args, to=to_inexact)


def promote_args_numeric(name: str, *args: Any) -> list[Any]:
    return promote_args(name, *args, to=to_numeric)


def of_one_dtype(name: str, *args: Any, to: Callable[[DType], DType] = same) -> list[Any]:
    """Checked arguments as arrays of one dtype, whose shapes stay as they are."""
    first = _type_of(args[0])
    if first is not None and _stays(first.dtype, to):  # the common case, that they are such
        others = [_type_of(x) for x in args[1:]]
        if all(a is not None and a.dtype == first.dtype and a.weak_type == first.weak_type for a in others):
            return list(args)
    check_arraylike(name, *args)
    return [as_array(x) for x in promote_dtypes(*map(unwrap, args), to=to)]


def inexact(name: str, *args: Any) -> list[Any]:
    return of_one_dtype(name, *args, to=to_inexact)


def _float0_text(name: str) -> str:
    return (
        f"Called {name} with a float0 array. float0s do not support any operations by design because they are not "
        "compatible with non-trivial vector spaces. No implicit dtype conversion is done. You can use "
        "np.zeros_like(arr, dtype=float) to cast a float0 array to a regular zeros array. \n"
        "If you didn't expect to get a float0 you might have accidentally taken a gradient with respect to an "
        "integer argument."
    )


# --- arguments that must be concrete ----------------------------------------------------------------------------------


def canonical_dtype(dtype: Any, default: Any = None) -> DType:
    """A dtype argument as the user may write it; 64-bit types are narrowed with a warning, as in JAX."""
    if dtype is None:
        return canonicalize(default)
    wanted = as_dtype(dtype)
    got = canonicalize(wanted)
    if got != wanted and not (isinstance(dtype, type) and dtype in dtypes.PYTHON_SCALARS):
        warn_user(
            f"Explicitly requested dtype {full_name(wanted)} is not available, and will be truncated to dtype "
            f"{full_name(got)}. To enable more dtypes, set the enable_x64 configuration option or the "
            "POLYAX_ENABLE_X64 shell environment variable.",
        )
    return got


def canonicalize_axis(axis: Any, ndim: int) -> int:
    """A non-negative axis.

    Raises:
      AxisError: the axis is out of bounds; it is a ValueError and an IndexError.
    """
    return canonical_axis(index_of(axis, "axis"), ndim)


def canonicalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """``None`` means all axes; duplicates raise ``ValueError``."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(canonicalize_axis(a, ndim) for a in (axis if isinstance(axis, Sequence) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def index_of(x: Any, what: str) -> int:
    """A Python integer from anything that has ``__index__``; tracers raise ``TracerIntegerConversionError``."""
    if isinstance(x, float):
        raise TypeError(f"{what} must be an integer, got {x!r}")
    return operator.index(x)


def shape_of(x: Any) -> tuple[int, ...]:
    return x.aval.shape if isinstance(x, Typed) else np.shape(x)


concrete_shape = shape_tuple


def is_traced(x: Any) -> TypeGuard[Tracer]:
    return isinstance(x, Tracer)


def refuse_traced(x: Any, context: str) -> Any:
    """``x``, or the value that a tracer knows; raises ``ConcretizationTypeError`` where no value is there to decide."""
    if isinstance(x, Tracer):
        if (value := x.known()) is not None:
            return value
        raise errors.ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: traced array with shape "
            f"{x.aval.str_short()}\n{context}{x.origin()}"
        )
    return x
