"""Changes of representation: dtypes, bits, precision, and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import DType
from polyax.ir.jaxpr import Literal
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes import factors
from polyax.ops.basis import (
    binary,
    broadcast_in_dim,
    broadcasted_iota,
    convert,
    convert_element_type_p,
    move_axis,
    mul,
    neg,
    reduce_sum,
    unary,
    zeros_like,
)
from polyax.ops.compare import shift_left, shift_right_logical
from polyax.ops.define import ANY, ANY_OR_KEY, COMPLEXES, FLOAT, Accepts, elementwise, elementwise_batch, flat_jvp
from polyax.trace.recording import DynamicJaxprTrace
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_map

__all__ = [
    "bitcast_convert_type", "bitcast_convert_type_p", "complex", "complex_p", "conj", "conj_p", "copy", "copy_p",
    "imag", "imag_p", "real", "real_p", "reduce_precision", "reduce_precision_p", "stop_gradient", "stop_gradient_p",
]  # fmt: skip

# --- dtypes ---------------------------------------------------------------------------------------------------------


@def_rule(convert_element_type_p, "abstract_eval")
def _convert_abstract(x: ShapedArray, *, new_dtype: DType, weak_type: bool) -> list[ShapedArray]:
    if x.dtype != new_dtype and (dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype)):
        names = map(dtypes.full_name, (x.dtype, new_dtype))
        raise ValueError("Cannot convert_element_type from {} to {}".format(*names))
    return [ShapedArray(x.shape, new_dtype, weak_type)]


@def_rule(convert_element_type_p, "record")
def _convert_record(trace: DynamicJaxprTrace, args: Any, params: Any) -> list[Any]:
    """A scalar that is written in place is written as what it becomes."""
    dtype = params["new_dtype"]
    literal = trace.atom(args[0])
    if type(literal) is not Literal or not _is_exact(literal.val, dtype):
        return trace.record(convert_element_type_p, args, params)
    return [trace.literal(literal.val, ShapedArray((), dtype, params["weak_type"]))]


def _is_exact(value: Any, dtype: DType) -> bool:
    """Whether NumPy converts a scalar as devices do: they may differ where a type can't hold it."""
    if not {dtype, np.asarray(value).dtype} <= dtypes.ALL or np.iscomplexobj(value) != dtypes.is_complex(dtype):
        return False
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return bool(info.min <= value <= info.max)
    return not dtypes.is_float(dtype) or not np.isfinite(value) or bool(abs(value) <= dtypes.finfo(dtype).max)


@def_rule(convert_element_type_p, "jvp")
def _convert_jvp(primals: Any, tangents: Any, *, new_dtype: DType, weak_type: bool) -> Any:
    """Linear between inexact types; the tangent of an integer is nothing."""
    y = convert_element_type_p.bind1(*primals, new_dtype=new_dtype, weak_type=weak_type)
    if type(tangents[0]) is Zero or not dtypes.is_inexact(new_dtype):
        return [y], [Zero.of(y)]
    return [y], [convert_element_type_p.bind1(tangents[0], new_dtype=new_dtype, weak_type=weak_type)]


@def_rule(convert_element_type_p, "transpose")
def _convert_transpose(cts: Any, x: Any, *, new_dtype: DType, weak_type: bool) -> list[Any]:
    if type(cts[0]) is Zero:
        return [Zero(x.aval)]
    return [convert_element_type_p.bind1(cts[0], new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)]


convert_element_type_p.linear_in = (0,)
convert_element_type_p.batch = elementwise_batch(convert_element_type_p)
convert_element_type_p.elementwise = True
convert_element_type_p.factors = factors.elementwise

bitcast_convert_type_p = Primitive("bitcast_convert_type")


@def_rule(bitcast_convert_type_p, "abstract_eval")
def _bitcast_abstract(x: ShapedArray, *, new_dtype: DType) -> list[ShapedArray]:
    for dtype in filter(dtypes.is_extended, (x.dtype, new_dtype)):
        raise ValueError(f"bitcast_convert_type: unexpected {dtype=}; random.key_data gives the words of keys")
    shape = _bitcast_shape(x, new_dtype)
    if x.dtype != new_dtype and not {x.dtype, new_dtype}.isdisjoint(dtypes.BOOL | dtypes.COMPLEX):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand and destination types "
            f"match. Got operand dtype={x.dtype}, new_dtype={new_dtype}. Consider using the arr.view() method instead."
        )
    return [ShapedArray(shape, new_dtype)]


def _bitcast_shape(x: ShapedArray, new_dtype: DType) -> tuple[Any, ...]:
    """A last dimension is made of the narrower parts of each value, or used up by wider ones."""
    old, new = dtypes.bits_of(x.dtype), dtypes.bits_of(new_dtype)
    if old == new:
        return x.shape
    if old > new:
        return (*x.shape, old // new)
    last = x.shape[-1] if x.shape else 1
    if last * old != new:
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype} of size {old} bits to {new_dtype} "
            f"of size {new} bits, but {last} * {old} != {new}"
        )
    return x.shape[:-1]


@def_rule(bitcast_convert_type_p, "batch")
def _bitcast_batch(axis: Any, args: Any, dims: Any, *, new_dtype: DType) -> Any:
    return bitcast_convert_type_p.bind_all(move_axis(args[0], dims[0], 0), new_dtype=new_dtype), [0]


@def_rule(bitcast_convert_type_p, "factors")
def _bitcast_factors(x: ShapedArray, *, new_dtype: DType) -> factors.Factors:
    """A last dimension that is made or used up stays whole."""
    (y,) = _bitcast_abstract(x, new_dtype=new_dtype)
    return factors.leading(min(x.ndim, y.ndim), [x], [y])


