"""The primitives that rules of several families are written in, and the functions that apply them.

Their rules stand with their families (``elementwise``, ``shape``, ``reduce``); declaring them here keeps the families
from importing each other in a circle. Must not know any rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, Typed, aval_of
from polyax.ir.dims import dim_index
from polyax.ir.dtypes import PYTHON_SCALARS, DType
from polyax.ir.errors import InconclusiveDimensionOperation
from polyax.ir.primitive import Primitive
from polyax.meshes.explicit import with_dim
from polyax.meshes.resharding import placed_as, retyped
from polyax.trace.tracer import Tracer
from polyax.trace.varying import pvary

__all__ = [
    "add", "add_p", "broadcast_in_dim", "broadcast_in_dim_p", "broadcasted_iota", "convert_element_type",
    "convert_element_type_p", "div", "div_p", "empty", "eq", "eq_p", "expand_dims", "full", "full_like", "iota",
    "iota_p", "mul", "mul_p", "neg", "neg_p", "reduce_sum", "reduce_sum_p", "reshape", "reshape_p", "select_n",
    "select_n_p", "squeeze", "squeeze_p", "sub", "sub_p", "transpose", "transpose_p", "zeros_like",
]  # fmt: skip

Array = Any  # a tracer, Array, NumPy array or scalar

add_p = Primitive("add")
sub_p = Primitive("sub")
mul_p = Primitive("mul", unset=["out_dtype"])
div_p = Primitive("div")
neg_p = Primitive("neg")
eq_p = Primitive("eq")
select_n_p = Primitive("select_n")
convert_element_type_p = Primitive("convert_element_type", unset=["sharding"])
broadcast_in_dim_p = Primitive("broadcast_in_dim", unset=["sharding"])
reshape_p = Primitive("reshape", unset=["sharding"])
squeeze_p = Primitive("squeeze")
transpose_p = Primitive("transpose")
iota_p = Primitive("iota", unset=["sharding"])
reduce_sum_p = Primitive("reduce_sum", unset=["out_sharding"])
random_wrap_p = Primitive("random_wrap")

_KIND_RANK = {bool: 0, int: 1, float: 2, complex: 3}
_DTYPE_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
_PYTHON_KIND: dict[str, type] = {"i": int, "f": float, "c": complex}


def scalar(x: Any, dtype: DType) -> Any:
    """The Python scalar ``x`` as an operand beside arrays of ``dtype``.

    It stays a (weakly typed) Python scalar where ``dtype`` is that of one, and where conversion would lose its kind:
    the primitive's own check then names both dtypes.

    Raises:
      OverflowError: an integer is out of the range of ``dtype``.
    """
    if dtypes.is_extended(dtype) or _KIND_RANK[type(x)] > _DTYPE_RANK[dtype.kind]:
        return x
    converted, kind = dtype.type(x), _PYTHON_KIND.get(dtype.kind)
    return kind(x) if kind and dtypes.canonicalize(PYTHON_SCALARS[kind]) == dtype else converted


def same_dtype(*operands: Any) -> tuple[Any, ...]:
    """``operands`` with Python scalars converted to the dtype of the first that is none, else to one kind."""
    for x in operands:
        if type(x) not in PYTHON_SCALARS:
            dtype = aval_of(x).dtype
            return tuple(scalar(y, dtype) if type(y) in PYTHON_SCALARS else y for y in operands)
    kind = max(map(type, operands), key=_KIND_RANK.__getitem__)
    return tuple(map(kind, operands))


def binary(primitive: Primitive, doc: str, name: str | None = None) -> Callable[[Array, Array], Array]:
    """The public function of an elementwise primitive with two operands, called as the primitive unless ``name``."""

    def apply(x: Array, y: Array) -> Array:
        if type(x) in PYTHON_SCALARS or type(y) in PYTHON_SCALARS:
            x, y = same_dtype(x, y)
        return primitive.bind1(x, y)

    return named(apply, name or primitive.name, doc)


def unary(primitive: Primitive, doc: str, name: str | None = None) -> Callable[[Array], Array]:
    """The public function of an elementwise primitive with one operand, called as the primitive unless ``name``."""

    def apply(x: Array) -> Array:
        return primitive.bind1(x)

    return named(apply, name or primitive.name, doc)


def named(fun: Any, name: str, doc: str) -> Any:
    """``fun`` under the name and with the documentation that users see."""
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc
    return fun


def shape_tuple(shape: Any, context: str = "") -> tuple[int, ...]:
    """``shape`` as a tuple of Python integers; a lone integer is a shape of one dimension.

    Raises:
      TypeError: a dimension is traced, or no integer; the message ends with ``context``.
    """
    try:
        return tuple(map(index, shape))
    except (TypeError, InconclusiveDimensionOperation):
        return _checked_dims(shape, context)


def _checked_dims(shape: Any, context: str) -> tuple[int, ...]:
    """Dimensions that aren't all numbers: symbolic ones, a lone one, or those that are refused."""
    dims = tuple(shape) if isinstance(shape, (tuple, list)) or np.ndim(shape) == 1 else (shape,)
    remedy = next((_STATIC_REMEDY + d.origin() for d in dims if isinstance(d, Tracer)), "")
    try:
        if not remedy:
            return tuple(map(dim_index, dims))
    except TypeError:
        pass
    text = f"Shapes must be 1D sequences of concrete values of integer type, got {dims}."
    raise TypeError((f"{text} {context}." if context else text) + remedy)


