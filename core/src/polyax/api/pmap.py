"""``pmap``: a function of examples runs on several devices at once, one example on each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyax.api.jit import jit
from polyax.api.local_parts import LocalParts, local_parts
from polyax.api.vmap import check_axes_are_ints, mapped_size, vmap
from polyax.control.inner.programs import hoisted
from polyax.control.spmd import axes_bound, shard_map_p
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.lazy import lazy
from polyax.ir.refs import is_ref, met
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding, Sharding, bounds
from polyax.meshes.spec import Cuts, trimmed_spec
from polyax.ops.basis import expand_dims, squeeze
from polyax.runtime.arrays import devices as places
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.running import spmd  # noqa: F401  (makes the primitive run on devices)
from polyax.runtime.running.donation import of_read, refuse_reuse, taken
from polyax.runtime.running.regions import choose, with_devices
from polyax.trace.calls import Signature, TracedFunction, UserCall, with_static
from polyax.trace.context import axis_env
from polyax.trace.paths import flatten_axes
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.traces import Traces
from polyax.trace.tree import tree_unflatten


@dataclass(frozen=True)
class _Unnamed:
    """The name of an axis that the user gave none; one within another has another."""

    depth: int

    def __repr__(self) -> str:
        return repr(str(self))

    def __str__(self) -> str:
        return f"_internal_pmap_axis_name{self.depth or ''}"


def _unnamed() -> _Unnamed:
    return _Unnamed(sum(isinstance(name, _Unnamed) for name in axis_env()))


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

    Within ``jit`` the whole program runs on these devices; outside of the function the partitioner cuts it.

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
      ValueError: mapped axes differ in size, there are fewer devices than parts, or an argument was put elsewhere by
        name than its parts are needed.

    >>> import numpy as np
    >>> pmap(lambda x: x + 1)(np.zeros((1, 2), np.float32))
    Array([[1., 1.]], dtype=float32)
    """
    signature = Signature(
        fun,
        "pmap",
        static=(static_broadcasted_argnums, None),
        donate=(donate_argnums, None),
        option="static_broadcasted",
        too_few="pmapped function has static_broadcasted_argnums={given} but was called with only {count} positional "
        "argument{s}. All static broadcasted arguments must be passed positionally.",
    )
    check_axes_are_ints("pmap in_axes", in_axes)
    check_axes_are_ints("pmap out_axes", out_axes)
    chosen = tuple(devices) if devices is not None else None
    if chosen == ():
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    if chosen is None and backend is not None:
        chosen = tuple(places.devices(backend))
    return _Pmapped(signature, axis_name, in_axes, out_axes, chosen, axis_size)


@dataclass(frozen=True)
class _OneOfMany(TracedFunction):
    """The program for one device, with the parameters of ``shard_map``."""

    params: dict[str, Any] = field(default_factory=dict)
    local: LocalParts | None = None
    """How arguments and results of this process belong to those of all, if the devices are in several."""


