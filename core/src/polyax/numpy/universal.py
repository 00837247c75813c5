"""Universal functions: elementwise functions as objects, with reductions, accumulations and more by loops.

The functions themselves are in ``ufuncs`` and ``logic``, which the library calls directly.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy import logic, reductions, ufuncs
from polyax.numpy.axes import reduction_axes
from polyax.numpy.broadcast import as_mask, broadcast_to
from polyax.numpy.extras import vectorize
from polyax.numpy.indexing import take
from polyax.numpy.promotion import as_array, convert, ensure_array, ensure_arrays, unwrap
from polyax.numpy.selection import where as where_
from polyax.numpy.shapes import along
from polyax.ops.basis import canonical_axis
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.running.repeated import repeating
from polyax.trace.recording import trace_to_jaxpr

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "subtract", "ufunc",
]  # fmt: skip


class ufunc:
    """An elementwise function of ``nin`` arrays with ``nout`` results, which broadcasts.

    Args:
      func: a function of scalars.
      identity: what a reduction begins with; the first element, if it is None.
      call: the same as ``func``, on arrays of any shapes; ``func`` is vectorised, if it is None.
      reduce: the reduction, where it can be had faster than by a loop; ``accumulate`` and ``at`` likewise.

    >>> import polyax.numpy as jnp
    >>> jnp.add.reduce(jnp.arange(5)).item(), jnp.multiply.outer(jnp.arange(2), jnp.arange(3)).tolist()
    (10, [[0, 0, 0], [0, 1, 2]])
    """

    def __init__(
        self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None, nargs: int | None = None,
        identity: Any = None, call: Callable[..., Any] | None = None, reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None, at: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.__name__ = self.__qualname__ = name or func.__name__
        self.__doc__ = func.__doc__
        self._func = func
        self.nin, self.nout, self.identity = operator.index(nin), operator.index(nout), identity
        self.nargs = nin if nargs is None else nargs
        self._call = repeating(call or vectorize(func))
        self._reduce, self._accumulate, self._at = reduce, accumulate, at

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):  # what it has been made with tells equal ones apart
            raise AttributeError(f"property {name!r} of 'ufunc' object has no setter")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._made_of() == other._made_of()

    def __hash__(self) -> int:
        return hash(self._made_of())

    def _made_of(self) -> tuple[Any, ...]:
        return self._func, self.__name__, self.identity, self.nin, self.nout, self.nargs

    @api_boundary
    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        """The results for arrays, which broadcast.

        Raises:
          NotImplementedError: ``out`` or ``where`` is given.
          TypeError: there are more or fewer than ``nargs`` arrays.
        """
        for name, given in (("out", out), ("where", where)):
            if given is not None:
                raise NotImplementedError(f"{name} argument of {self}")
        if len(args) != self.nargs:
            raise TypeError(f"{self.__name__}() takes {self.nargs} positional arguments but {len(args)} were given")
        return self._call(*args)

    @api_boundary
    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
        where: Any = None,
    ) -> Any:  # fmt: skip
        """All elements along ``axis`` combined, the first ones first.

        Raises:
          ValueError: not a function of two arguments with one result; no elements, or ``where``, without identity.
        """
        x = self._operand("reduce", a, dtype, out)
        where = None if where is None else _mask(where)
        if where is not None and initial is None and self.identity is None:
            raise ValueError(
                f"reduction operation '{self.__name__}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'."
            )
        if self._reduce is not None:
            return self._reduce(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        start = self.identity if initial is None else initial
        axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(canonical_axis(k, x.ndim) for k in axes)
        mask = None if where is None else _rows(broadcast_to(where, x.shape), axes)
        y = self._last(_rows(x, axes), start, mask, self._made(x, x) if dtype is None else x.dtype)
        return lax.expand_dims(y, axes) if keepdims else y

    def _last(self, rows: Any, start: Any, mask: Any, dtype: Any) -> Any:
        if start is None:
            if not rows.shape[0]:
                raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
            start, rows = rows[0], rows[1:]
        rows = convert(rows, dtype)
        first = lax.broadcast_in_dim(convert(start, dtype), rows.shape[1:], range(np.ndim(start)))

        def step(y: Any, item: Any) -> Any:
            new = convert(self._call(y, item[0]), dtype)
            return (new if mask is None else where_(item[1], new, y)), None

        return lax.scan(step, first, (rows,) if mask is None else (rows, mask))[0]

    def _made(self, *xs: Any) -> Any:
        """The dtype of what the function makes of scalars like ``xs``."""
        scalars = [aval_of(x).with_shape(()) for x in xs]
        (made,) = trace_to_jaxpr(lambda *ys: [as_array(self._call(*ys))], scalars).out_avals
        return made.dtype

    @api_boundary
    def accumulate(self, a: Any, axis: int | None = 0, dtype: Any = None, out: None = None) -> Any:
        """The elements up to each along ``axis`` combined.

        Raises:
          ValueError: not a function of two arguments with one result; several axes, but for sums and products.
        """
        x = self._operand("accumulate", a, dtype, out)
        if isinstance(axis, tuple) or (axis is None and self._accumulate is None and x.ndim != 1):
            raise ValueError("accumulate does not allow multiple axes")
        x, axis = along(x, axis)
        if self._accumulate is not None:
            return self._accumulate(x, axis=axis, dtype=dtype)
        x = convert(x, self._made(x, x) if dtype is None else x.dtype)
        if not x.shape[axis]:
            return x
        rows = lax.transpose(x, (axis, *(k for k in range(x.ndim) if k != axis)))

        def step(y: Any, x: Any) -> Any:
            y = convert(self._call(y, x), y.dtype)
            return y, y

        ys = lax.concatenate([rows[:1], lax.scan(step, rows[0], rows[1:])[1]], 0)
        return lax.transpose(ys, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))

    @api_boundary
    def outer(self, A: Any, B: Any, /) -> Any:
        """The result for each element of ``A`` with each of ``B``.

        Raises:
          ValueError: not a function of two arguments.
        """
        if self.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        a, b = ensure_arrays(f"{self.__name__}.outer", A, B)
        return self(lax.expand_dims(a, tuple(range(a.ndim, a.ndim + b.ndim))), b)

    @api_boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """A copy of ``a`` in which the elements at ``indices`` are replaced one after the other by their results.

        Raises:
          NotImplementedError: ``inplace`` isn't False: arrays don't change.
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at() can't change an array in place: pass inplace=False and take the result."
            )
        x = ensure_array(f"{self.__name__}.at", a)
        if self._at is not None:
            return self._at(x, indices, *([] if b is None else [b]))
        others = [] if b is None else [ensure_array(f"{self.__name__}.at", b)]
        dtype = self._made(x, *others)
        flat = lax.reshape(convert(x, dtype), (x.size,))
        places = lax.reshape(lax.iota(np.int32, x.size), x.shape).at[indices].get(mode="fill", fill_value=x.size)
        others = [lax.reshape(broadcast_to(convert(y, dtype), places.shape), (places.size,)) for y in others]

        def step(flat: Any, item: Any) -> Any:
            place, *values = item
            return flat.at[place].set(convert(self._call(flat[place], *values), dtype)), None

        if places.size:
            flat = lax.scan(step, flat, (lax.reshape(places, (places.size,)), *others))[0]
        return lax.reshape(flat, x.shape)

    @api_boundary
    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """The elements from each index up to the next combined; one element where the next isn't larger.

        Raises:
          ValueError: not a function of two arguments with one result, indices that aren't integers, or several axes.
          IndexError: there are indices, and the axis is empty.
        """
        x = self._operand("reduceat", a, None, out)
        starts = ensure_array(f"{self.__name__}.reduceat", indices)
        if not x.ndim:
            raise ValueError("reduceat: a must have 1 or more dimension, got a.shape=()")
        if starts.ndim != 1:
            raise ValueError(f"reduceat: indices must be one-dimensional, got indices.shape={starts.shape}")
        if not hasattr(axis, "__index__"):
            raise ValueError("reduceat requires a single integer axis.")
        axis = canonical_axis(axis, x.ndim)
        first = take(x, starts, axis=axis)
        ends = lax.concatenate([starts[1:], lax.full((1,), x.shape[axis], starts.dtype)], 0)
        starts, ends = (lax.expand_dims(n, tuple(k for k in range(x.ndim) if k != axis)) for n in (starts, ends))

        def step(n: Any, y: Any) -> Any:
            row = lax.dynamic_slice_in_dim(x, n, 1, axis)
            return where_((starts < n) & (n < ends), self._call(y, row), y)

        return lax.fori_loop(0, x.shape[axis], step, first)

    def _operand(self, method: str, a: Any, dtype: Any, out: Any) -> Any:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.{method}()")
        x = ensure_array(f"{self.__name__}.{method}", a)
        return x if dtype is None else x.astype(dtype)