_STATIC_REMEDY = "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."


def canonical_axis(axis: int, ndim: int) -> int:
    """``axis`` in ``[0, ndim)``; negative ones count from the end.

    Raises:
      AxisError: it is out of bounds. This error of NumPy's is a ValueError and an IndexError.
    """
    axis = index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


add = binary(add_p, "Elementwise sum.")
sub = binary(sub_p, "Elementwise difference.")


def mul(x: Array, y: Array, *, out_dtype: Any = None) -> Array:
    """Elementwise product; that of the operands as ``out_dtype``, if it is given."""
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    elif type(x) in PYTHON_SCALARS or type(y) in PYTHON_SCALARS:
        x, y = same_dtype(x, y)
    return mul_p.bind1(x, y)


div = binary(div_p, "Elementwise quotient; integers round toward zero, and anything over zero is -1.")
neg = unary(neg_p, "Elementwise negation.")
eq = binary(eq_p, "Elementwise ``x == y``.")


def select_n(which: Array, *cases: Array) -> Array:
    """Elementwise ``cases[which]``; ``which`` is boolean or integer, of the shape of the cases or scalar.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.select_n(jnp.array([2, 0]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6])).tolist()
    [5, 2]
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind1(which, *same_dtype(*cases))


def convert_element_type(operand: Array, new_dtype: Any) -> Array:
    """``operand`` as ``new_dtype``; float to integer truncates, saturates, and makes 0 of NaN.

    Raises:
      TypeError: a complex number of Python for a real dtype.

    >>> import numpy as np
    >>> from polyax import lax
    >>> lax.convert_element_type(np.array([1.7, 300.0]), np.int8).tolist()
    [1, 127]
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified.")
    dtype = dtypes.canonicalize(new_dtype)
    if isinstance(operand, np.integer):  # it may be wider than what arrays hold
        operand = int(operand)
    return convert(dtypes.wrapped(operand, dtype) if type(operand) in (int, complex) else operand, dtype)


def as_is(x: Array) -> Array:
    """``x`` as an array, of the type that it has: in programs a scalar needs no equation for that."""
    return x if isinstance(x, Typed) else convert(x, aval_of(x).dtype, aval_of(x).weak_type)


def convert(operand: Array, dtype: DType, weak_type: bool = False) -> Array:
    """``operand`` as ``dtype`` and ``weak_type``; itself if it is so already."""
    aval = aval_of(operand)
    if aval.dtype == dtype and aval.weak_type == weak_type and isinstance(operand, Typed):
        return operand
    return convert_element_type_p.bind1(operand, new_dtype=dtype, weak_type=bool(weak_type))


