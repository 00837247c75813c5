"""Collectives through a communication library: what is asked of it, on which memory; the rest goes through the host.

Libraries cut and join whole blocks of memory, which is the leading dimension: ``leading.py`` brings the others there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops import collective
from polyax.ops.parts import all_gather_p, all_to_all_p, reduce_scatter_p
from polyax.ops.permuting import ppermute_p
from polyax.runtime.contract.collectives import member
from polyax.runtime.contract.hooks import WhyNot
from polyax_kernels.gpu.collectives.communication import CommunicationLibrary, Communicator, LibraryGroup
from polyax_kernels.gpu.collectives.leading import why_not_leading
from polyax_kernels.gpu.host import through_host
from polyax_kernels.gpu.runtime import Runtime
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.lowering import Call, Lowering


class Member:
    """One member's part in a collective: its end of the connection, its number among ``size``, and its device."""

    def __init__(self, end: Communicator, own: int, size: int, runtime: Runtime) -> None:
        self.end = end
        self.own = own
        self.size = size
        self.runtime = runtime

    def address(self, view: Any) -> int:
        return self.runtime.address(view.memory) + view.offset


Exchange = Callable[[Member, Sequence[Any], Sequence[Any], Mapping[str, Any]], None]


def elements(aval: ShapedArray) -> tuple[int, str]:
    """How many numbers are added, and of which dtype: a complex one is two.

    >>> elements(ShapedArray((3, 2), np.dtype("complex64")))
    (12, 'float32')
    """
    if aval.dtype.kind == "c":
        return 2 * aval.size, f"float{4 * aval.dtype.itemsize}"
    return aval.size, aval.dtype.name


def _reduce(operation: str) -> Exchange:
    def run(me: Member, outs: Sequence[Any], args: Sequence[Any], params: Mapping[str, Any]) -> None:
        with me.end.together():
            for x, out in zip(args, outs, strict=True):
                me.end.all_reduce(me.address(x), me.address(out), *elements(x.aval), operation)

    return run


def _all_gather(me: Member, outs: Sequence[Any], args: Sequence[Any], params: Mapping[str, Any]) -> None:
    me.end.all_gather(me.address(args[0]), me.address(outs[0]), args[0].aval.nbytes)


def _reduce_scatter(me: Member, outs: Sequence[Any], args: Sequence[Any], params: Mapping[str, Any]) -> None:
    me.end.reduce_scatter(me.address(args[0]), me.address(outs[0]), *elements(outs[0].aval))


def _all_to_all(me: Member, outs: Sequence[Any], args: Sequence[Any], params: Mapping[str, Any]) -> None:
    source, target, nbytes = me.address(args[0]), me.address(outs[0]), args[0].aval.nbytes // me.size
    with me.end.together():
        for n in range(me.size):
            me.end.send(source + n * nbytes, nbytes, n)
            me.end.receive(target + n * nbytes, nbytes, n)


def _ppermute(me: Member, outs: Sequence[Any], args: Sequence[Any], params: Mapping[str, Any]) -> None:
    out, nbytes = outs[0], args[0].aval.nbytes
    if all(target != me.own for _, target in params["perm"]):
        me.runtime.write(out.memory, out.offset, np.zeros(nbytes, np.uint8))
    with me.end.together():
        for source, target in params["perm"]:
            if source == me.own:
                me.end.send(me.address(args[0]), nbytes, target)
            if target == me.own:
                me.end.receive(me.address(out), nbytes, source)


def _call(primitive: Primitive, exchanges: Exchange, why_not: WhyNot) -> Call:
    host, names_of = through_host(on_host(primitive)), primitive.axes
    assert names_of is not None, f"{primitive} works along named axes"

    def run(ctx: Any, outs: Sequence[Any], args: Sequence[Any], **params: Any) -> None:
        group, rank = member()
        if not isinstance(group, LibraryGroup):
            host.ready(ctx, (), (), params)(outs, args)
            return
        names, groups = tuple(names_of(**params)), params.get("axis_index_groups")
        peers, own = group.peers(rank, names, groups)
        end = group.communicator(rank, names, groups)
        exchanges(Member(end, own, len(peers), ctx.runtime), outs, args, params)

    return Call(run, why_not, operands="device")


def lowerings(library: CommunicationLibrary) -> dict[Primitive, Lowering]:
    """Of all collectives that move data, through ``library`` where it can."""

    def declines(dtypes: frozenset[str] | None, what: str = "") -> WhyNot:
        def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
            if any(a.size == 0 for a in avals):
                return f"{library.name} isn't called for empty arrays"
            odd = sorted({a.dtype.name for a in avals if dtypes is not None and elements(a)[1] not in dtypes})
            if odd:
                return f"{library.name} has no {what} of {', '.join(odd)}"
            return why_not_leading(params) or library.why_missing()

        return why_not

    table: dict[Primitive, tuple[Exchange, WhyNot]] = {
        collective.psum_p: (_reduce("psum"), declines(library.sums, "sum")),
        collective.pmax_p: (_reduce("pmax"), declines(library.extrema, "maximum")),
        collective.pmin_p: (_reduce("pmin"), declines(library.extrema, "minimum")),
        all_gather_p: (_all_gather, declines(None)),
        reduce_scatter_p: (_reduce_scatter, declines(library.sums, "sum")),
        all_to_all_p: (_all_to_all, declines(None)),
        ppermute_p: (_ppermute, declines(None)),
    }
    return {p: _call(p, *entry) for p, entry in table.items()}