def _mask(where: Any) -> Any:
    mask = as_array(unwrap(where))
    if mask.dtype not in dtypes.BOOL:
        raise ValueError(f"where argument must have dtype=bool; got dtype={mask.dtype}")
    return mask


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """The elements over ``axes`` as one first dimension."""
    rest = [k for k in range(x.ndim) if k not in axes]
    sizes = (math.prod(x.shape[k] for k in axes), *(x.shape[k] for k in rest))
    return lax.reshape(lax.transpose(x, (*axes, *rest)), sizes)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """``func``, a function of scalars, as a universal function.

    >>> import polyax.numpy as jnp
    >>> f = jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1)
    >>> f.accumulate(jnp.arange(4)).tolist()
    [0, 1, 3, 10]
    """
    return ufunc(func, nin, nout, identity=identity)


def _known(fun: Callable[..., Any], identity: Any = None, nin: int = 2, **fast: Any) -> ufunc:
    return ufunc(fun, nin, 1, name=fun.__name__, identity=identity, call=fun, **fast)


def _typed(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that gives what it is given, for arrays that have their dtype already."""
    return lambda x, dtype, **how: reduce(x, **how)


def _scattered(method: str) -> Callable[..., Any]:
    """``at`` by the method of ``x.at[indices]``, of which truth values know nothing."""

    def at(x: Any, indices: Any, b: Any) -> Any:
        if x.dtype != np.bool_:
            return getattr(x.at[indices], method)(b)
        x, b = (convert(as_mask(as_array(y)), np.dtype(np.int32)) for y in (x, b))
        return getattr(x.at[indices], method)(b).astype(np.bool_)

    return at


add = _known(ufuncs.add, 0, reduce=reductions.sum, accumulate=reductions.cumsum, at=_scattered("add"))
multiply = _known(ufuncs.multiply, 1, reduce=reductions.prod, accumulate=reductions.cumprod, at=_scattered("multiply"))
maximum = _known(ufuncs.maximum, reduce=_typed(reductions.max))
minimum = _known(ufuncs.minimum, reduce=_typed(reductions.min))
subtract = _known(ufuncs.subtract, at=lambda x, indices, b: x.at[indices].subtract(b))
negative = _known(ufuncs.negative, nin=1)
logaddexp = _known(ufuncs.logaddexp, -np.inf)
logaddexp2 = _known(ufuncs.logaddexp2, -np.inf)


def _of_bits(op: Callable[..., Any], combine: Callable[..., Any], identity: int) -> ufunc:
    def reduce(x: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        if not dtypes.is_integer(x.dtype) and x.dtype not in dtypes.BOOL:
            raise ValueError(f"integer argument required; got dtype={x.dtype}")
        axes = reduction_axes(axis, x.ndim, combine.__name__)
        unit = convert(identity, x.dtype)
        result = op(x if where is None else where_(where, x, unit), axes)
        if initial is not None:
            result = combine(convert(initial, x.dtype), result)
        return lax.expand_dims(result, axes) if keepdims else result

    return _known(combine, identity, reduce=_typed(reduce))


bitwise_and = _of_bits(lax.reduce_and, logic.bitwise_and, -1)
bitwise_or = _of_bits(lax.reduce_or, logic.bitwise_or, 0)
bitwise_xor = _of_bits(lax.reduce_xor, logic.bitwise_xor, 0)
logical_and, logical_or = _known(logic.logical_and, True), _known(logic.logical_or, False)
logical_xor = _known(logic.logical_xor, False)
