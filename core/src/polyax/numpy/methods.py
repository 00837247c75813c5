"""Operators, methods and properties of arrays and tracers, installed once when this module is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, Typed
from polyax.ir.refs import AbstractRef, is_ref
from polyax.lax import lenient as lax
from polyax.meshes.current import without_mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import PartitionSpec
from polyax.numpy import (
    arrays,
    diagonals,
    editing,
    indexing,
    joining,
    logic,
    products,
    reductions,
    selection,
    shapes,
    ufuncs,
)
from polyax.numpy.at import AtIndexer
from polyax.numpy.promotion import canonical_dtype, check_arraylike
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import device_put, everywhere, from_host, part_with
from polyax.runtime.running.repeated import repeating
from polyax.trace.operators import install_operators
from polyax.trace.tracer import Tracer

_OPERANDS = (Typed, int, float, complex, np.generic, np.ndarray)
_SEQUENCES = (list, tuple)


# --- operators --------------------------------------------------------------------------------------------------------


def _operand(other: Any) -> Any:
    """What an operator can work with, or None: the other operand then gets its turn."""
    if isinstance(other, _OPERANDS):
        return other
    return other.__jax_array__() if hasattr(other, "__jax_array__") else None


def _refuse(symbol: str, first: Any, second: Any) -> TypeError:
    return TypeError(
        f"unsupported operand type(s) for {symbol}: {type(first).__name__!r} and {type(second).__name__!r}"
    )


def _forward(fun: Callable[[Any, Any], Any], symbol: str, refused: tuple[type, ...] = ()) -> Callable[[Any, Any], Any]:
    def operation(self: Any, other: Any) -> Any:
        value = _operand(other)
        if value is not None:
            return fun(self, value)
        if type(other) in refused:
            raise _refuse(symbol, self, other)
        return NotImplemented

    return operation


def _reflected(
    fun: Callable[[Any, Any], Any], symbol: str, refused: tuple[type, ...] = ()
) -> Callable[[Any, Any], Any]:
    def operation(self: Any, other: Any) -> Any:
        value = _operand(other)
        if value is not None:
            return fun(value, self)
        if type(other) in refused:
            raise _refuse(symbol, other, self)
        return NotImplemented

    return operation


_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any], tuple[type, ...]]] = {
    "add": ("+", ufuncs.add, _SEQUENCES),
    "sub": ("-", ufuncs.subtract, ()),
    "mul": ("*", ufuncs.multiply, _SEQUENCES),
    "truediv": ("/", ufuncs.true_divide, ()),
    "floordiv": ("//", ufuncs.floor_divide, ()),
    "mod": ("%", ufuncs.remainder, ()),
    "divmod": ("divmod()", ufuncs.divmod, ()),
    "pow": ("**", ufuncs.power, ()),
    "matmul": ("@", products.matmul, ()),
    "and": ("&", logic.bitwise_and, ()),
    "or": ("|", logic.bitwise_or, ()),
    "xor": ("^", logic.bitwise_xor, ()),
    "lshift": ("<<", logic.left_shift, ()),
    "rshift": (">>", logic.right_shift, ()),
}

_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], Any], tuple[type, ...]]] = {
    "eq": ("==", logic.equal, (dict, list, set, tuple)),
    "ne": ("!=", logic.not_equal, (dict, list, set, tuple)),
    "lt": ("<", logic.less, ()),
    "le": ("<=", logic.less_equal, ()),
    "gt": (">", logic.greater, ()),
    "ge": (">=", logic.greater_equal, ()),
}


def _operators() -> dict[str, Callable[..., Any]]:
    found = {
        f"__{name}__": _forward(f, symbol, refused) for name, (symbol, f, refused) in (_BINARY | _COMPARISONS).items()
    }
    found |= {f"__r{name}__": _reflected(f, symbol, refused) for name, (symbol, f, refused) in _BINARY.items()}
    unary = {"neg": ufuncs.negative, "pos": ufuncs.positive, "abs": ufuncs.absolute, "invert": logic.bitwise_not}
    return found | {f"__{name}__": _unary(f) for name, f in unary.items()}


def _unary(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: fun(self)


def _round(self: Any, ndigits: int | None = None) -> Any:
    """As for Python's floats: an integer, unless places are given."""
    rounded = ufuncs.round(self, ndigits or 0)
    return arrays.astype(rounded, int) if ndigits is None else rounded


def _getitem(self: Any, index: Any) -> Any:
    return _item(self, _hashable(index))


