"""Programs without running them: ``make_jaxpr eval_shape ShapeDtypeStruct``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.api.arguments import as_indices, shaped, wraps
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.context import extend_axis_env
from polyax.trace.flat import Flat, arg_names, check_callable, name_of
from polyax.trace.recording import SourceOf, trace_to_jaxpr
from polyax.trace.tree import tree_flatten, tree_unflatten


class ShapeDtypeStruct:
    """Shape and dtype of an array, without one.

    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Any = None, weak_type: bool = False) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = tuple(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.sharding, self.weak_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.full_name(self.dtype)}{weak})"


def struct(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """A function that gives the jaxpr of ``fun`` for its arguments (arrays, or ``ShapeDtypeStruct``).

    >>> make_jaxpr(lambda x: x * x)(2.0)
    { lambda ; a:f32[]. let
        b:f32[] = mul a a
      in (b,) }
    """
    check_callable(fun)
    if abstracted_axes is not None:
        raise NotImplementedError("make_jaxpr: abstracted_axes is not supported")

    @wraps(fun, "The jaxpr of {fun}.\n\n{doc}")
    @api_boundary
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        static = as_indices(static_argnums, len(args), "static_argnums")
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)

        def f(*xs: Any, **kw: Any) -> Any:
            given = iter(xs)
            return fun(*(a if i in static else next(given) for i, a in enumerate(args)), **kw)

        closed, flat = _trace(f, dynamic, kwargs, name_of(fun), axis_env or ())
        if not return_shape:
            return closed
        assert flat.out_tree is not None
        return closed, tree_unflatten(flat.out_tree, map(struct, closed.out_avals))

    return make_jaxpr_f


def _trace(fun: Callable[..., Any], args: Any, kwargs: Any, name: str, axes: Sequence[tuple[Any, int]]) -> Any:
    leaves, in_tree = tree_flatten((args, kwargs))
    flat = Flat(fun, in_tree)
    avals = [shaped(x) for x in leaves]
    if axes:
        with extend_axis_env(*axes[0]):
            return _trace(fun, args, kwargs, name, axes[1:])
    origin = SourceOf(fun, lambda: arg_names(fun, args, kwargs))
    return trace_to_jaxpr(flat, avals, name=name, origin=origin), flat


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, computed without arithmetic.

    >>> eval_shape(lambda x: x[None], ShapeDtypeStruct((3,), 'float32'))
    ShapeDtypeStruct(shape=(1, 3), dtype=float32)
    """
    check_callable(fun)
    closed, flat = _trace(fun, args, kwargs, name_of(fun), ())
    return tree_unflatten(flat.out_tree, map(struct, closed.out_avals))


def typeof(x: Any) -> ShapedArray:
    """The type of an array, a scalar or a traced value.

    >>> typeof(np.ones((2, 3), 'float32'))
    ShapedArray(float32[2,3])

    Raises:
      TypeError: ``x`` is no array.
    """
    return aval_of(x)
