"""From applying primitives to running compiled programs: eager operations, jitted calls, and where they run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from polyax.control.callback import CALLBACKS
from polyax.control.calls.jit import pjit_p
from polyax.control.inspection import Look, inspect_sharding_p
from polyax.control.platforms import Platforms, platform_index_p, position
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.errors import ShardingTypeError
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from polyax.ir.primitive import Primitive, def_rule, note
from polyax.ir.refs import has_refs, met, refuse_refs
from polyax.meshes import consensus, sums
from polyax.meshes.current import mesh_in_force
from polyax.meshes.explicit import mesh_here, seen, typed
from polyax.meshes.mesh import Mesh
from polyax.meshes.resharding import reshard_p
from polyax.meshes.sharding import NamedSharding, Sharding, SingleDeviceSharding
from polyax.meshes.spec import OpenCuts, PartitionSpec, open_cuts, trimmed_spec, uncut
from polyax.meshes.translate import cuts_on
from polyax.ops.constraint import sharding_constraint_p
from polyax.runtime.arrays import devices
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.placing import device_put, from_host, install_relay, on_devices, retold
from polyax.runtime.contract import questions
from polyax.runtime.contract.backend import Device, Seat
from polyax.runtime.contract.queue import serving
from polyax.runtime.running import repeated
from polyax.runtime.running.compiling import compile_on, compile_program, names_of
from polyax.runtime.running.donation import of_read
from polyax.runtime.running.joint import joint
from polyax.runtime.running.meeting import Place, layouts_of, meeting_place
from polyax.runtime.running.meshed import Layouts, on_mesh
from polyax.runtime.running.programs import Program, make_entry, seat_of
from polyax.runtime.running.relaying import relaid
from polyax.runtime.running.whole import eager_call
from polyax.trace.context import install_eval_trace
from polyax.trace.tracer import Trace, Tracer, leaked
from polyax.transforms.memo import forget, kept, once

__all__ = ["choose_device", "compile_program", "device_of", "leaked", "make_entry"]


class EvalTrace(Trace):
    """The bottom of every stack of transformations: applying a primitive runs it."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x)
        if primitive.impl is not None:
            return primitive.impl(*args, **params)
        return apply_primitive(primitive, args, params)

    def as_one(self, fun: Callable[..., Any], args: Sequence[Any], key: tuple[Any, ...]) -> Any:
        """``fun(*args)`` as one program."""
        return joint(fun, args, key, functools.partial(_kept_primitive, None))


# --- devices ------------------------------------------------------------------------------------------------------


def device_of(device: Any, backend: str | None) -> Device | None:
    """The device that ``jit(device=, backend=)`` asks for; None: to be chosen by the arguments.

    Raises:
      ValueError: both are given.
    """
    if device is not None and backend is not None:
        raise ValueError(
            f"can't specify both a device and a backend for jit, got device={device!r} and backend={backend!r}"
        )
    if device is not None:
        return device
    return devices.devices(backend)[0] if backend is not None else None


def choose_device(asked: Device | None, args: Sequence[Any]) -> Device:
    """The device that was asked for, else the first of those where the arguments are.

    Raises:
      ValueError: the arguments were put on different devices.
    """
    if asked is not None:
        return asked
    where = choose_place(args)
    return where if isinstance(where, Device) else where.device_list[0]


def choose_place(args: Sequence[Any], primitive: Primitive | None = None) -> Place:
    """Where the arguments are, which may be on several devices; if there are no arrays, the default device."""
    seat = choose_seat(args, primitive)
    return seat.device if isinstance(seat, Seat) else seat


def choose_seat(args: Sequence[Any], primitive: Primitive | None = None) -> Seat | Mesh | Sharding:
    """The same, with whether results are committed to it."""
    found: Seat | None = None
    for x in args:
        if type(x) is Array:
            seat = x._seat
            if seat is None or (found is not None and seat is not found):
                found = None
                break
            found = seat
    else:
        usual = _usual.get(config.call_key()) or _usual_seat()
        if usual is not None:
            return usual if found is None or not found.committed else found
    names = None if primitive is None else lambda: _operands(primitive, len(args))
    return _seat_in(meeting_place(args, names), args)


_usual: dict[int, Seat] = {}
"""By settings, where arrays are that nobody put anywhere."""
config.on_update(lambda _: _usual.clear())


def _usual_seat() -> Seat | None:
    """None, if it is a mesh."""
    if mesh_in_force() is not None:
        return None
    return _usual.setdefault(config.call_key(), devices.default_device_now().free)


