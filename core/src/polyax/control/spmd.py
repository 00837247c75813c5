"""``shard_map[jaxpr mesh manual_axes in_specs out_specs check_vma name]``: one program, run side by side on parts of
its arguments.

The specs say for each dimension of an array along which axes of the mesh it is cut into blocks (``Cuts``). The axes
that are manual have their names in the program; what is cut along the others is not its business. ``pmap`` is a thin
map over one axis with blocks of one; its mesh has no devices unless the user chose some.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from polyax.control import varying  # noqa: F401  (says how values of programs vary)
from polyax.control.calls.family import CallLike, Ends, Params
from polyax.control.inner.lists import Mask, cut, kept
from polyax.control.inner.programs import derived, run
from polyax.control.inner.untyped import without_vma
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.meshes.axes import AbstractMesh, Axes, AxisType
from polyax.meshes.current import use_abstract_mesh
from polyax.meshes.explicit import cuts_of, sharding_in_type, typed, with_dim
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts, cotangent_sums_of, summands, sums_of, trimmed_spec
from polyax.ops.basis import (
    batch_axis_at,
    div,
    expand_dims,
    move_axis,
    reduce_sum,
    reshape,
    scalar,
    squeeze,
    zeros_like,
)
from polyax.ops.collective import names_of, psum_p
from polyax.ops.joining import stack
from polyax.ops.slicing import index_in_dim
from polyax.trace.context import extend_axis_env
from polyax.trace.varying import types_checked
from polyax.transforms.linearize import PartialJaxprs, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_flat, batch_jaxpr, cut_by_vmap

shard_map_p = Primitive("shard_map", higher_order=True)


@contextlib.contextmanager
def axes_bound(axes: Sequence[tuple[Any, int]]) -> Generator[None]:
    """Binds the axes' names: users' rules, which differentiation calls, may hold collectives."""
    with contextlib.ExitStack() as stack:
        for name, size in axes:
            stack.enter_context(extend_axis_env(name, size))
        yield


def manual(mesh: Mesh | AbstractMesh, manual_axes: frozenset[Any]) -> Axes:
    """The axes that have names in the program, in the order of the mesh."""
    return tuple((name, size) for name, size in mesh.axes if name in manual_axes)


def _axes(params: Params) -> Axes:
    return manual(params["mesh"], params["manual_axes"])


@contextlib.contextmanager
def region(mesh: Mesh | AbstractMesh, manual_axes: frozenset[Any], check_vma: bool) -> Generator[None]:
    """Where the program is made: the axes have their names, and are manual in the mesh in force."""
    inside = mesh.abstract_mesh.update_axis_types(dict.fromkeys(manual_axes, AxisType.Manual))
    axes = manual(mesh, manual_axes)
    checked = types_checked(told_of(axes)) if check_vma else contextlib.nullcontext()
    with axes_bound(axes), checked, use_abstract_mesh(inside):
        yield


def told_of(axes: Axes) -> frozenset[Any]:
    """The axes along which types tell whether values vary."""
    ones = not config.get("remove_size_one_mesh_axis_from_type")
    return frozenset(name for name, size in axes if ones or size > 1)


def _region(params: Params) -> contextlib.AbstractContextManager[None]:
    return region(params["mesh"], params["manual_axes"], params["check_vma"])


def _factor(names: Sequence[Any], axes: Axes) -> int:
    sizes = dict(axes)
    return math.prod(sizes[n] for n in names)


def whole(block: ShapedArray, cuts: Cuts, axes: Axes) -> ShapedArray:
    """The type of the array whose blocks have the type ``block``."""
    shape = tuple(n * _factor(names, axes) for n, names in zip(block.shape, cuts, strict=True))
    names = {name for name, _ in axes}
    unreduced, reduced = block.sums
    return block.with_shape(shape, vma=block.vma - names, sums=(unreduced - names, reduced - names))


def block_of(aval: ShapedArray, cuts: Cuts, axes: Axes, check_vma: bool) -> ShapedArray:
    """The type of a block of an array, which varies along the axes that it is cut along. What it says of explicit axes
    that aren't manual, it still does."""
    shape = tuple(n // _factor(names, axes) for n, names in zip(aval.shape, cuts, strict=True))
    vma = aval.vma | told_of(axes).intersection(a for names in cuts for a in names) if check_vma else aval.vma
    if aval.told is None:
        return aval.with_shape(shape, vma=vma)
    names = {name for name, _ in axes}
    rest = [tuple([a for a in some if a not in names]) for some in cuts_of(aval)]
    inside = aval.told.mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
    block = aval.with_shape(shape, vma=vma, sharding=sharding_in_type(inside, tuple(rest)))
    return block.update(sums=(aval.told.spec.unreduced, aval.told.spec.reduced)) if check_vma else block


def cut_further(cuts: Cuts, block: ShapedArray) -> Cuts:
    """How an array is cut into blocks, and they along other axes, as their type says."""
    return _as(cuts, [(*c, *some) for c, some in zip(cuts, cuts_of(block), strict=True)])


def _padded(cuts: Cuts, aval: ShapedArray, check_vma: bool) -> Cuts:
    """With an entry for each dimension, and the sums that types tell of, if they do."""
    padded = (*cuts, *((),) * (aval.ndim - len(cuts)))
    return summands(padded, *aval.sums) if check_vma else _as(cuts, padded)


def _as(cuts: Cuts, others: Sequence[Any]) -> Cuts:
    """Other cuts, of an array that is a sum, or has one as its cotangent, as that of ``cuts``."""
    return summands(others, sums_of(cuts), cotangent_sums_of(cuts))


class _ShardMap(CallLike):
    """Ends are specs; programs are mapped while the axes have their names."""

    def bind(self, program: ClosedJaxpr, args: Sequence[Any], params: Params, ins: Ends, outs: Ends) -> list[Any]:
        """Constants of the program are the same for all."""
        ins = [*[()] * len(program.consts), *ins]
        avals = [v.aval for v in (*program.jaxpr.constvars, *program.jaxpr.invars)]
        told = [params["check_vma"]]
        specs = {
            "in_specs": tuple(map(_padded, ins, avals, told * len(avals))),
            "out_specs": tuple(map(_padded, outs, program.out_avals, told * len(program.out_avals))),
        }
        return super().bind(program, args, params | specs, ins, outs)

    def ends(self, params: Params) -> tuple[Ends, Ends]:
        return params["in_specs"], params["out_specs"]

    def shifted(self, end: Cuts, dim: int | None) -> Cuts:
        return _shifted(end, dim, ())

    def cotangent(self, end: Cuts) -> Cuts:
        return summands(end, cotangent_sums_of(end), sums_of(end))

    def residuals(self, params: Params, avals: Sequence[ShapedArray]) -> list[Cuts]:
        """Every program has residuals of its own: they are stacked along a dimension that all axes cut, or those along
        which they vary."""
        mapped = cut_by_vmap()
        names = [name for name, _ in _axes(params) if name not in mapped]
        return [(tuple(n for n in names if not params["check_vma"] or n in a.vma),) for a in avals]

    def narrowed(self, params: Params, needed: Sequence[bool], used: Sequence[bool]) -> Params:
        ins, outs = self.ends(params)
        return params | {"in_specs": tuple(kept(needed, ins)), "out_specs": tuple(kept(used, outs))}

    def around(self, params: Params) -> contextlib.AbstractContextManager[None]:
        return _region(params)

    def split(self, params: Params, unknown: Mask) -> PartialJaxprs:
        with self.around(params):
            return _split(params["jaxpr"], unknown)

    def backward(self, params: Params, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
        mapped = cut_by_vmap()
        axes = tuple((name, size) for name, size in _axes(params) if name not in mapped)
        with self.around(params):
            if params["check_vma"]:
                return _transposed(params["jaxpr"], linear, nonzero)
            return _backward(params["jaxpr"], linear, nonzero, axes, *self.ends(params))

    def batch(self, axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        """The mapped axis may be cut along axes of the mesh: each program then maps over its part."""
        names = tuple(n for n in axis.cut or names_of(axis.spmd_name) if n in params["manual_axes"])
        if not names:
            inside = axis.mesh and axis.mesh.update_axis_types(dict.fromkeys(params["manual_axes"], AxisType.Manual))
            return super().batch(replace(axis, mesh=inside), args, dims, **params)
        own = replace(axis, size=axis.size // _factor(names, _axes(params)), spmd_name=None, cut=())
        with self.around(params):
            mapped, out_dims = batch_jaxpr(params["jaxpr"], own, tuple(dims))
        ins, outs = self.ends(params)
        if ambient.trace is None:
            _refuse_cut_twice("in_specs", names, ins, dims)
            _refuse_cut_twice("out_specs", names, outs, out_dims)
        ins = [_shifted(c, d, names) for c, d in zip(ins, dims, strict=True)]
        outs = [_shifted(c, d, names) for c, d in zip(outs, out_dims, strict=True)]
        return self.bind(mapped, args, params, ins, outs), out_dims

    def abstract_eval(self, *_: ShapedArray, **params: Any) -> tuple[list[ShapedArray], Effects]:
        outs, axes = zip(params["jaxpr"].out_avals, params["out_specs"], strict=True), _axes(params)
        return [whole(a, s, axes) for a, s in outs], params["jaxpr"].effects


def _refuse_cut_twice(what: str, names: tuple[Any, ...], ends: Ends, dims: Sequence[int | None]) -> None:
    for cuts, dim in zip(ends, dims, strict=True):
        if dim is not None and any(n in names for some in cuts for n in some):
            raise ValueError(f"vmap spmd_axis_name cannot appear in shard_map {what}: {names} cut {cuts} already")


def _shifted(cuts: Cuts, dim: int | None, names: tuple[Any, ...]) -> Cuts:
    """With a further dimension, cut along the axes named."""
    return cuts if dim is None else _as(cuts, (*cuts[:dim], names, *cuts[dim:]))


shard_map_call = _ShardMap(shard_map_p)
shard_map_call.install("abstract_eval", "jvp", "batch", "transpose", "partial_eval", "dce", "sub_jaxprs")


@memoize_by_jaxpr
def _split(jaxpr: ClosedJaxpr, unknown: Mask) -> PartialJaxprs:
    parts = partial_eval_jaxpr(jaxpr, unknown)
    n = len(parts.known.out_avals) - parts.num_residuals

    def known(*args: Any) -> list[Any]:
        outs = run(parts.known, args)
        return [*outs[:n], *(expand_dims(r, (0,)) for r in outs[n:])]

    def later(*args: Any) -> list[Any]:
        residuals, rest = cut(args, parts.num_residuals)
        return run(parts.unknown, [*(squeeze(r, (0,)) for r in residuals), *rest])

    residuals, rest = cut(parts.unknown.in_avals, parts.num_residuals)
    avals = [*(with_dim(a, 0, 1) for a in residuals), *rest]
    first = derived(jaxpr, known, parts.known.in_avals)
    return PartialJaxprs(first, derived(jaxpr, later, avals), parts.out_unknown, parts.num_residuals)


@memoize_by_jaxpr
def _backward(
    jaxpr: ClosedJaxpr, linear: Mask, nonzero: Mask, axes: Axes, in_specs: Sequence[Cuts], out_specs: Sequence[Cuts]
) -> tuple[ClosedJaxpr, Mask]:
    """A result that is the same everywhere shares its cotangent; an operand that all programs read collects theirs."""
    body, nonzero_out = _transposed(jaxpr, linear, nonzero)
    shares = [_factor(_absent(s, axes), axes) for s in kept(nonzero, out_specs)]
    sums = [_absent(s, axes) for s in kept(nonzero_out, kept(linear, in_specs))]
    num_known = linear.count(False)

    def fun(*args: Any) -> list[Any]:
        knowns, cts = cut(args, num_known)
        cts = [div(ct, scalar(k, ct.dtype)) if k > 1 else ct for ct, k in zip(cts, shares, strict=True)]
        return [
            psum_p.bind1(x, axes=names, axis_index_groups=None) if names else x
            for x, names in zip(run(body, [*knowns, *cts]), sums, strict=True)
        ]

    return derived(jaxpr, fun, body.in_avals), nonzero_out


@memoize_by_jaxpr
def _transposed(jaxpr: ClosedJaxpr, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
    """From operands that aren't linear and cotangents to cotangents. Where types tell along which axes values vary, no
    more is to be done."""
    parts = partial_eval_jaxpr(jaxpr, linear)
    n = len(parts.known.out_avals) - parts.num_residuals
    wanted = tuple(kept(parts.out_unknown, nonzero))
    lin = (*[False] * parts.num_residuals, *[True] * sum(linear))
    body, nonzero_out = transpose_jaxpr(parts.unknown, lin, wanted)
    num_known = linear.count(False)

    def fun(*args: Any) -> list[Any]:
        knowns, cts = cut(args, num_known)
        return run(body, [*run(parts.known, knowns)[n:], *cts])

    avals = [*parts.known.in_avals, *body.in_avals[parts.num_residuals :]]
    return derived(jaxpr, fun, avals), nonzero_out


def _absent(cuts: Cuts, axes: Axes) -> tuple[Any, ...]:
    """The axes along which all have the same, and each its part of the cotangent."""
    cut_along = cotangent_sums_of(cuts).union(*cuts)
    return tuple(name for name, _ in axes if name not in cut_along)


@def_rule(shard_map_p, "varies")
def _varies(vmas: Any, *, jaxpr: ClosedJaxpr, manual_axes: frozenset[Any], **_: Any) -> Any:
    return [a.vma - manual_axes for a in jaxpr.in_avals], None


@def_rule(shard_map_p, "explicit")
def _explicit(
    _: Any, outs: Sequence[ShapedArray], *, mesh: Any, jaxpr: ClosedJaxpr, out_specs: Sequence[Cuts], **__: Any
) -> Any:
    specs = [trimmed_spec(cut_further(c, a)) for a, c in zip(jaxpr.out_avals, out_specs, strict=True)]
    return [typed(a, NamedSharding(mesh, s)) for a, s in zip(outs, specs, strict=True)]


@def_rule(shard_map_p, "pretty")
def _pretty(in_specs: Sequence[Cuts], out_specs: Sequence[Cuts], manual_axes: Any, name: str, **params: Any) -> Params:
    """As JAX prints it."""
    specs = {"in_specs": tuple(map(trimmed_spec, in_specs)), "out_specs": tuple(map(trimmed_spec, out_specs))}
    return params | specs | {"newly_manual_axes": manual_axes}


@def_rule(shard_map_p, "decompose")
def _decompose(*args: Any, jaxpr: ClosedJaxpr, in_specs: Any, out_specs: Any, **params: Any) -> list[Any]:
    """Within another program, all parts are computed where that runs."""
    return run(on_one_device(jaxpr, _axes(params), in_specs, out_specs), args)


@memoize_by_jaxpr
def on_one_device(jaxpr: ClosedJaxpr, axes: Axes, in_specs: Sequence[Cuts], out_specs: Sequence[Cuts]) -> ClosedJaxpr:
    """The same computation as a program for one device, which maps over the axes; so it runs within other programs."""
    jaxpr = without_vma(jaxpr)

    sizes = dict(axes)

    def along(rest: Axes, args: Sequence[Any], ins: Sequence[Cuts], outs: Sequence[Cuts]) -> list[Any]:
        if not rest:
            return run(jaxpr, args)
        (name, size), *inner = rest
        parts = [_parted(x, c, name, sizes) for x, c in zip(args, ins, strict=True)]
        inner_ins, inner_outs = ([_without(c, name) for c in ends] for ends in (ins, outs))

        def one(*xs: Any) -> list[Any]:
            return along(tuple(inner), xs, inner_ins, inner_outs)

        results, dims = batch_flat(one, AxisData(size, name), [x for x, _ in parts], [d for _, d in parts])
        return [_joined(x, d, c, name, sizes) for x, d, c in zip(results, dims, outs, strict=True)]

    avals = [whole(a, s, axes) for a, s in zip(jaxpr.in_avals, in_specs, strict=True)]
    return derived(jaxpr, lambda *args: along(axes, args, in_specs, out_specs), avals)


def _without(cuts: Cuts, name: Any) -> Cuts:
    return summands([tuple([n for n in names if n != name]) for names in cuts], sums_of(cuts) - {name})


def _place(cuts: Cuts, name: Any, sizes: dict[Any, int]) -> tuple[int, int] | None:
    """The dimension that is cut along the axis, and into how many parts axes further out cut it."""
    for dim, names in enumerate(cuts):
        if name in names:
            return dim, math.prod(sizes[n] for n in names[: names.index(name)])
    return None


def _parted(x: Any, cuts: Cuts, name: Any, sizes: dict[Any, int]) -> tuple[Any, int | None]:
    """``x`` with a dimension of its own for the named axis, and where it is."""
    if name in sums_of(cuts):  # the first has all, and others have nothing
        return stack([x, *[zeros_like(x)] * (sizes[name] - 1)]), 0
    place = _place(cuts, name, sizes)
    if place is None:
        return x, None
    (dim, outer), size = place, sizes[name]
    before, n, after = x.shape[:dim], x.shape[dim], x.shape[dim + 1 :]
    if outer > 1:
        x = move_axis(reshape(x, (*before, outer, size, n // outer // size, *after)), dim + 1, dim)
    return reshape(x, (*before, size, n // size, *after)), dim


def _joined(x: Any, mapped: int | None, cuts: Cuts, name: Any, sizes: dict[Any, int]) -> Any:
    if name in sums_of(cuts):
        return reduce_sum(batch_axis_at(x, mapped, 0, sizes[name]), (0,))
    place = _place(cuts, name, sizes)
    if place is None:  # the same everywhere
        return x if mapped is None else index_in_dim(x, 0, mapped, keepdims=False)
    (dim, outer), size = place, sizes[name]
    x = batch_axis_at(x, mapped, dim, size)
    before, n, after = x.shape[:dim], x.shape[dim + 1], x.shape[dim + 2 :]
    if outer > 1:
        x = move_axis(reshape(x, (*before, size, outer, n // outer, *after)), dim, dim + 1)
    return reshape(x, (*before, size * n, *after))
