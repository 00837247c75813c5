"""Along which axes of a mesh values vary, as their types tell inside ``shard_map`` (``aval.vma``).

Where that is checked, ``ambient.varying`` names the axes; elsewhere it is empty and nothing here runs. Operands of an
equation vary alike: ``pvary`` makes those vary that don't, whose transpose is the sum along these axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import is_literal_value
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ir.refs import is_ref

Vma = frozenset[Any]
Process = Callable[[Primitive, tuple[Any, ...], dict[str, Any]], list[Any]]

pvary_p = Primitive("pvary", multiple_results=True)
"""A value, said to vary along ``axes``. It is what it was."""
pvary_p.varies = lambda vmas, axes, **_: (vmas, [vmas[0].union(axes)])


reduced_vary_cast_p = Primitive("reduced_vary_cast_p", multiple_results=True)
"""Likewise, of a value whose cotangents are sums along ``axes``: that of the result varies."""


@def_rule(pvary_p, "abstract_eval")
def _abstract_eval(x: ShapedArray, *, axes: tuple[Any, ...]) -> list[ShapedArray]:
    return [x]


@def_rule(pvary_p, "record")
def _record(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Programs that run on other types again may hold some that have nothing to do."""
    missing = frozenset(params["axes"]) - vma_of(args[0])
    return trace.record(pvary_p, args, {"axes": in_order(missing)}) if missing else list(args)


class types_checked:
    """Inside, types say along which of these axes, and of those around them, values vary."""

    __slots__ = ("axes", "before")

    def __init__(self, axes: Iterable[Any]) -> None:
        self.axes = axes

    def __enter__(self) -> None:
        self.before = ambient.varying
        ambient.varying = self.before.union(self.axes)

    def __exit__(self, *_: object) -> None:
        ambient.varying = self.before


def vma_of(x: Any) -> Vma:
    return frozenset() if is_literal_value(x) else aval_of(x).vma


def state_of(aval: ShapedArray, axes: tuple[Any, ...], caller: str) -> str:
    """What a value is along the axes: ``varying``, ``unreduced``, ``reduced``, or ``invarying``, the same everywhere.

    Raises:
      ValueError: it is one thing along some of them, and another along others.
    """
    unreduced, reduced = aval.sums
    states = {"varying": aval.vma, "unreduced": unreduced, "reduced": reduced}
    found = {next((s for s, own in states.items() if a in own), "invarying") for a in axes}
    if len(found) > 1:
        raise ValueError(
            f"{caller} can only accept axis_name which corresponds to one of varying, unreduced, reduced or invarying "
            f"state of the input. Got input type: {aval}, axes: {axes} and input state: {found}"
        )
    return found.pop()


def in_order(axes: Iterable[Any]) -> tuple[Any, ...]:
    """As they are bound, which is the order of the mesh."""
    wanted = frozenset(axes)
    return tuple(name for name in ambient.axis_env if name in wanted)


def pvary(x: Any, axes: Iterable[Any]) -> Any:
    """``x``, said to vary along these axes as well."""
    missing = in_order(frozenset(axes) - vma_of(x))
    return pvary_p.bind1(x, axes=missing) if missing else x


def varying_like(others: Sequence[Any], *values: Any) -> tuple[Any, ...]:
    """``values``, with which a loop begins, as they vary once ``others`` have come into it."""
    if not ambient.varying:
        return values
    axes = frozenset[Any]().union(*map(vma_of, others))
    return tuple([pvary(v, axes) for v in values])


def aligned(process: Process, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """Operands that vary as the primitive wants it: alike, unless it says otherwise."""
    vmas = [vma_of(x) for x in args]
    wanted = vma_rule(primitive, vmas, params)[0]
    if not config.get("auto_pcast"):
        _check_alike(primitive, args, vmas, wanted)
    if primitive.axes is not None:
        _check_not_reduced(args, wanted)
    return tuple([_varied(process, x, v, w) for x, v, w in zip(args, vmas, wanted, strict=True)])


def _check_not_reduced(args: Sequence[Any], wanted: Sequence[Vma]) -> None:
    """Raises a ValueError about operands of collectives along axes along which they are the same, with sums as their
    cotangents: that they vary has to be said."""
    for x, vma in zip(args, wanted, strict=True):
        if more := aval_of(x).sums[1] & vma:
            raise ValueError(
                f"pvary cannot accept args which are reduced. Got {aval_of(x).str_short(True)} and axes={set(more)}: "
                "make it vary first with `polyax.lax.pcast(x, axes, to='varying')`"
            )


def _check_alike(primitive: Primitive, args: Sequence[Any], vmas: Sequence[Vma], wanted: Sequence[Vma]) -> None:
    """Raises a ValueError if operands don't vary as they have to; values that are written down have no type."""
    if all(w <= v or is_literal_value(x) for x, v, w in zip(args, vmas, wanted, strict=True)):
        return
    raise ValueError(
        f"Primitive {primitive} requires varying manual axes to match, but got {list(map(set, vmas))} where it needs "
        f"{list(map(set, wanted))}. Make operands vary with `polyax.lax.pcast(x, axes, to='varying')`, or let that be "
        "done with the setting `polyax.auto_pcast`."
    )


def _varied(process: Process, x: Any, vma: Vma, wanted: Vma) -> Any:
    if wanted <= vma or is_literal_value(x):
        return x
    if is_ref(aval_of(x)):
        raise NotImplementedError(
            f"what varies along {list(map(str, in_order(wanted - vma)))} can't index or be written to a reference that "
            f"isn't cut along them: it isn't known which device's value it is to hold. It is of type {aval_of(x)}; "
            "pass it to shard_map as an argument, with a spec that cuts it."
        )
    unreduced, reduced = aval_of(x).sums
    if more := unreduced & wanted:
        raise ValueError(
            f"pvary cannot accept args which are unreduced. Got {aval_of(x).str_short(True)} and axes={set(more)}: "
            "make the sum first with `polyax.lax.psum`"
        )
    if more := in_order(reduced & wanted):
        (x,) = process(reduced_vary_cast_p, (x,), {"axes": more})
        return _varied(process, x, vma.union(more), wanted)
    return process(pvary_p, (x,), {"axes": in_order(wanted - vma)})[0]


def typed(
    primitive: Primitive, vmas: Sequence[Vma], params: dict[str, Any], avals: Sequence[ShapedArray]
) -> list[ShapedArray]:
    """The types of results, which vary as the primitive says; by default, as the operands do."""
    results = vma_rule(primitive, vmas, params)[1]
    if results is None:
        return list(avals)
    if len(results) != len(avals):
        results = [results[0]] * len(avals)
    return [a if a.vma == v else a.update(vma=v) for a, v in zip(avals, results, strict=True)]


def vma_rule(
    primitive: Primitive, vmas: Sequence[Vma], params: dict[str, Any]
) -> tuple[Sequence[Vma], Sequence[Vma] | None]:
    """How operands have to vary and how results do (None: as the programs in ``params`` say)."""
    if primitive.varies is not None:
        return primitive.varies(vmas, **params)
    every = frozenset[Any]().union(*vmas)
    return [every] * len(vmas), [every]