def _seat_in(place: Place, args: Sequence[Any]) -> Seat | Mesh | Sharding:
    return seat_of(place, args) if isinstance(place, Device) else place


def _operands(primitive: Primitive, count: int) -> list[str]:
    """What error texts call the operands."""
    names = "xyz" if count <= 3 else [f"operand {n}" for n in range(count)]
    return [f"{name} of {primitive}" for name in names]


# --- applying primitives ------------------------------------------------------------------------------------------

EAGER_PROGRAMS = 4096
"""How many programs of single primitives are kept."""

_eager: dict[Any, Any] = {}
"""Of programs on meshes, what they are made from."""
Made = TypeVar("Made")


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Runs one primitive as a program of its own."""
    avals = tuple([x.aval if type(x) is Array else aval_of(x) for x in args])
    inner = None if primitive.sub_jaxprs is None else primitive.sub_jaxprs(**params)
    if inner and met.any and any(map(has_refs, inner)):
        return primitive.rule("discharge")(*args, **params)
    seat = _seat_in(meeting_place(args, programs=inner), args) if inner else choose_seat(args, primitive)
    if not isinstance(seat, Seat):
        outs = _on_parts(primitive, args, avals, params)
        if outs is not None:
            return outs
        if isinstance(seat, Mesh):
            return _on_mesh(primitive, args, avals, params, seat)
        seat = seat.device_list[0].chosen
    return _on_device(primitive, args, avals, params, seat, inner)


def _on_device(
    primitive: Primitive,
    args: Sequence[Any],
    avals: tuple[ShapedArray, ...],
    params: dict[str, Any],
    seat: Seat,
    inner: Sequence[ClosedJaxpr] | None = None,
) -> list[Any]:
    """``inner``: the programs that the primitive holds."""
    key = primitive, avals, tuple(params.items()), seat, config.trace_key()
    device = seat.device
    table = inner[0].memo if inner else _eager  # programs of programs go when these go
    try:
        program = table.get(key)
    except TypeError:  # an unhashable parameter: compiled each time, as nothing tells it from another
        return _compile_primitive(primitive, avals, params, device).run(args)
    if program is None:
        order = tuple(sorted(params.items()))  # which means nothing
        make = functools.partial(_compile_primitive, primitive, avals, params, device)
        alike = primitive, avals, order, "alike", questions.twin(device), key[-1]
        program = table[key] = _kept_primitive(inner, alike, make).on(device)
        made = program.run(args)
    else:
        args = tuple(args)
        made = (program.quick or eager_call(program, args))(args, {})
        if made is NotImplemented:
            made = program.run(args)
    note(program, args, made)
    return made


def _kept_primitive(inner: Sequence[ClosedJaxpr] | None, key: Any, make: Callable[[], Made]) -> Made:
    if inner:
        return kept(inner[0], key, make, wait=not serving())
    if len(_eager) >= EAGER_PROGRAMS:
        _forget_oldest()
    return once(_eager, key, make, wait=not serving())


def _on_parts(
    primitive: Primitive, args: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> list[Any] | None:
    """The results of an elementwise primitive, computed where the parts of its operands lie."""
    layout = next((x.sharding for x in args if is_concrete(x) and x.shape and x._device is None), None)
    shapes = {a.shape for a in avals} - {()}
    if layout is None or not primitive.elementwise or len(shapes) > 1 or _cut_otherwise(args, layout):
        return None
    if not layout.addressable_devices or sums.waiting(avals):
        return None
    (shape,) = shapes
    block = layout.shard_shape(shape)
    parts = [
        on_devices(x, a.with_shape(block), layout)
        if a.shape
        else x.parts
        if is_concrete(x) and x._device is None
        else [x] * len(layout.addressable_devices)
        for x, a in zip(args, avals, strict=True)
    ]
    devices = [d for d in layout.device_list if d.is_addressable]
    blocks = tuple([a.with_shape(block) if a.shape else a for a in avals])
    pairs = zip(devices, zip(*parts, strict=True), strict=True)
    results = [_on_device(primitive, xs, blocks, params, device.chosen) for device, xs in pairs]
    told = next((a.told for a in avals if a.told is not None), None)
    layout = layout if told is None else _in_full(layout, len(shape))
    whole = {"shape": shape, "sharding": told}
    return [Array.of_parts(ys[0].aval.update(**whole), ys, layout) for ys in zip(*results, strict=True)]


def _in_full(layout: Sharding, ndim: int) -> Sharding:
    """Where types tell how results lie, they name each dimension."""
    if not isinstance(layout, NamedSharding) or not layout.mesh.are_all_axes_explicit:
        return layout
    named = layout.spec.partitions
    if len(named) == ndim:
        return layout
    return layout.update(spec=layout.spec.update(partitions=(*named, *[None] * (ndim - len(named)))))


def _cut_otherwise(args: Sequence[Any], layout: Sharding) -> bool:
    """Whether arrays on a mesh lie there in several ways."""
    if not isinstance(layout, NamedSharding):
        return False
    return any(is_concrete(x) and x._device is None and x.shape and x.sharding != layout for x in args)


def _on_mesh(
    primitive: Primitive, args: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any], mesh: Mesh
) -> list[Any]:
    """One primitive as a program on the devices of a mesh."""
    lenient = seen.any and consensus.is_lenient()
    key = primitive, tuple(avals), tuple(params.items()), Mesh, lenient, config.trace_key()
    inner = None if primitive.sub_jaxprs is None else primitive.sub_jaxprs(**params)
    make = functools.partial(_as_program, primitive, avals, params)
    try:
        closed = _kept_primitive(inner, key, make)
    except ShardingTypeError:
        if not lenient:
            raise
        return _on_mesh(primitive, args, [a.update(sharding=None) for a in avals], params, mesh)
    except TypeError:  # an unhashable parameter
        closed = make()
    return run_on_mesh(closed, args, mesh, primitive.name)


def run_on_mesh(
    closed: ClosedJaxpr, args: Sequence[Any], mesh: Mesh, name: str, donated: tuple[bool, ...] = ()
) -> list[Any]:
    """Runs a program without constants on a mesh; arrays stay as they lie."""
    layouts = Layouts.of(mesh, layouts_of(args), [None] * len(closed.out_avals))
    return on_mesh(closed, layouts, name, donated).program.run(args)


def _forget_oldest() -> None:
    """Makes room: calls whose parameters differ each time must not fill the memory."""
    for key in list(_eager)[: EAGER_PROGRAMS // 2]:
        _eager.pop(key, None)


def _compile_primitive(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], device: Device
) -> Program:
    return compile_on(_as_program(primitive, avals, params), device, primitive.name, eager=True)


def _as_program(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
    refuse_refs(primitive, avals)
    if primitive.abstract_eval is None and "abstract_eval" not in primitive.absent:
        raise NotImplementedError(
            f"Evaluation rule for '{primitive}' not implemented: it has neither def_impl nor def_abstract_eval"
        )
    result = primitive.rule("abstract_eval")(*avals, **params)
    out_avals, effects = result if isinstance(result, tuple) else (result, frozenset())
    if seen.any:
        out_avals = consensus.results(primitive, avals, params, out_avals)
    invars, outs = [Var(a) for a in avals], [Var(a) for a in out_avals]
    eqn = Eqn(primitive, invars, outs, params, effects)
    return ClosedJaxpr(Jaxpr([], invars, outs, [eqn], effects), [])


@def_rule(pjit_p, "impl")
def _run_pjit(
    *args: Any, jaxpr: ClosedJaxpr, name: str, donated: tuple[bool, ...], device: Device | None, **rest: Any
) -> list[Any]:
    if met.any and has_refs(jaxpr):
        params = {"jaxpr": jaxpr, "name": name, "donated": donated, "device": device, **rest}
        return pjit_p.rule("discharge")(*args, **params)
    if not rest["keep_unused"]:
        donated = of_read(jaxpr, donated)
    where = device or meeting_place(args, programs=[jaxpr])
    if isinstance(where, Mesh):
        return run_on_mesh(jaxpr, args, where, name, donated)
    where = where if isinstance(where, Device) else where.device_list[0]
    outs = compile_program(jaxpr, where, name, donated).run(args)
    return outs if device is None else [x.commit() if is_concrete(x) else x for x in outs]


@def_rule(platform_index_p, "impl")
def _platform_index(*, platforms: Platforms) -> list[Any]:
    """Outside of programs, that of the default device."""
    return [np.int32(position(platforms, names_of(devices.default_device_now())))]


@def_rule(sharding_constraint_p, "impl")
def _put(x: Any, *, sharding: NamedSharding) -> list[Any]:
    """Outside of programs, arrays are moved, if it's known where to; what is open stays cut as it is."""
    if not isinstance(sharding.mesh, Mesh):
        return [x]
    cuts = open_cuts(sharding.spec, np.ndim(x))
    return [device_put(x, sharding.update(spec=_filled(x, cuts, sharding)) if None in cuts else sharding)]