class _Pmapped:
    """What ``pmap`` returns; programs are traced once for each combination of types and static values."""

    def __init__(
        self,
        signature: Signature,
        axis_name: Any,
        in_axes: Any,
        out_axes: Any,
        devices: tuple[Any, ...] | None,
        axis_size: int | None,
    ) -> None:
        functools.update_wrapper(self, signature.fun)
        self.signature = signature
        self.name = f"pmap({signature.name})"
        self._given_name = axis_name
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes = out_axes
        self.devices = devices
        self.axis_size = axis_size
        self._traces = Traces(signature, role=("pmap", axis_name, self.in_axes, out_axes, devices, axis_size))

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.signature.split(args, kwargs)
        if config.disable_jit:
            return self._one_operation_at_a_time(call)
        found = self._traces.find(call.key(), call, self._record)
        operands = [*hoisted(found.closed)[1], *call.leaves]
        if found.local is None and any(is_concrete(x) and x.committed for x in call.leaves):
            _check_places(operands, found.params)
        if found.donated:
            refuse_reuse(operands, found.donated)
        outs = found.local.run(operands, found.params) if found.local else shard_map_p.bind(*operands, **found.params)
        if found.donated and is_concrete(outs[0]):
            _delete(operands, found.donated, outs[0].sharding)
        return tree_unflatten(found.out_tree, outs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Traces and compiles for these arguments without running: see ``jit(f).lower``."""
        return self._jitted.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The program for these arguments: see ``jit(f).trace``."""
        return self._jitted.trace(*args, **kwargs)

    @lazy
    def _jitted(self) -> Any:
        return jit(self, static_argnums=self.signature.static.given)

    def _one_operation_at_a_time(self, call: UserCall) -> Any:
        fun = with_static(self.signature.fun, call.static)
        args, kwargs = tree_unflatten(call.in_tree, call.leaves)
        mapped = vmap(fun, self._in_axes(call), self.out_axes, axis_name=self.axis_name, axis_size=self.axis_size)
        return mapped(*args, **kwargs)

    def _in_axes(self, call: UserCall) -> Any:
        if not isinstance(self.in_axes, tuple):
            return self.in_axes
        static = {n for n, _, _ in call.static}
        return tuple(a for n, a in enumerate(self.in_axes) if n not in static)

    @property
    def axis_name(self) -> Any:
        return _unnamed() if self._given_name is None else self._given_name

    def _axes(self, call: UserCall, avals: Sequence[ShapedArray]) -> tuple[Any, int]:
        """Where each leaf is cut, and into how many parts."""
        axes = flatten_axes("pmap in_axes", call.in_tree, (self._in_axes(call), 0), tupled_args=True)
        if self.axis_size is None and all(a is None for a in axes):
            types = ", ".join(map(str, avals)) or "none"
            raise ValueError(
                "pmap requires at least one argument with a mapped axis. Give it one by in_axes, or say axis_size; the "
                f"arrays of the arguments are: {types}"
            )
        size = mapped_size("pmap", call, avals, axes, self.axis_size)
        return [None if a is None else a % v.ndim for a, v in zip(axes, avals, strict=True)], size

    def _record(self, call: UserCall, avals: Sequence[ShapedArray]) -> _OneOfMany:
        """The program for one device: blocks have an axis of size one where the argument was cut."""
        axes, size = self._axes(call, avals)
        axis_name, flat = self.axis_name, call.flat()
        local = local_parts(self.name, axis_name, size, self.devices)
        if local is not None:
            size = local.size
        out_axes: list[Any] = []

        def on_blocks(*blocks: Any) -> list[Any]:
            outs = flat(*(b if a is None else squeeze(b, (a,)) for b, a in zip(blocks, axes, strict=True)))
            assert flat.out_tree is not None
            wanted = flatten_axes("pmap out_axes", flat.out_tree, self.out_axes)
            out_axes.extend(_out_axis(self.name, w, aval_of(x)) for x, w in zip(outs, wanted, strict=True))
            return [x if w is None else expand_dims(x, (w,)) for x, w in zip(outs, out_axes, strict=True)]

        if met.any and any(map(is_ref, avals)):
            raise NotImplementedError(f"{self.name} can't take references: pass them to vmap or shard_map")
        blocks = [v if a is None else _cut(v, a) for v, a in zip(avals, axes, strict=True)]
        with axes_bound(((axis_name, size),)):
            closed = trace_to_jaxpr(on_blocks, blocks, name=self.signature.name, origin=call.source())
        assert flat.out_tree is not None
        program, consts = hoisted(closed)
        params = {
            "jaxpr": program,
            "mesh": self._mesh(size) if local is None else local.mesh,
            "manual_axes": frozenset((self.axis_name,)),
            "in_specs": tuple(map(self._cuts, program.in_avals, [*[None] * len(consts), *axes])),
            "out_specs": tuple(map(self._cuts, program.out_avals, out_axes)),
            "check_vma": False,
            "name": self.name,
        }
        donated = taken(program, of_read(program, (*[False] * len(consts), *call.donated())))
        return _OneOfMany(closed, flat.out_tree, donated, params=params, local=local)

    def _mesh(self, size: int) -> Mesh | AbstractMesh:
        if self.devices is None:
            return AbstractMesh((size,), (self.axis_name,))
        return Mesh(choose(size, self.devices, self.name), (self.axis_name,))

    def _cuts(self, block: ShapedArray, axis: int | None) -> Cuts:
        return tuple((self.axis_name,) if d == axis else () for d in range(block.ndim))


def _out_axis(name: str, wanted: int | None, aval: ShapedArray) -> int | None:
    ndim = aval.ndim + 1
    if wanted is not None and not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim}: out_axes of {name}, of which "
            f"a result has the type {aval} on each device"
        )
    return None if wanted is None else wanted % ndim


def _check_places(operands: Sequence[Any], params: dict[str, Any]) -> None:
    """Raises a ValueError if an array was put elsewhere by name than the mapped function needs it."""
    mesh = with_devices(params["mesh"], params["jaxpr"], places.local_devices(), params["name"])
    for x, cuts in zip(operands, params["in_specs"], strict=True):
        if not (is_concrete(x) and x.committed):
            continue
        wanted = NamedSharding(mesh, trimmed_spec(cuts))
        if x.sharding != wanted and not _lies(x, wanted):
            raise ValueError(
                f"Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: {wanted},"
                f"\narg sharding: {x.sharding} for arg type: {x.aval}, an argument of {params['name']}. Put it "
                "where it is needed with polyax.device_put."
            )


def _lies(x: Any, wanted: NamedSharding) -> bool:
    """Whether devices have the parts of an array that they need, in whatever order the devices are."""
    if {*x.sharding.device_list} != {*wanted.device_list}:
        return False
    pairs = zip(*(s.devices_indices_map(x.shape).values() for s in (x.sharding, wanted)), strict=True)
    return all(bounds(a, x.shape) == bounds(b, x.shape) for a, b in pairs)


def _delete(operands: Sequence[Any], donated: Sequence[bool], where: Sharding) -> None:
    """Deletes the donated arrays, but for those that were copied because they lay elsewhere."""
    for x, d in zip(operands, donated, strict=True):
        if d and is_concrete(x) and x.sharding.device_set == where.device_set:
            x.delete()


def _cut(aval: ShapedArray, axis: int) -> ShapedArray:
    return aval.with_shape((*aval.shape[:axis], 1, *aval.shape[axis + 1 :]))
