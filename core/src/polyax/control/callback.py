"""Python functions that programs call while they run: pure ones, ones with effects, and prints.

``*_callback[callback result_avals ...] *args``. ``callback`` maps a list of NumPy arrays to one; the interpreters and
backends call it on the host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.control.flow.looping import map as loop_map
from polyax.ir import blame, dtypes
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.ir.effects import Effects, debug_effect, io_effect, ordered_debug_effect, ordered_io_effect
from polyax.ir.errors import PolyaxRuntimeError
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ir.source import user_source
from polyax.meshes.sharding import Sharding
from polyax.ops.basis import expand_dims, match_axis, move_axis
from polyax.ops.slicing import index_in_dim
from polyax.trace.flat import check_callable, name_of
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

Avals = tuple[ShapedArray, ...]

pure_callback_p = Primitive("pure_callback", multiple_results=True)
io_callback_p = Primitive("io_callback", multiple_results=True)
debug_callback_p = Primitive("debug_callback", multiple_results=True)
debug_print_p = Primitive("debug_print", multiple_results=True)
CALLBACKS = (pure_callback_p, io_callback_p, debug_callback_p, debug_print_p)
VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class FlatCallback:
    """A user's function of pytrees, on lists of NumPy arrays; checks what it returns.

    ``at_once``: it is run where it is asked for, as debugging callbacks outside of programs are.

    Raises:
      JaxRuntimeError: it gives more or fewer arrays than announced, or others; both are shown. Or it raises something,
        which is the cause. A note says where it was asked for: that may be far from where it is run.
      What the function raises, if it is run at once.
    """

    def __init__(
        self, fun: Callable[..., Any], in_tree: PyTreeDef, out_tree: PyTreeDef | None, at_once: bool = False
    ) -> None:
        self.fun = fun
        self.at_once = at_once
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.source = user_source()

    def __call__(self, arrays: Sequence[np.ndarray], avals: Avals) -> list[np.ndarray]:
        try:
            return self._call(arrays, avals)
        except Exception as e:
            if self.at_once or isinstance(e, PolyaxRuntimeError):
                self._explain(e)
                raise
            failed = PolyaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {type(e).__name__}: {e}")
            for note in getattr(e, "__notes__", ()) if "plugin" in blame.facts(e) else ():  # a device failed in it
                failed.add_note(note)
            self._explain(failed)
            raise failed from e

        except BaseException as e:  # it may end the program, as any function of the user may
            blame.excuse(e)
            raise

    def _explain(self, error: Exception) -> None:
        """The user's own function failed, and nobody else."""
        blame.excuse(error)
        blame.note(error, f"in the callback {name_of(self.fun)}, asked for at {self.source}")

    def _call(self, arrays: Sequence[np.ndarray], avals: Avals) -> list[np.ndarray]:
        args, kwargs = tree_unflatten(self.in_tree, arrays)
        result = self.fun(*args, **kwargs)
        if self.out_tree is None:
            return []
        leaves, tree = tree_flatten(result)
        if len(leaves) != len(avals):  # as in JAX a list may stand for a tuple
            raise PolyaxRuntimeError(
                f"Mismatched number of outputs from callback. Expected: {len(avals)}, Actual: {len(leaves)}: "
                f"{name_of(self.fun)} returned a result of the structure {tree}; announced was {self.out_tree}"
            )
        return [self._checked(n, x, aval) for n, (x, aval) in enumerate(zip(leaves, avals, strict=True))]

    def _checked(self, n: int, x: Any, aval: ShapedArray) -> np.ndarray:
        value = np.asarray(x)
        given = dtypes.canonicalize(value.dtype) if value.dtype in dtypes.KNOWN else value.dtype
        if value.shape != aval.shape or (given != aval.dtype and not isinstance(x, (bool, int, float, complex))):
            got = f"{value.dtype}[{','.join(map(str, value.shape))}]"
            what = "dtype" if value.shape == aval.shape else "shape"
            raise PolyaxRuntimeError(
                f"Incorrect output {what} for return value #{n}: Expected: {getattr(aval, what)}, Actual: "
                f"{getattr(value, what)}. The callback {name_of(self.fun)} returned an array of type {got}; announced "
                f"was {aval}"
            )
        return value.astype(aval.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(callback_func={name_of(self.fun)}, in_tree={self.in_tree})"


def announced(result_shape_dtypes: Any) -> tuple[Avals, PyTreeDef]:
    """What a call says that its results will be like, and their structure."""
    leaves, tree = tree_flatten(result_shape_dtypes)
    avals = tuple(_aval(x) for x in leaves)
    for aval in avals:
        _check_width(aval)
    return avals, tree


def _aval(x: Any) -> ShapedArray:
    if is_array_like(x) and not hasattr(x, "dtype"):
        return aval_of(x).strip_weak_type()
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise TypeError(f"result_shape_dtypes must hold things with a shape and a dtype, got {x!r}")
    return ShapedArray(tuple(x.shape), dtypes.as_dtype(x.dtype))


def _check_width(aval: ShapedArray) -> None:
    if dtypes.canonicalize(aval.dtype) != aval.dtype:
        raise ValueError(
            "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled; "
            f"a result of type {aval} was announced"
        )


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a pure Python function from within programs. It may be called any number of times, or not at all.

    Args:
      callback: gets arrays, and returns as many as were announced, of these types.
      result_shape_dtypes: a pytree of things with ``shape`` and ``dtype``: what the results will be like.
      sharding: None or that of one device, which changes nothing: callbacks run on the host.
      vmap_method: what to do under ``vmap``: ``"sequential"`` (one call for each example), ``"expand_dims"`` (one call;
        arguments that aren't mapped get a dimension of 1) or ``"broadcast_all"`` (one call; all arguments mapped).

    >>> pure_callback(lambda x: x + 1, np.zeros((), np.float32), np.float32(1)).item()
    2.0
    """
    check_callable(callback)
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        allowed = [*VMAP_METHODS, None]
        raise ValueError(f"vmap_method must be one of the allowed methods {allowed}, but got: {vmap_method}")
    if sharding is not None and not (isinstance(sharding, Sharding) and sharding.num_devices == 1):
        raise NotImplementedError(f"pure_callback only supports SingleDeviceSharding, but got {type(sharding)}")
    avals, out_tree = announced(result_shape_dtypes)
    leaves, in_tree = tree_flatten((args, kwargs))
    call = FlatCallback(callback, in_tree, out_tree)
    outs = pure_callback_p.bind(*leaves, callback=call, result_avals=avals, vmap_method=vmap_method)
    return tree_unflatten(out_tree, outs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects from within programs: exactly once each time.

    Args:
      callback: gets arrays, and returns arrays of the announced types.
      result_shape_dtypes: a pytree of things with ``shape`` and ``dtype``; None for nothing.
      ordered: the calls happen in the order of the program.
    """
    check_callable(callback)
    avals, out_tree = announced(result_shape_dtypes)
    leaves, in_tree = tree_flatten((args, kwargs))
    call = FlatCallback(callback, in_tree, out_tree)
    return tree_unflatten(out_tree, io_callback_p.bind(*leaves, callback=call, result_avals=avals, ordered=ordered))


def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function for debugging from within programs, whatever they are transformed by.

    Under ``vmap`` it is called for each example; under ``grad``, when the original function runs; under ``pmap``, on
    each device, as in programs for several devices if it is ``partitioned``: with the parts of arrays that it has.
    Without a function it is a decorator of one.
    """
    if callback is None:
        return lambda fun: functools.partial(debug_callback, fun, ordered=ordered, partitioned=partitioned)
    check_callable(callback)
    return debug_call(debug_callback_p, callback, args, kwargs, ordered=ordered, partitioned=partitioned)


def debug_call(
    p: Primitive,
    callback: Callable[..., None],
    args: Any,
    kwargs: Any,
    *,
    ordered: bool,
    partitioned: bool,
    **shown: Any,
) -> None:
    """Binds ``p`` to the arrays in the arguments; other things among them, Python's numbers too, are handed on."""
    leaves, in_tree = tree_flatten((args, kwargs))
    dynamic = [is_array_like(x) and not isinstance(x, (bool, int, float, complex)) for x in leaves]
    fixed = [None if d else x for x, d in zip(leaves, dynamic, strict=True)]

    def call(*arrays: Any) -> None:
        given = iter(arrays)
        values = [next(given) if d else x for d, x in zip(dynamic, fixed, strict=True)]
        own, named = tree_unflatten(in_tree, values)
        callback(*own, **named)

    call.__name__ = name_of(callback)
    arrays, tree = tree_flatten((tuple(x for x, d in zip(leaves, dynamic, strict=True) if d), {}))
    flat = FlatCallback(call, tree, None, at_once=ambient.trace is None)
    p.bind_all(*arrays, callback=flat, result_avals=(), ordered=ordered, partitioned=partitioned, **shown)


@def_rule(pure_callback_p, "abstract_eval")
def _pure_abstract(*_: ShapedArray, result_avals: Avals, **__: Any) -> list[ShapedArray]:
    return list(result_avals)


@def_rule(io_callback_p, "abstract_eval")
def _io_abstract(*_: ShapedArray, result_avals: Avals, ordered: bool, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return list(result_avals), frozenset({ordered_io_effect if ordered else io_effect})


def _debug_abstract(*_: ShapedArray, ordered: bool, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return [], frozenset({ordered_debug_effect if ordered else debug_effect})


@def_rule(pure_callback_p, "jvp")
def _pure_jvp(*_: Any, **__: Any) -> Any:
    raise ValueError(
        "Pure callbacks do not support JVP. Please use `polyax.custom_jvp` to use callbacks while taking gradients."
    )


@def_rule(io_callback_p, "jvp")
def _io_jvp(*_: Any, **__: Any) -> Any:
    raise ValueError(
        "IO callbacks do not support JVP. Please use `polyax.custom_jvp` to use callbacks while taking gradients."
    )


@def_rule(pure_callback_p, "transpose")
def _pure_transpose(*_: Any, **__: Any) -> Any:
    raise ValueError(
        "Pure callbacks do not support transpose. Please use `polyax.custom_vjp` to use callbacks while taking "
        "gradients."
    )


@def_rule(io_callback_p, "transpose")
def _io_transpose(*_: Any, **__: Any) -> Any:
    raise ValueError("IO callbacks do not support transpose.")


for _p in (debug_callback_p, debug_print_p):
    _p.never("transpose", "a Python function has no transpose")
for _p in CALLBACKS:
    _p.never("factors", "a Python function is called with whole arrays")


@def_rule(pure_callback_p, "batch")
def _pure_batch(
    axis: Any,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    result_avals: Avals,
    vmap_method: str | None,
    **p: Any,
) -> Any:
    if vmap_method is None:
        raise NotImplementedError(
            f"vmap is only supported for the pure_callback primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS))}. Got vmap_method=None for {p['callback']!r}."
        )
    params = {**p, "vmap_method": vmap_method}
    if vmap_method.startswith("sequential"):
        return _one_by_one(pure_callback_p, axis, args, dims, {**params, "result_avals": result_avals})
    if vmap_method == "broadcast_all":
        args = [match_axis(axis, d, 0, x) for x, d in zip(args, dims, strict=True)]
    elif vmap_method == "expand_dims":
        args = [expand_dims(x, (0,)) if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    else:
        args = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    mapped = tuple(a.with_shape((axis.size, *a.shape)) for a in result_avals)
    return pure_callback_p.bind(*args, result_avals=mapped, **params), [0] * len(mapped)


@def_rule(io_callback_p, "batch")
def _io_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    if params["ordered"]:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    return _one_by_one(io_callback_p, axis, args, dims, params)


def _define_debugging(p: Primitive) -> None:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return p.bind_all(*primals, **params), []

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        for n in range(axis.size):
            own = [x if d is None else index_in_dim(x, n, d, keepdims=False) for x, d in zip(args, dims, strict=True)]
            p.bind_all(*own, **params)
        return [], []

    p.abstract_eval, p.jvp, p.batch = _debug_abstract, jvp, batch


for _p in (debug_callback_p, debug_print_p):
    _define_debugging(_p)

# --- in jaxprs as in JAX's

pure_callback_p.pretty = lambda **params: {**params, "sharding": None}
io_callback_p.pretty = lambda **params: {**params, "sharding": None}


@def_rule(debug_callback_p, "pretty")
def _pretty_callback(*, callback: FlatCallback, ordered: bool, partitioned: bool, **_: Any) -> dict[str, Any]:
    effect = ordered_debug_effect if ordered else debug_effect
    return {"callback": callback, "effect": effect, "partitioned": partitioned}


@def_rule(debug_print_p, "pretty")
def _pretty_print(*, fmt: str, ordered: bool, partitioned: bool, **_: Any) -> dict[str, Any]:
    return {"fmt": fmt, "ordered": ordered, "partitioned": partitioned}


def _one_by_one(p: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[int | None], params: Any) -> Any:
    """A call for each example, in a loop."""
    mapped = [move_axis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def call(xs: Any) -> tuple[Any, ...]:
        given = iter(xs)
        return tuple(p.bind_all(*(x if d is None else next(given) for x, d in zip(args, dims, strict=True)), **params))

    outs = list(loop_map(call, tuple(mapped)))
    return outs, [0] * len(outs)