@def_rule(inspect_sharding_p, "impl")
def _look(x: Any, *, callback: Look) -> list[Any]:
    """What isn't on a device yet would be put on the default one."""
    callback(x.sharding if is_concrete(x) else SingleDeviceSharding(devices.default_device_now()))
    return []


def _filled(x: Any, cuts: OpenCuts, sharding: NamedSharding) -> PartitionSpec:
    lies = x.sharding if is_concrete(x) else None
    own = None
    if isinstance(lies, NamedSharding) and lies.device_list == sharding.device_list:
        own = cuts_on(sharding.mesh, lies, x.ndim)
    taken = {a for c in cuts for a in c or ()}
    given = [
        (o if taken.isdisjoint(o) else ()) if c is None else c
        for c, o in zip(cuts, own or uncut(len(cuts)), strict=True)
    ]
    return trimmed_spec(tuple(given))


@def_rule(reshard_p, "impl")
def _reshard(x: Any, *, sharding: NamedSharding | None) -> list[Any]:
    """Outside of programs, arrays are moved, or no more than told."""
    if sharding is None and is_concrete(x) and x.is_sum and isinstance(x.sharding, NamedSharding):
        return [device_put(x, x.sharding.update(spec=PartitionSpec(*x.sharding.spec.partitions)))]
    if sharding is None:
        return [_untold(x) if is_concrete(x) else x]
    mesh = _with_devices(x, sharding)
    if mesh is None and not sharding.mesh.explicit_axes:
        return [x]
    if mesh is None:
        raise ValueError(f"reshard: {sharding} has no devices; set a mesh that has them with `polyax.set_mesh`")
    if is_concrete(x) and x.is_sum:
        return _on_mesh(reshard_p, [x], (x.aval,), {"sharding": sharding}, mesh)
    asked = _beside_free(x, NamedSharding(mesh, sharding.spec), sharding.mesh.auto_axes)
    put = device_put(x, _in_full(asked, np.ndim(x)))
    return [retold(put, typed(put.aval, sharding))]


