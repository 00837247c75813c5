"""``pmap``: a function of examples runs on several devices at once, one example on each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.api.arguments import check_arrays
from polyax.api.vmap import vmap
from polyax.control.inner.programs import hoisted
from polyax.control.spmd import Spec, axes_bound, shard_map_p
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ops.basis import expand_dims, squeeze
from polyax.runtime.arrays import devices as places
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.running import spmd  # noqa: F401  (makes the primitive run on devices)
from polyax.trace.context import axis_env
from polyax.trace.flat import Flat, arg_names, check_callable, name_of
from polyax.trace.paths import flatten_axes, keystr, tree_leaves_with_path
from polyax.trace.recording import SourceOf, trace_to_jaxpr
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_flatten


class _Unnamed:
    """The name of an axis that the user gave none."""

    def __repr__(self) -> str:
        return "<unnamed axis>"


@api_boundary
def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[..., Any]:
    """Compiles ``fun`` and runs it on several devices side by side: device ``n`` gets part ``n`` of each argument.

    Within ``jit`` and other transformed programs, which run on one device, all parts are computed there.

    Args:
      fun: a function of pytrees of arrays.
      axis_name: a name for collectives such as ``lax.psum``.
      in_axes: for each positional argument the axis to cut, None to give all devices the whole; or a tree prefix.
      out_axes: where the mapped axis stands in the results; None for results that are the same everywhere.
      static_broadcasted_argnums: arguments that are part of the program; they must be hashable.
      devices, backend: where to run; by default on the first devices of the default platform.
      axis_size: the size of the mapped axis, if no argument tells it.
      donate_argnums: arguments that are deleted once the program runs: their memory is free as soon as it can be.

    Raises:
      ValueError: mapped axes differ in size, or there are fewer devices than parts.

    >>> import numpy as np
    >>> pmap(lambda x: x + 1)(np.zeros((1, 2), np.float32))
    Array([[1., 1.]], dtype=float32)
    """
    check_callable(fun)
    name = _Unnamed() if axis_name is None else axis_name
    chosen = tuple(devices) if devices is not None else None
    if chosen is None and backend is not None:
        chosen = tuple(places.devices(backend))
    static, donated = _numbers(static_broadcasted_argnums), _numbers(donate_argnums)
    return _Pmapped(fun, name, in_axes, out_axes, static, donated, chosen, axis_size)


def _numbers(argnums: int | Iterable[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


@dataclass
class _Program:
    """A traced function: what it closes over, what flattens and unflattens, and the parameters of ``shard_map``."""

    consts: list[Any]
    flat: Flat
    params: dict[str, Any]


class _Pmapped:
    """What ``pmap`` returns; programs are traced once for each combination of types and static values."""

    def __init__(
        self,
        fun: Callable[..., Any],
        axis_name: Any,
        in_axes: Any,
        out_axes: Any,
        static: tuple[int, ...],
        donated: tuple[int, ...],
        devices: tuple[Any, ...] | None,
        axis_size: int | None,
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.axis_name = axis_name
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes = out_axes
        self.static = static
        self.donated = donated
        self.devices = devices
        self.axis_size = axis_size
        self._programs: dict[Any, _Program] = {}

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fixed = self._fixed(args)
        if config.disable_jit:
            return self._one_operation_at_a_time(args, kwargs, fixed)
        dynamic = tuple([x for n, x in enumerate(args) if n not in fixed])
        leaves, in_tree = tree_flatten((dynamic, kwargs))
        try:
            avals = tuple([aval_of(x) for x in leaves])
        except TypeError:
            check_arrays((dynamic, kwargs), f"an argument of pmap({name_of(self.fun)})")
            raise
        statics = tuple([(n, type(x), x) for n, x in fixed.items()])
        key = (in_tree, avals, statics, config.trace_key(), tuple(axis_env().items()))
        found = self._programs.get(key)
        if found is None:
            found = self._trace(fixed, in_tree, avals, args, kwargs)
            if not any(isinstance(c, Tracer) for c in found.consts):
                self._programs[key] = found
        outs = shard_map_p.bind(*found.consts, *leaves, **found.params)
        for n in self.donated:
            _delete(args[n])
        return found.flat.unflatten(outs)

    def _fixed(self, args: Sequence[Any]) -> dict[int, Any]:
        """The static arguments, by their position."""
        if not self.static:
            return {}
        if not all(-len(args) <= n < len(args) for n in self.static):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={self.static} but was called with only {len(args)} "
                f"positional argument{'s' * (len(args) != 1)}. All static broadcasted arguments must be passed "
                "positionally."
            )
        fixed = {n % len(args): args[n % len(args)] for n in sorted(self.static)}
        for n, x in fixed.items():
            if getattr(x, "__hash__", None) is None:
                raise ValueError(
                    f"Non-hashable static arguments are not supported: argument {n} of pmap({name_of(self.fun)}) has "
                    f"the type {type(x)}. Pass arrays without static_broadcasted_argnums, with in_axes None."
                )
        return fixed

    def _one_operation_at_a_time(self, args: Sequence[Any], kwargs: Any, fixed: dict[int, Any]) -> Any:
        dynamic = [x for n, x in enumerate(args) if n not in fixed]
        fun = functools.partial(_with_static, self.fun, fixed, len(args))
        axes = self._in_axes(fixed)
        return vmap(fun, axes, self.out_axes, axis_name=self.axis_name, axis_size=self.axis_size)(*dynamic, **kwargs)

    def _in_axes(self, fixed: dict[int, Any]) -> Any:
        if not isinstance(self.in_axes, tuple):
            return self.in_axes
        return tuple(a for n, a in enumerate(self.in_axes) if n not in fixed)

    def _axes(self, fixed: dict[int, Any], in_tree: Any, avals: Any, dynamic: Any, kwargs: Any) -> tuple[Any, int]:
        """Where each leaf is cut, and into how many parts."""
        axes = flatten_axes("pmap in_axes", in_tree, (self._in_axes(fixed), 0), tupled_args=True)
        size = self._size(dynamic, kwargs, avals, axes)
        return [None if a is None else a % v.ndim for a, v in zip(axes, avals, strict=True)], size

    def _trace(self, fixed: dict[int, Any], in_tree: Any, avals: Any, args: Any, kwargs: Any) -> _Program:
        """The program for one device: blocks have an axis of size one where the argument was cut."""
        dynamic = tuple(x for n, x in enumerate(args) if n not in fixed)
        axes, size = self._axes(fixed, in_tree, avals, dynamic, kwargs)
        flat = Flat(functools.partial(_with_static, self.fun, fixed, len(args)), in_tree)
        out_axes: list[Any] = []

        def on_blocks(*blocks: Any) -> list[Any]:
            outs = flat(*(b if a is None else squeeze(b, (a,)) for b, a in zip(blocks, axes, strict=True)))
            assert flat.out_tree is not None
            wanted = flatten_axes("pmap out_axes", flat.out_tree, self.out_axes)
            out_axes.extend(_out_axis(self.fun, w, aval_of(x)) for x, w in zip(outs, wanted, strict=True))
            return [x if w is None else expand_dims(x, (w,)) for x, w in zip(outs, out_axes, strict=True)]

        blocks = [v if a is None else _cut(v, a) for v, a in zip(avals, axes, strict=True)]
        origin = SourceOf(self.fun, lambda: arg_names(self.fun, args, kwargs))
        with axes_bound(((self.axis_name, size),)):
            closed = trace_to_jaxpr(on_blocks, blocks, name=name_of(self.fun), origin=origin)
        program, consts = hoisted(closed)
        params = {
            "jaxpr": program,
            "axes": ((self.axis_name, size),),
            "in_specs": (*[()] * len(consts), *map(self._spec, axes)),
            "out_specs": tuple(map(self._spec, out_axes)),
            "devices": self.devices,
            "name": f"pmap({name_of(self.fun)})",
        }
        return _Program(consts, flat, params)

    def _spec(self, axis: int | None) -> Spec:
        return () if axis is None else ((axis, (self.axis_name,)),)

    def _size(self, args: Any, kwargs: Any, avals: Sequence[ShapedArray], axes: Sequence[Any]) -> int:
        sizes: dict[int, str] = {}
        for (path, _), aval, axis in zip(tree_leaves_with_path((args, kwargs)), avals, axes, strict=True):
            if axis is None:
                continue
            if not -aval.ndim <= axis < aval.ndim:
                raise ValueError(
                    f"pmap was requested to map its argument along axis {axis}, which implies that its rank should be "
                    f"at least {axis + 1 if axis >= 0 else -axis}, but is only {aval.ndim} (its shape is {aval.shape})"
                )
            sizes.setdefault(aval.shape[axis], f"args{keystr(path[1:])} of type {aval} has size {aval.shape[axis]}")
        if self.axis_size is not None:
            sizes.setdefault(self.axis_size, f"axis_size is {self.axis_size}")
        if not sizes:
            raise ValueError("pmap must have at least one non-None value in in_axes, or axis_size")
        if len(sizes) > 1:
            lines = "".join(f"\n  * {what}" for what in sizes.values())
            raise ValueError(f"pmap got inconsistent sizes for array axes to be mapped:{lines}")
        return next(iter(sizes))


def _with_static(fun: Callable[..., Any], fixed: dict[int, Any], count: int, *dynamic: Any, **named: Any) -> Any:
    given = iter(dynamic)
    return fun(*(fixed[n] if n in fixed else next(given) for n in range(count)), **named)


def _out_axis(fun: Callable[..., Any], wanted: int | None, aval: ShapedArray) -> int | None:
    ndim = aval.ndim + 1
    if wanted is not None and not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim}: out_axes of pmap({name_of(fun)}), of which "
            f"a result has the type {aval} on each device"
        )
    return None if wanted is None else wanted % ndim


def _delete(donated: Any) -> None:
    for x in tree_flatten(donated)[0]:
        if isinstance(x, Array) and not isinstance(x, Tracer):
            x.delete()


def _cut(aval: ShapedArray, axis: int) -> ShapedArray:
    return aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis + 1 :]))
