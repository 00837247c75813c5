"""``shard_map[jaxpr axes in_specs out_specs devices name]``: one program, run side by side on parts of its arguments.

A spec lists, for some dimensions of an array, the named axes along which it is cut into blocks; ``pmap`` is a thin map
over one axis with blocks of one. All rules map the inner program and call the result.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from typing import Any

from polyax.control.inner.lists import Mask, cut, kept, merged, nonzeros, partition
from polyax.control.inner.programs import derived, hoisted, pruned, run, without_inputs
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import batch_axis_at, div, expand_dims, reshape, scalar, squeeze
from polyax.ops.collective import psum_p
from polyax.ops.slicing import index_in_dim
from polyax.trace.context import extend_axis_env, set_trace
from polyax.trace.symbolic import Zero, is_undef
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_flat, batch_jaxpr

Axes = tuple[tuple[Any, int], ...]
"""Names and sizes, outermost first."""
Spec = tuple[tuple[int, tuple[Any, ...]], ...]
"""Dimensions, each with the names of the axes that it is cut along."""

shard_map_p = Primitive("shard_map", higher_order=True)


@contextlib.contextmanager
def axes_bound(axes: Axes) -> Generator[None]:
    """Binds the axes' names: users' rules, which differentiation calls, may hold collectives."""
    with contextlib.ExitStack() as stack:
        for name, size in axes:
            stack.enter_context(extend_axis_env(name, size))
        yield


def names_of(spec: Spec) -> set[Any]:
    return {name for _, names in spec for name in names}


def _factor(names: Sequence[Any], axes: Axes) -> int:
    sizes = dict(axes)
    return math.prod(sizes[n] for n in names)


def whole(block: ShapedArray, spec: Spec, axes: Axes) -> ShapedArray:
    """The type of the array whose blocks have the type ``block``."""
    shape = list(block.shape)
    for dim, names in spec:
        shape[dim] *= _factor(names, axes)
    return block.update(shape=tuple(shape))


def bind(
    program: ClosedJaxpr, args: Sequence[Any], in_specs: Sequence[Spec], out_specs: Sequence[Spec], params: Any
) -> list[Any]:
    """Constants of the program are the same for all."""
    program, consts = hoisted(program)
    rest = {k: params[k] for k in ("axes", "devices", "name")}
    specs = (*[()] * len(consts), *in_specs)
    return shard_map_p.bind(*consts, *args, jaxpr=program, in_specs=specs, out_specs=tuple(out_specs), **rest)


@def_rule(shard_map_p, "abstract_eval")
def _abstract_eval(
    *_: ShapedArray, jaxpr: ClosedJaxpr, axes: Axes, out_specs: Sequence[Spec], **__: Any
) -> tuple[list[ShapedArray], Effects]:
    return [whole(a, s, axes) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)], jaxpr.effects


@def_rule(shard_map_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    jaxpr, in_specs, out_specs = params["jaxpr"], params["in_specs"], params["out_specs"]
    nonzero = nonzeros(tangents)
    with axes_bound(params["axes"]):
        both, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    specs = [*out_specs, *kept(nonzero_out, out_specs)]
    args = [*primals, *kept(nonzero, tangents)]
    outs = bind(both, args, [*in_specs, *kept(nonzero, in_specs)], specs, params)
    n = len(nonzero_out)
    avals = _abstract_eval(**params)[0]
    zeros = [Zero(a.to_tangent_aval()) for a, nz in zip(avals, nonzero_out, strict=True) if not nz]
    return outs[:n], merged(nonzero_out, outs[n:], zeros)


@def_rule(shard_map_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Every program has residuals of its own: they are stacked along a dimension that all axes cut."""
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    with axes_bound(params["axes"]):
        known, later, out_unknown, count = _split(params["jaxpr"], tuple(unknown))
    stacked: Spec = ((0, tuple(name for name, _ in params["axes"])),)
    unknowns, knowns = partition(unknown, args)
    unknown_specs, known_specs = partition(unknown, in_specs)
    later_outs, known_outs = partition(out_unknown, out_specs)
    with set_trace(trace.known):
        outs = bind(known, knowns, known_specs, [*known_outs, *[stacked] * count], params)
    n = len(known_outs)
    results: list[Any] = []
    if later_outs:
        with set_trace(trace.unknown):
            specs = [*[stacked] * count, *unknown_specs]
            results = bind(later, [*outs[n:], *unknowns], specs, later_outs, params)
    return merged(out_unknown, results, outs[:n])


@memoize_by_jaxpr
def _split(jaxpr: ClosedJaxpr, unknown: Mask) -> tuple[ClosedJaxpr, ClosedJaxpr, Mask, int]:
    parts = partial_eval_jaxpr(jaxpr, unknown)
    n = len(parts.known.out_avals) - parts.num_residuals

    def known(*args: Any) -> list[Any]:
        outs = run(parts.known, args)
        return [*outs[:n], *(expand_dims(r, (0,)) for r in outs[n:])]

    def later(*args: Any) -> list[Any]:
        residuals, rest = cut(args, parts.num_residuals)
        return run(parts.unknown, [*(squeeze(r, (0,)) for r in residuals), *rest])

    residuals, rest = cut(parts.unknown.in_avals, parts.num_residuals)
    avals = [*(a.update(shape=(1, *a.shape)) for a in residuals), *rest]
    first = derived(jaxpr, known, parts.known.in_avals)
    return first, derived(jaxpr, later, avals), parts.out_unknown, parts.num_residuals


