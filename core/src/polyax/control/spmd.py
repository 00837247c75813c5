"""``shard_map[jaxpr axes in_specs out_specs devices name]``: one program, run side by side on parts of its arguments.

A spec lists, for some dimensions of an array, the named axes along which it is cut into blocks; ``pmap`` is a thin map
over one axis with blocks of one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from typing import Any

from polyax.control.calls.family import CallLike, Ends, Params
from polyax.control.inner.lists import Mask, cut, kept
from polyax.control.inner.programs import derived, run
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import batch_axis_at, div, expand_dims, reshape, scalar, squeeze
from polyax.ops.collective import psum_p
from polyax.ops.slicing import index_in_dim
from polyax.trace.context import extend_axis_env
from polyax.transforms.linearize import PartialJaxprs, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_flat

Axes = tuple[tuple[Any, int], ...]
"""Names and sizes, outermost first."""
Spec = tuple[tuple[int, tuple[Any, ...]], ...]
"""Dimensions, each with the names of the axes that it is cut along."""

shard_map_p = Primitive("shard_map", higher_order=True)


@contextlib.contextmanager
def axes_bound(axes: Sequence[tuple[Any, int]]) -> Generator[None]:
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


class _ShardMap(CallLike):
    """Ends are specs; programs are mapped while the axes have their names."""

    def bind(self, program: ClosedJaxpr, args: Sequence[Any], params: Params, ins: Ends, outs: Ends) -> list[Any]:
        """Constants of the program are the same for all."""
        specs = {"in_specs": (*[()] * len(program.consts), *ins), "out_specs": tuple(outs)}
        return super().bind(program, args, params | specs, ins, outs)

    def ends(self, params: Params) -> tuple[Ends, Ends]:
        return params["in_specs"], params["out_specs"]

    def shifted(self, end: Spec, dim: int | None) -> Spec:
        return end if dim is None else tuple((d + (d >= dim), names) for d, names in end)

    def residual(self, params: Params) -> Spec:
        """Every program has residuals of its own: they are stacked along a dimension that all axes cut."""
        return ((0, tuple(name for name, _ in params["axes"])),)

    def narrowed(self, params: Params, needed: Sequence[bool], used: Sequence[bool]) -> Params:
        ins, outs = self.ends(params)
        return params | {"in_specs": tuple(kept(needed, ins)), "out_specs": tuple(kept(used, outs))}

    def around(self, params: Params) -> contextlib.AbstractContextManager[None]:
        return axes_bound(params["axes"])

    def split(self, params: Params, unknown: Mask) -> PartialJaxprs:
        with self.around(params):
            return _split(params["jaxpr"], unknown)

    def backward(self, params: Params, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
        return _backward(params["jaxpr"], linear, nonzero, params["axes"], *self.ends(params))

    def abstract_eval(self, *_: ShapedArray, **params: Any) -> tuple[list[ShapedArray], Effects]:
        outs = zip(params["jaxpr"].out_avals, params["out_specs"], strict=True)
        return [whole(a, s, params["axes"]) for a, s in outs], params["jaxpr"].effects


_ShardMap(shard_map_p).install("abstract_eval", "jvp", "batch", "transpose", "partial_eval", "dce", "sub_jaxprs")


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
    avals = [*(a.update(shape=(1, *a.shape)) for a in residuals), *rest]
    first = derived(jaxpr, known, parts.known.in_avals)
    return PartialJaxprs(first, derived(jaxpr, later, avals), parts.out_unknown, parts.num_residuals)


@memoize_by_jaxpr
def _backward(
    jaxpr: ClosedJaxpr, linear: Mask, nonzero: Mask, axes: Axes, in_specs: Sequence[Spec], out_specs: Sequence[Spec]
) -> tuple[ClosedJaxpr, Mask]:
    """A result that is the same everywhere shares its cotangent; an operand that all programs read collects theirs."""
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