def broadcast_in_dim(
    operand: Array, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """``operand`` in a larger shape; its dimension ``i`` becomes ``broadcast_dimensions[i]`` of the result.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.broadcast_in_dim(lax.iota(jnp.int32, 2), (2, 3), (0,)).tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    if out_sharding is not None:
        return placed_as(out_sharding, broadcast_in_dim, operand, shape, broadcast_dimensions)
    shape, dims = shape_tuple(shape), tuple(map(index, broadcast_dimensions))
    if len({*dims}) == len(dims) == np.ndim(operand) and list(dims) != sorted(dims):
        operand, dims = transpose(operand, np.argsort(dims)), tuple(sorted(dims))
    if dims == tuple(range(len(shape))) and np.shape(operand) == shape:
        return as_is(operand)
    return broadcast_in_dim_p.bind1(operand, shape=shape, broadcast_dimensions=dims)


def reshape(
    operand: Array, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """The elements of ``operand``, in row-major order (of ``dimensions``, if given), in the shape ``new_sizes``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.reshape(lax.iota(jnp.int32, 4), (2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    if out_sharding is not None:
        return placed_as(out_sharding, reshape, operand, new_sizes, dimensions)
    new_sizes = shape_tuple(new_sizes)
    if dimensions is not None:
        if sorted(dimensions) != list(range(np.ndim(operand))):
            raise TypeError(
                "reshape dimensions must be a permutation of operand dimensions, "
                f"got dimensions {tuple(dimensions)} for shape {np.shape(operand)}."
            )
        operand = transpose(operand, dimensions)
    if np.shape(operand) == new_sizes and isinstance(operand, Typed):
        return operand
    return reshape_p.bind1(operand, new_sizes=new_sizes, dimensions=None)


def squeeze(array: Array, dimensions: Sequence[int]) -> Array:
    """``array`` without the given dimensions, which must have size 1."""
    if not dimensions and isinstance(array, Typed):
        return array
    ndim = np.ndim(array)
    dims = tuple(sorted(canonical_axis(d, ndim) for d in dimensions))
    return squeeze_p.bind1(array, dimensions=dims)


def expand_dims(array: Array, dimensions: Sequence[int]) -> Array:
    """``array`` with dimensions of size 1 inserted, so that they are at the positions ``dimensions`` of the result."""
    ndim = np.ndim(array) + len(dimensions)
    new = {canonical_axis(d, ndim) for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    old = [i for i in range(ndim) if i not in new]
    sizes = [1] * ndim
    for i, n in zip(old, np.shape(array), strict=True):
        sizes[i] = n
    return broadcast_in_dim(array, sizes, old)


def transpose(operand: Array, permutation: Iterable[int]) -> Array:
    """``operand`` with dimension ``permutation[i]`` as its dimension ``i``."""
    permutation = tuple(map(index, permutation))
    if permutation == tuple(range(np.ndim(operand))) and isinstance(operand, Typed):
        return operand
    return transpose_p.bind1(operand, permutation=permutation)


def reduce_sum(operand: Array, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over ``axes``."""
    if out_sharding is not None:
        return placed_as(out_sharding, reduce_sum, operand, axes)
    return reduce_sum_p.bind1(operand, axes=tuple(map(index, axes)))


# --- compositions of the above --------------------------------------------------------------------------------------


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> Array:
    """An array of ``shape``, filled with the scalar ``fill_value``, whose (weak) type it has unless ``dtype`` is given.

    Raises:
      TypeError: ``fill_value`` is no scalar.

    >>> from polyax import lax
    >>> lax.full((2,), 1.5).tolist()
    [1.5, 1.5]
    """
    if np.ndim(fill_value):
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}.")
    if dtype is not None:
        dtype = dtypes.canonicalize(dtype)
        known = type(fill_value) in PYTHON_SCALARS
        if known and dtypes.is_extended(dtype):  # keys whose words are all alike
            words = full((*shape_tuple(shape), *dtype.element_shape), fill_value, dtype.physical)
            return random_wrap_p.bind1(words, impl=dtype.impl)
        fill_value = dtypes.wrapped(fill_value, dtype) if known else convert(fill_value, dtype)
    return broadcast_in_dim(fill_value, shape, ())


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of ``shape`` whose contents don't matter (zeros)."""
    if out_sharding is not None:
        return placed_as(out_sharding, empty, shape, dtype)
    return full(shape, 0, dtype)


def full_like(x: Array | ShapedArray, fill_value: Any, dtype: Any = None, shape: Any = None) -> Array:
    """``full`` with the shape and dtype (and weak type) of ``x``, an array or a type, where they aren't given."""
    aval = x if isinstance(x, ShapedArray) else aval_of(x)
    if dtype is None and aval.weak_type and type(fill_value) in PYTHON_SCALARS:
        fill_value, dtype = weak_scalar(fill_value, aval.dtype), None
    elif dtype is None:
        dtype = aval.dtype
    made = full(aval.shape if shape is None else shape, fill_value, dtype)
    return pvary(made, aval.vma) if aval.vma else made


def weak_scalar(value: Any, dtype: DType) -> Any:
    """``value`` as a Python scalar of ``dtype``; as a NumPy scalar where no kind of Python scalars has it."""
    kind = {"i": int, "f": float, "c": complex}.get(dtype.kind)
    if kind is None or dtypes.canonicalize(PYTHON_SCALARS[kind]) != dtype:
        return dtype.type(value)
    return kind(value)


def zeros(aval: Any) -> Array:
    """An array of zeros (False) of the type ``aval``."""
    if aval.weak_type:
        return broadcast_in_dim(weak_scalar(0, aval.dtype), aval.shape, ())
    return full(aval.shape, False if aval.dtype == np.bool_ else 0, aval.dtype)


def zeros_like(x: Array) -> Array:
    return zeros(aval_of(x))


def iota(dtype: Any, size: int) -> Array:
    """``[0, 1, ..., size - 1]``."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """An array of ``shape`` that holds each element's index along ``dimension``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if out_sharding is not None:
        return placed_as(out_sharding, broadcasted_iota, dtype, shape, dimension)
    kind = dtypes.canonicalize(dtype)
    if dtypes.is_complex(kind):  # kernels count in real numbers
        return convert(broadcasted_iota(dtypes.real_part(kind), shape, dimension), kind)
    return iota_p.bind1(dtype=kind, shape=shape_tuple(shape), dimension=index(dimension))


def stretched(x: Array, shape: tuple[int, ...]) -> Array:
    """``x``, a scalar or of the rank of ``shape``, stretched to ``shape``."""
    have = np.shape(x)
    return x if have == shape else broadcast_in_dim(x, shape, range(len(shape) - len(have), len(shape)))


def move_axis(x: Array, source: int, destination: int) -> Array:
    """``x`` with dimension ``source`` at position ``destination`` and the others in order."""
    if source == destination:
        return x
    order = [i for i in range(np.ndim(x)) if i != source]
    order.insert(destination, source)
    return transpose(x, order)


def batch_axis_at(x: Array, axis: int | None, destination: int, size: int) -> Array:
    """``x`` with its batch axis at ``destination``; one of ``size`` equal examples is made if it has none."""
    if axis is not None:
        return move_axis(x, axis, destination)
    shape = list(np.shape(x))
    kept = [i for i in range(len(shape) + 1) if i != destination]
    return broadcast_in_dim(x, (*shape[:destination], size, *shape[destination:]), kept)


def match_axis(axis: Any, source: int | None, target: int | None, x: Any) -> Any:
    """``x`` with its batch dimension where it is wanted; broadcast if it has none."""
    if target is None:
        if source is not None:
            raise ValueError(f"a batched value (mapped over axis {source}) can't be returned as unbatched")
        return x
    moved = batch_axis_at(x, source, target, axis.size)
    return moved if source is not None or not axis.cut else retyped(moved, batched_aval(aval_of(x), axis, target))


def batched_aval(aval: ShapedArray, axis: Any, dim: int | None) -> ShapedArray:
    """The type with the mapped dimension at ``dim``."""
    return aval if dim is None else with_dim(aval, dim, axis.size, axis.cut, axis.mesh)


def unbroadcast(ct: Array, shape: tuple[int, ...]) -> Array:
    """The transpose of stretching ``shape`` to the shape of ``ct``: sums over the stretched dimensions."""
    have = np.shape(ct)
    if have == shape:
        return ct
    if not shape:
        return reduce_sum(ct, range(len(have)))
    axes = [i for i, (n, m) in enumerate(zip(shape, have, strict=True)) if n != m]
    return reshape(reduce_sum(ct, axes), shape)