def _hashable(index: Any) -> Any:
    """An index with tuples for slices, which have no hashes."""
    if type(index) is slice:
        return (slice, index.start, index.stop, index.step)
    return tuple([_hashable(k) for k in index]) if type(index) is tuple else index


def _index_of(form: Any) -> Any:
    if type(form) is not tuple:
        return form
    return slice(*form[1:]) if form and form[0] is slice else tuple(map(_index_of, form))


@repeating
def _item(self: Any, form: Any) -> Any:
    index = _index_of(form)
    if not _in_parts_here(self):
        return indexing.getitem(self, index) if type(self.aval) is not AbstractRef else _refs().get(self, index)
    part, index = part_with(self, index)
    if part is self:
        return indexing.getitem(self, index)
    with without_mesh():  # a part lies on one device alone
        return everywhere(indexing.getitem(part, index), self.sharding)


def _in_parts_here(x: Any) -> bool:
    """Whether a row can be taken from the part that holds it, and lies on all devices then."""
    if not is_concrete(x) or x.aval.told is not None or not isinstance(x.sharding, NamedSharding):
        return False
    return x.sharding.num_devices > 1 and x.is_fully_addressable and not x.is_sum


def _iter(self: Any) -> Iterator[Any]:
    return _rows(self, range(len(self)) if self.shape else None)


def _reversed(self: Any) -> Iterator[Any]:
    return _rows(self, reversed(range(len(self))) if self.shape else None)


def _rows(x: Any, positions: Iterable[int] | None) -> Iterator[Any]:
    """Rows of an array are cut on the host, where a program for each would take a thousand times longer."""
    if positions is None:
        raise TypeError("iteration over a 0-d array")
    if not isinstance(x, Tracer):
        rows, aval = x.host_value(), ShapedArray(x.shape[1:], x.dtype, x.weak_type)
        where = x.sharding
        if where.num_devices > 1 and where.is_fully_replicated and isinstance(where, NamedSharding):
            return (device_put(rows[i], NamedSharding(where.mesh, PartitionSpec())) for i in positions)
        device, put = x.addressable_shards[0].device, x.committed and x.sharding.num_devices == 1
        made = (from_host(rows[i], device, aval) for i in positions)
        return (row.commit() for row in made) if put else made
    return (lax.index_in_dim(x, i, 0, keepdims=False) for i in positions)


def _contains(self: Any, item: Any) -> bool:
    if item is None or isinstance(item, str):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(item)}.")
    check_arraylike("Array.__contains__", item)
    if self.ndim != 1:
        raise ValueError(
            f"Array.__contains__: search array must be one-dimensional, got arr.shape={self.shape}. Write "
            "(arr == item).any()."
        )
    if (shape := np.shape(item)) != ():
        raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={shape}")
    return bool(reductions.any(logic.equal(self, item)))


# --- methods ----------------------------------------------------------------------------------------------------------


def _reshape(self: Any, *args: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None) -> Any:
    """``reshape(2, 3)`` and ``reshape((2, 3))``."""
    return shapes.reshape(self, args[0] if len(args) == 1 else args, order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    alone = len(args) == 1 and (not hasattr(args[0], "__index__") or getattr(args[0], "ndim", 0))
    axes = args[0] if alone else args
    return shapes.transpose(self, None if axes is None else tuple(axes) or None)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    return arrays.astype(self, dtype, copy=copy, device=device)


def _copy(self: Any) -> Any:
    return arrays.array(self, copy=True)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bytes as another dtype; the last dimension grows or shrinks with the width.

    Raises:
      ValueError: the last dimension doesn't hold whole elements.
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    target = canonical_dtype(dtype)
    have, want = dtypes.bits_of(self.dtype), dtypes.bits_of(target)
    if not self.shape and have != want:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if not self.shape:
        return lax.squeeze(_reinterpreted(lax.expand_dims(self, (0,)), target), (0,))
    if self.shape[-1] * have % want:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last "
            "axis of the array."
        )
    return _reinterpreted(self, target)