def _beside_free(x: Any, asked: NamedSharding, free: tuple[Any, ...]) -> NamedSharding:
    """Along axes of which types don't tell, an array stays cut in dimensions that are cut alike along the others."""
    lies = x.sharding if is_concrete(x) else None
    if not free or not isinstance(lies, NamedSharding) or lies.device_list != asked.device_list:
        return asked
    own, wanted = cuts_on(asked.mesh, lies, x.ndim), asked.cuts(x.ndim)
    if own is None:
        return asked
    told = [tuple([a for a in names if a not in free]) for names in own]
    cuts = [o if t == w else w for o, t, w in zip(own, told, wanted, strict=True)]
    return asked.update(spec=trimmed_spec(tuple(cuts)))


def _untold(x: Array) -> Array:
    """Of a type that tells nothing; where types tell all of how arrays lie, what they don't tell of isn't cut."""
    where = x.sharding
    told = x.aval.told is not None
    if told and isinstance(where, NamedSharding) and mesh_here(where.mesh).are_all_axes_explicit:
        x = device_put(x, where.update(spec=PartitionSpec(*[None] * x.ndim)))
    return Array.of_parts(x.aval.update(sharding=None), x.parts, _as_typed_here(x.sharding))


def _as_typed_here(sharding: Any) -> Any:
    """The sharding, with axes of the types that they have where this is asked."""
    here = mesh_in_force()
    if here is None or not isinstance(sharding, NamedSharding):
        return sharding
    alike = here.axes == sharding.mesh.axes and here.device_list == sharding.device_list
    return sharding.update(mesh=here) if alike else sharding


def _with_devices(x: Any, sharding: NamedSharding) -> Mesh | None:
    """The mesh, whose devices are those of the mesh in force, or where ``x`` lies."""
    own = x.sharding.mesh if is_concrete(x) and isinstance(x.sharding, NamedSharding) else None
    for mesh in (sharding.mesh, mesh_in_force(), own):
        if isinstance(mesh, Mesh) and mesh.axes == sharding.mesh.axes:
            return mesh
    return None


def _call_back(*args: Any, callback: Any, result_avals: Sequence[ShapedArray], **_: Any) -> list[Array]:
    """Outside of programs, users' functions are called at once."""
    device = choose_device(None, args)
    outs = callback([np.array(x.host_value() if is_concrete(x) else x) for x in args], result_avals)
    made = [from_host(x, device, a) for x, a in zip(outs, result_avals, strict=True)]
    return [x.commit() for x in made] if seat_of(device, args).committed else made


for _p in CALLBACKS:
    _p.impl = _call_back


def clear_caches() -> None:
    """Forgets every compiled program."""
    _eager.clear()
    repeated.clear()
    forget()


install_eval_trace(EvalTrace())
install_relay(relaid)