@def_rule(bitcast_convert_type_p, "decompose")
def _bitcast_decompose(x: Any, *, new_dtype: DType) -> list[Any]:
    """Between types of different widths, by shifts: what is narrower lies in what is wider, the lowest bits first.
    Between those of equal widths there is nothing simpler."""
    widths = [dtypes.bits_of(d) for d in (aval_of(x).dtype, new_dtype)]
    if widths[0] == widths[1]:
        return [_as_type(x, new_dtype)]
    own, other = (np.dtype(f"uint{width}") for width in widths)
    bits = _as_type(x, own)
    made = _cut(bits, own, other) if own.itemsize > other.itemsize else _joined(bits, own, other)
    return [_as_type(made, new_dtype)]


def _as_type(x: Any, dtype: DType) -> Any:
    return x if aval_of(x).dtype == dtype else bitcast_convert_type_p.bind1(x, new_dtype=dtype)


def _cut(bits: Any, own: DType, other: DType) -> Any:
    shape = (*np.shape(bits), own.itemsize // other.itemsize)
    spread = broadcast_in_dim(bits, shape, range(len(shape) - 1))
    return convert(shift_right_logical(spread, _places(own, shape, other)), other)


def _joined(bits: Any, own: DType, other: DType) -> Any:
    moved = shift_left(convert(bits, other), _places(other, np.shape(bits), own))
    return reduce_sum(moved, (np.ndim(bits) - 1,))


def _places(dtype: DType, shape: tuple[int, ...], part: DType) -> Any:
    """Where parts along the last dimension begin."""
    return mul(broadcasted_iota(dtype, shape, len(shape) - 1), dtype.type(8 * part.itemsize))


bitcast_convert_type_p.jvp = flat_jvp(bitcast_convert_type_p)
bitcast_convert_type_p.never("transpose", "bits are not linear")


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The same bits as another type; a difference in width becomes (or uses up) a last dimension.

    Raises:
      ValueError: the last dimension doesn't hold one element of the wider type.
      TypeError: one of both types is bool or complex, and not the other one.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> hex(lax.bitcast_convert_type(jnp.float32(1), jnp.uint32))
    '0x3f800000'
    """
    return bitcast_convert_type_p.bind1(operand, new_dtype=dtypes.canonicalize(new_dtype))


# --- precision ------------------------------------------------------------------------------------------------------

reduce_precision_p = elementwise(
    "reduce_precision", FLOAT, lambda t, z, x, **p: reduce_precision(t, **p), linear_in=(0,), out=lambda d, **p: d
)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """``operand`` rounded to what a format of the given widths holds, in its own dtype."""
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    return reduce_precision_p.bind1(operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits))


copy_p = elementwise("copy", ANY_OR_KEY, lambda t, z, x: copy(t), linear_in=(0,))
copy = unary(copy_p, "A new array with the contents of ``x``.")

stop_gradient_p = elementwise("stop_gradient", ANY)


def stop_gradient(x: Any) -> Any:
    """``x``, a tree of arrays, as a constant of differentiation.

    >>> import polyax
    >>> polyax.grad(lambda x: x * polyax.lax.stop_gradient(x))(3.0).item()
    3.0
    """
    return tree_map(lambda leaf: stop_gradient_p.bind1(leaf) if dtypes.is_inexact(aval_of(leaf).dtype) else leaf, x)


# --- complex numbers ------------------------------------------------------------------------------------------------
# Cotangents pair with tangents by real(ct * t) without conjugation, so that holomorphic functions keep their formulas:
# real: t -> Re t has the transpose ct -> ct + 0i, and imag: t -> Im t has ct -> 0 - ct i.


def _complex_of(x: DType, y: DType | None = None) -> DType:
    return np.dtype(f"complex{16 * x.itemsize}")


_SINGLE, _DOUBLE = (frozenset([np.dtype(name)]) for name in ("float32", "float64"))
"""What a complex number has as real and imaginary part."""

complex_p = elementwise(
    "complex",
    (Accepts(float32=_SINGLE, float64=_DOUBLE),) * 2,
    (lambda t, z, x, y: complex(t, zeros_like(t)), lambda t, z, x, y: complex(zeros_like(t), t)),
    transposes=(lambda ct: real(ct), lambda ct: neg(imag(ct))),
    out=_complex_of,
)
real_p = elementwise(
    "real",
    COMPLEXES,
    lambda t, z, x: real(t),
    transposes=(lambda ct: complex(ct, zeros_like(ct)),),
    out=dtypes.real_part,
)
imag_p = elementwise(
    "imag",
    COMPLEXES,
    lambda t, z, x: imag(t),
    transposes=(lambda ct: complex(zeros_like(ct), neg(ct)),),
    out=dtypes.real_part,
)
conj_p = elementwise(
    "conj",
    Accepts(float32=_SINGLE, float64=_DOUBLE, complexfloating=dtypes.COMPLEX),
    lambda t, z, x, input_dtype: conj(t),
    transposes=(lambda ct, input_dtype: conj(ct) if dtypes.is_complex(input_dtype) else real(ct),),
    out=lambda d, input_dtype: d if dtypes.is_complex(d) else _complex_of(d),
)

real = unary(real_p, "Real part of a complex array.")
imag = unary(imag_p, "Imaginary part of a complex array.")
complex = binary(complex_p, "``x + 1j * y`` of two float arrays.")


def conj(x: Any) -> Any:
    """The complex conjugate; complex also for a real ``x``."""
    return conj_p.bind1(x, input_dtype=aval_of(x).dtype)