def _reinterpreted(x: Any, target: Any) -> Any:
    if x.dtype == target:
        return x
    if x.dtype in dtypes.BOOL:
        return _reinterpreted(lax.convert_element_type(x, np.uint8), target)
    if target in dtypes.BOOL:
        return lax.ne(_reinterpreted(x, np.dtype(np.uint8)), 0)
    if x.dtype in dtypes.COMPLEX:
        parts = lax.concatenate([lax.expand_dims(part(x), (x.ndim,)) for part in (lax.real, lax.imag)], x.ndim)
        return _reinterpreted(lax.reshape(parts, (*x.shape[:-1], 2 * x.shape[-1])), target)
    if target in dtypes.COMPLEX:
        parts = _reinterpreted(x, dtypes.finfo(target).dtype)
        pairs = lax.reshape(parts, (*parts.shape[:-1], parts.shape[-1] // 2, 2))
        return lax.complex(*(lax.index_in_dim(pairs, n, parts.ndim, keepdims=False) for n in (0, 1)))
    have, want = dtypes.bits_of(x.dtype), dtypes.bits_of(target)
    if have < want:
        return lax.bitcast_convert_type(
            lax.reshape(x, (*x.shape[:-1], x.shape[-1] * have // want, want // have)), target
        )
    result = lax.bitcast_convert_type(x, target)
    return result if have == want else lax.reshape(result, (*x.shape[:-1], x.shape[-1] * (have // want)))


def _compress(
    self: Any, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None,
    fill_value: Any = 0,
) -> Any:  # fmt: skip
    return editing.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _byteswap(self: Any) -> Any:
    """The bytes of each element in the opposite order."""
    if self.dtype in dtypes.COMPLEX:
        return lax.complex(_byteswap(lax.real(self)), _byteswap(lax.imag(self)))
    if self.dtype.itemsize == 1:
        return self
    swapped = lax.rev(lax.bitcast_convert_type(self, np.uint8), (self.ndim,))
    return lax.bitcast_convert_type(swapped, self.dtype)


def _to_device(self: Any, device: Any, *, stream: None = None) -> Any:
    """The array on ``device``.

    Raises:
      NotImplementedError: a stream is asked for.
    """
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return device_put(self, device)


def _array_namespace(self: Any, *, api_version: str | None = None) -> ModuleType:
    """``polyax.numpy``, for programs that compute with arrays of any library."""
    from polyax.numpy import standard

    return standard.array_namespace(self, api_version=api_version)


def _refs() -> Any:
    """What references do: loaded with the first of them."""
    from polyax.control.refs import access

    return access


def _setitem(self: Any, index: Any, value: Any) -> None:
    """Only references can be written to."""
    if is_ref(self):
        return _refs().set(self, index, value)
    raise TypeError(
        f"'{type(self)}' object does not support item assignment. JAX arrays are immutable. Instead of ``x[idx] = y``, "
        "use ``x = x.at[idx].set(y)`` or another .at[] method"
    )


def _at(self: Any) -> Any:
    return _refs().RefAt(self) if is_ref(self) else AtIndexer(self)


def _flat(self: Any) -> Any:
    raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.")


def _function(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument is the array, as a method."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return fun(self, *args, **kwargs)

    method.__name__, method.__doc__ = fun.__name__, fun.__doc__
    return method


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    reductions.all, reductions.any, reductions.cumprod, reductions.cumsum, reductions.max, reductions.mean,
    reductions.min, reductions.prod, reductions.ptp, reductions.std, reductions.sum, reductions.var, selection.argmax,
    selection.argmin, selection.argsort, selection.clip, selection.nonzero, selection.searchsorted, selection.sort,
    joining.repeat, products.dot, diagonals.diagonal, diagonals.trace, shapes.ravel, shapes.squeeze, shapes.swapaxes,
    indexing.take, ufuncs.round, editing.argpartition, editing.choose,
)  # fmt: skip

_NAMED: dict[str, Callable[..., Any]] = {
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__iter__": _iter,
    "__reversed__": _reversed,
    "__contains__": _contains,
    "__round__": _round,
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "copy": _copy,
    "__copy__": _copy,
    "__deepcopy__": lambda self, memo: _copy(self),
    "flatten": _function(shapes.ravel),
    "view": _view,
    "compress": _compress,
    "byteswap": _byteswap,
    "to_device": _to_device,
    "__array_namespace__": _array_namespace,
    "conj": _function(ufuncs.conj),
    "conjugate": _function(ufuncs.conj),
}

_PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": lambda self: shapes.transpose(self),
    "mT": lambda self: shapes.matrix_transpose(self),
    "at": _at,
    "real": lambda self: ufuncs.real(self),
    "imag": lambda self: ufuncs.imag(self),
    "flat": _flat,
}


_METHODS = {**_operators(), **{f.__name__: _function(f) for f in _FUNCTIONS}, **_NAMED}

install_operators(
    {name: repeating(method) for name, method in _METHODS.items()},
    {name: repeating(fget) for name, fget in _PROPERTIES.items()},
)