@def_rule(shard_map_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    """A result that is the same everywhere shares its cotangent; an operand that all programs read collects theirs."""
    in_specs, out_specs, axes = params["in_specs"], params["out_specs"], params["axes"]
    linear, nonzero = tuple(map(is_undef, args)), nonzeros(cts)
    backward, nonzero_out = _backward(params["jaxpr"], linear, nonzero, axes, in_specs, out_specs)
    linear_specs, given_specs = partition(linear, in_specs)
    unknowns, knowns = partition(linear, args)
    specs = [*given_specs, *kept(nonzero, out_specs)]
    outs = bind(backward, [*knowns, *kept(nonzero, cts)], specs, kept(nonzero_out, linear_specs), params)
    zeros = [Zero(x.aval) for x, nz in zip(unknowns, nonzero_out, strict=True) if not nz]
    return merged(linear, merged(nonzero_out, outs, zeros), [None] * len(knowns))


@memoize_by_jaxpr
def _backward(
    jaxpr: ClosedJaxpr, linear: Mask, nonzero: Mask, axes: Axes, in_specs: Sequence[Spec], out_specs: Sequence[Spec]
) -> tuple[ClosedJaxpr, Mask]:
    with axes_bound(axes):
        parts = partial_eval_jaxpr(jaxpr, linear)
        n = len(parts.known.out_avals) - parts.num_residuals
        wanted = tuple(kept(parts.out_unknown, nonzero))
        lin = (*[False] * parts.num_residuals, *[True] * sum(linear))
        body, nonzero_out = transpose_jaxpr(parts.unknown, lin, wanted)
    shares = [_factor(_absent(s, axes), axes) for s in kept(nonzero, out_specs)]
    sums = [_absent(s, axes) for s in kept(nonzero_out, kept(linear, in_specs))]
    num_known = linear.count(False)

    def fun(*args: Any) -> list[Any]:
        knowns, cts = cut(args, num_known)
        cts = [div(ct, scalar(k, ct.dtype)) if k > 1 else ct for ct, k in zip(cts, shares, strict=True)]
        outs = run(body, [*run(parts.known, knowns)[n:], *cts])
        return [
            psum_p.bind1(x, axes=names, axis_index_groups=None) if names else x
            for x, names in zip(outs, sums, strict=True)
        ]

    avals = [*parts.known.in_avals, *body.in_avals[parts.num_residuals :]]
    return derived(jaxpr, fun, avals), nonzero_out


def _absent(spec: Spec, axes: Axes) -> tuple[Any, ...]:
    return tuple(name for name, _ in axes if name not in names_of(spec))


@def_rule(shard_map_p, "batch")
def _batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    with axes_bound(params["axes"]):
        mapped, out_dims = batch_jaxpr(params["jaxpr"], axis, tuple(dims))
    in_specs = [_shifted(s, d) for s, d in zip(params["in_specs"], dims, strict=True)]
    out_specs = [_shifted(s, d) for s, d in zip(params["out_specs"], out_dims, strict=True)]
    return bind(mapped, args, in_specs, out_specs, params), out_dims


def _shifted(spec: Spec, dim: int | None) -> Spec:
    """The spec of an array with a further dimension at ``dim``."""
    return spec if dim is None else tuple((d + (d >= dim), names) for d, names in spec)


@def_rule(shard_map_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    program, needed = pruned(eqn.params["jaxpr"], tuple(used))
    params = {
        **eqn.params,
        "jaxpr": without_inputs(program, needed),
        "in_specs": tuple(kept(needed, eqn.params["in_specs"])),
        "out_specs": tuple(kept(used, eqn.params["out_specs"])),
    }
    return eqn.replace(invars=kept(needed, eqn.invars), outvars=kept(used, eqn.outvars), params=params)


@def_rule(shard_map_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]


@def_rule(shard_map_p, "decompose")
def _decompose(*args: Any, jaxpr: ClosedJaxpr, axes: Axes, in_specs: Any, out_specs: Any, **_: Any) -> list[Any]:
    """Within another program, all parts are computed where that runs."""
    return run(on_one_device(jaxpr, axes, in_specs, out_specs), args)


@memoize_by_jaxpr
def on_one_device(jaxpr: ClosedJaxpr, axes: Axes, in_specs: Sequence[Spec], out_specs: Sequence[Spec]) -> ClosedJaxpr:
    """The same computation as a program for one device, which maps over the axes; so it runs within other programs."""

    def along(rest: Axes, args: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
        if not rest:
            return run(jaxpr, args)
        (name, size), *inner = rest
        parts = [_parted(x, s, name, size) for x, s in zip(args, specs, strict=True)]

        def one(*xs: Any) -> list[Any]:
            return along(tuple(inner), xs, specs)

        outs, dims = batch_flat(one, AxisData(size, name), [x for x, _ in parts], [d for _, d in parts])
        return [_joined(x, d, s, name, size) for x, d, s in zip(outs, dims, out_specs, strict=True)]

    avals = [whole(a, s, axes) for a, s in zip(jaxpr.in_avals, in_specs, strict=True)]
    return derived(jaxpr, lambda *args: along(axes, args, in_specs), avals)


def _parted(x: Any, spec: Spec, name: Any, size: int) -> tuple[Any, int | None]:
    """``x`` with a dimension of its own for the named axis, and where it is."""
    dim = next((d for d, names in spec if name in names), None)
    if dim is None:
        return x, None
    shape = x.shape
    return reshape(x, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :])), dim


def _joined(x: Any, dim: int | None, spec: Spec, name: Any, size: int) -> Any:
    wanted = next((d for d, names in spec if name in names), None)
    if wanted is None:  # the same everywhere
        return x if dim is None else index_in_dim(x, 0, dim, keepdims=False)
    x = batch_axis_at(x, dim, wanted, size)
    shape = x.shape
    return reshape(x, (*shape[:wanted], size * shape[wanted + 1], *shape[wanted + 2 :]))
