"""``polyax.experimental.buffer_callback``: Python functions that write their results into memory that is there."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from polyax.control import callback as calls
from polyax.control.aliasing import aliased_pairs
from polyax.ir.aval import aval_of
from polyax.ir.errors import PolyaxRuntimeError
from polyax.trace.flat import check_callable, name_of
from polyax.trace.tree import tree_flatten, tree_unflatten

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """When a function is called. Here it always is while the program runs."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


@dataclass(frozen=True)
class ExecutionContext:
    """What a function is told of the run that calls it."""

    stage: ExecutionStage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> NoReturn:
        """Functions get memory of the host, whichever device asks for them.

        Raises:
          JaxRuntimeError: always.
        """
        raise PolyaxRuntimeError("UNIMPLEMENTED: a buffer callback runs on the host, where there is no stream")


class FilledBuffer:
    """Memory of the host: ``numpy.asarray`` and ``from_dlpack`` of NumPy and others look into it without a copy."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        """Whether it is one of a result."""
        return self._array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._array.__dlpack_device__()


Buffer = FilledBuffer
"""As JAX calls it; that of backends is another."""


class _InPlace(calls.FlatCallback):
    """A function of buffers, which fills those of the results."""

    aliases: tuple[tuple[int, int], ...] = ()

    def _call(self, arrays: Sequence[np.ndarray], avals: calls.Avals) -> list[np.ndarray]:
        ins = [_fixed(x) for x in arrays]
        outs = [np.empty(a.shape, a.dtype) for a in avals]
        for i, o in self.aliases:
            outs[o][...] = ins[i]
            ins[i] = outs[o]
        args, kwargs = tree_unflatten(self.in_tree, map(FilledBuffer, ins))
        assert self.out_tree is not None
        if (
            self.fun(ExecutionContext(), tree_unflatten(self.out_tree, map(FilledBuffer, outs)), *args, **kwargs)
            is not None
        ):
            raise ValueError("buffer_callback callback must not return any values.")
        return outs


def _fixed(x: np.ndarray) -> np.ndarray:
    view = np.asarray(x).view()
    view.flags.writeable = False
    return view


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of arrays that calls ``callback(context, out, *args)`` while programs run.

    Args:
      callback: gets an ``ExecutionContext``, a pytree ``out`` of writable ``Buffer``, and its arguments as buffers; it
        fills ``out`` and returns nothing. Buffers are memory of the host, and live as long as the call.
      result_shape_dtypes: a pytree of things with ``shape`` and ``dtype``: what the results will be like.
      has_side_effect: it is called exactly once each time, though no one uses its results.
      vmap_method: what to do under ``vmap``, as ``polyax.pure_callback`` says.
      input_output_aliases: from the numbers of flat arguments to those of flat results, which begin as these.
      command_buffer_compatible: for compatibility.

    Raises:
      ValueError: an alias names no argument or no result, or ones of other types; when it runs, ``callback`` returns
        something.

    >>> import numpy as np, polyax.numpy as jnp
    >>> def add_one(context, out, x):
    ...     np.asarray(out)[...] = np.asarray(x) + 1
    >>> x = jnp.arange(3)
    >>> print(buffer_callback(add_one, x)(x))
    [1 2 3]
    """
    check_callable(callback)

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        avals, out_tree = calls.announced(result_shape_dtypes)
        flat = _InPlace(callback, in_tree, out_tree)
        flat.aliases = aliased_pairs(input_output_aliases, [aval_of(x) for x in leaves], avals)
        if has_side_effect:
            outs = calls.io_callback_p.bind(*leaves, callback=flat, result_avals=avals, ordered=False)
        else:
            outs = calls.pure_callback_p.bind(*leaves, callback=flat, result_avals=avals, vmap_method=vmap_method)
        return tree_unflatten(out_tree, outs)

    call.__name__ = f"buffer_callback({name_of(callback)})"
    return call
