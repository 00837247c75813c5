"""Cotangents of parts of an array that are added to a reference: what is large is never made for what is small.

Where the cotangent of an array goes to a reference (``vjp(...)[1].with_refs``), reading a part of it is transposed to
adding to that part. The rules ``backward`` of slices and gathers, and of calls of programs that hold some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.control.calls.jit import call, pjit_p
from polyax.control.inner.lists import Mask, cut, kept, merged, nonzeros, partition
from polyax.control.refs.indexing import Pick, RefIndex, Stretch
from polyax.control.refs.primitives import CotangentRefs, addupdate_p
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import def_rule
from polyax.ir.refs import AbstractRef
from polyax.meshes.explicit import cotangent_type
from polyax.ops.basis import convert, squeeze
from polyax.ops.compare import clamp
from polyax.ops.gather import GatherScatterMode, gather_p
from polyax.ops.index import dynamic_slice_p
from polyax.ops.slicing import index_in_dim, slice_p
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.symbolic import UndefPrimal, Zero, is_undef
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import backward_pass


def _add(refs: CotangentRefs, cts: Sequence[Any], eqn: Eqn, index: RefIndex, operands: Sequence[Any]) -> list[Any]:
    """Adds the cotangent of what was read to where it was read."""
    ref, (ct,) = refs[eqn.invars[0]], cts
    if ct is not None and type(ct) is not Zero:
        addupdate_p.bind(ref, convert(ct, ref.dtype, ref.aval.weak_type), *operands, indices=(index,))
    return [None] * len(eqn.invars)


@def_rule(slice_p, "backward")
def _slice(refs: CotangentRefs, cts: Sequence[Any], eqn: Eqn, primals: Sequence[Any]) -> list[Any]:
    params = eqn.params
    starts, sizes = params["start_indices"], eqn.outvars[0].aval.shape
    strides = params["strides"] or (1,) * len(starts)
    return _add(refs, cts, eqn, RefIndex(tuple(map(Stretch, starts, sizes, strides))), ())


@def_rule(dynamic_slice_p, "backward")
def _dynamic_slice(refs: CotangentRefs, cts: Sequence[Any], eqn: Eqn, primals: Sequence[Any]) -> list[Any]:
    starts, whole = primals[1:], eqn.invars[0].aval.shape
    known = [_known(s, n - size) for s, n, size in zip(starts, whole, eqn.params["slice_sizes"], strict=True)]
    items = tuple(map(Stretch, known, eqn.params["slice_sizes"]))
    return _add(refs, cts, eqn, RefIndex(items), [s for s, k in zip(starts, known, strict=True) if k is None])


def _known(start: Any, last: int) -> int | None:
    """A start that is known, inside; of a dimension that is whole, it is."""
    if last == 0:
        return 0
    return min(max(int(start), 0), last) if isinstance(start, (int, np.integer)) else None


@def_rule(gather_p, "backward")
def _gather(refs: CotangentRefs, cts: Sequence[Any], eqn: Eqn, primals: Sequence[Any]) -> list[Any]:
    """Rows at places that are clamped into the array; of other gathers, the whole cotangent is made."""
    dims = _rows(eqn)
    if dims is None or cts[0] is None:
        given = [Zero(v.aval) if ct is None else ct for v, ct in zip(eqn.outvars, cts, strict=True)]
        return eqn.primitive.rule("transpose")(given, *primals, **eqn.params)
    numbers, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
    indices = primals[1]
    common = np.shape(indices)[:-1]
    columns = [squeeze(index_in_dim(indices, k, -1), [len(common)]) for k in range(len(dims))]
    places = [clamp(np.int32(0), convert(c, np.dtype("int32")), np.int32(shape[d] - 1)) for c, d in zip(columns, dims)]
    items = tuple([Pick(None, common) if n in dims else Stretch(0, size) for n, size in enumerate(shape)])
    block = next((n for n, at in enumerate(numbers.offset_dims) if at != n), len(numbers.offset_dims))
    return _add(refs, cts, eqn, RefIndex(items, block), places)


def _rows(eqn: Eqn) -> tuple[int, ...] | None:
    """The dimensions that an array of places tells of, if others are whole, and places are inside or clamped."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    dims, shape = numbers.start_index_map, eqn.invars[0].aval.shape
    ndim = len(eqn.invars[1].aval.shape) - 1
    simple = (
        eqn.params["mode"] in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)
        and list(dims) == sorted(dims) == list(numbers.collapsed_slice_dims)
        and not numbers.operand_batching_dims
        and all(size == n for d, (size, n) in enumerate(zip(sizes, shape, strict=True)) if d not in dims)
    )
    at = numbers.offset_dims
    block = next((n for n, d in enumerate(at) if d != n), len(at))
    together = all(d == (n if n < block else n + ndim) for n, d in enumerate(at))
    return dims if simple and together and ndim else None


@def_rule(pjit_p, "backward")
def _pjit(refs: CotangentRefs, cts: Sequence[Any], eqn: Eqn, primals: Sequence[Any]) -> list[Any]:
    """The program backwards gets the references, too."""
    linear = tuple(map(is_undef, primals))
    cts = [Zero(v.aval) if ct is None else ct for v, ct in zip(eqn.outvars, cts, strict=True)]
    into = tuple([v in refs for v in eqn.invars])
    if not any(nonzeros(cts)):
        return [None] * len(primals)
    program, nonzero_out = _into(eqn.params["jaxpr"], linear, nonzeros(cts), into)
    knowns = [x for x, lin in zip(primals, linear, strict=True) if not lin]
    given = [*knowns, *kept(nonzeros(cts), cts), *(refs[v] for v in kept(into, eqn.invars))]
    rest = {k: v for k, v in eqn.params.items() if k not in ("jaxpr", "donated")}
    results = call(program, given, **rest)
    unknowns, _ = partition(linear, primals)
    zeros = [Zero(x.aval) for x, nz in zip(unknowns, nonzero_out, strict=True) if not nz]
    return merged(linear, merged(nonzero_out, results, zeros), [None] * len(knowns))


@memoize_by_jaxpr
def _into(program: ClosedJaxpr, linear: Mask, nonzero: Mask, into: Mask) -> tuple[ClosedJaxpr, Mask]:
    """From known inputs, nonzero cotangents and references to nonzero cotangents of linear inputs, and which these are;
    cotangents of the inputs ``into`` are added to the references as far as they are of parts."""
    nonzero_out: list[bool] = []
    in_avals, out_avals = program.in_avals, program.out_avals
    targets = kept(into, program.jaxpr.invars)

    def fun(*args: Any) -> list[Any]:
        knowns, cts, refs = cut(args, linear.count(False), sum(nonzero))
        known, ct = iter(knowns), iter(cts)
        primals = [UndefPrimal(a) if lin else next(known) for lin, a in zip(linear, in_avals, strict=True)]
        given = [next(ct) if nz else Zero(a) for nz, a in zip(nonzero, out_avals, strict=True)]
        found = backward_pass(program.jaxpr, program.consts, primals, given, dict(zip(targets, refs, strict=True)))
        wanted = kept(linear, found)
        nonzero_out.extend(nonzeros(wanted))
        return [x for x in wanted if type(x) is not Zero]

    avals = [a for a, lin in zip(in_avals, linear, strict=True) if not lin]
    avals += [cotangent_type(a) for a in kept(nonzero, out_avals)]
    avals += [AbstractRef(v.aval) for v in targets]
    return trace_to_jaxpr(fun, avals, name=program.jaxpr.debug_name), tuple(nonzero_out)
