"""What devices exchange in a program, and how long that takes.

Costs of collectives are those of R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication
operations in MPICH", 2005: with latency ``a`` and ``b`` seconds a byte, ``n`` devices that each hand in ``m`` bytes
take, whichever is less of the algorithms for short and for long messages,

    all-reduce       log n (a + m b)     2 log n a + 2 (n - 1)/n m b
    all-gather       log n a + (n - 1) m b
    reduce-scatter   log n a + (n - 1)/n m b
    all-to-all       log n (a + m/2 b)   (n - 1) a + (n - 1)/n m b
    permutation      a + m b
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.backend import ClosedJaxpr, Eqn
from polyax_inspect.scale.machine import Connection, Machine

KINDS = {
    "psum": "all-reduce", "psum_invariant": "all-reduce", "pmax": "all-reduce", "pmin": "all-reduce",
    "all_gather": "all-gather", "all_gather_invariant": "all-gather", "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all", "ppermute": "permutation", "pbroadcast": "permutation",
}  # fmt: skip
"""Primitives, and what they do on the links."""


@dataclass(frozen=True)
class Exchange:
    """A collective that runs ``times`` times."""

    kind: str
    axes: tuple[Any, ...]
    nbytes: int
    """What each device hands in."""
    times: int = 1


def exchanges(closed: ClosedJaxpr, times: int = 1) -> Iterator[Exchange]:
    """All collectives of a program for one device. Bodies of loops count as often as they run; those of ``while``, of
    which nobody knows how often, once; of branches, the one that sends most."""
    for eqn in closed.eqns:
        inner = eqn.primitive.sub_jaxprs(**eqn.params) if eqn.primitive.sub_jaxprs else []
        if eqn.primitive.axes is not None:
            yield from _exchange(eqn, times)
        elif eqn.primitive.name == "cond":
            branches = [list(exchanges(branch, times)) for branch in inner]
            yield from max(branches, key=lambda found: sum(e.nbytes * e.times for e in found))
        else:
            turns = times * int(eqn.params["length"]) if eqn.primitive.name == "scan" else times
            for program in inner:
                yield from exchanges(program, turns)


def _exchange(eqn: Eqn, times: int) -> Iterator[Exchange]:
    assert eqn.primitive.axes is not None
    axes = tuple(eqn.primitive.axes(**eqn.params))
    if axes and eqn.primitive.name in KINDS:
        yield Exchange(KINDS[eqn.primitive.name], axes, sum(v.aval.nbytes for v in eqn.invars), times)


def seconds(e: Exchange, machine: Machine, sizes: Mapping[Any, int]) -> float:
    """How long an exchange takes; along several axes, one after the other."""
    return e.times * sum(t for _, t, _ in _stages(e, machine, sizes))


def sent(e: Exchange, machine: Machine, sizes: Mapping[Any, int]) -> dict[Any, float]:
    """Bytes that each device sends along each axis."""
    found: dict[Any, float] = {}
    for axis, _, nbytes in _stages(e, machine, sizes):
        found[axis] = found.get(axis, 0.0) + e.times * nbytes
    return found


def _stages(e: Exchange, machine: Machine, sizes: Mapping[Any, int]) -> list[tuple[Any, float, float]]:
    """Axis, seconds and bytes sent of what an exchange is made of. An all-reduce along several axes scatters along the
    first, so that the others carry less, and gathers in the end."""
    axes = [a for a in e.axes if sizes[a] > 1]
    if e.kind == "all-reduce" and len(axes) > 1:
        first, *rest = axes
        part = e.nbytes / sizes[first]
        inner = _stages(Exchange(e.kind, tuple(rest), int(part)), machine, sizes)
        ends = [("reduce-scatter", e.nbytes), ("all-gather", part)]
        return [*inner, *((first, *_one(kind, machine.along(first), sizes[first], m)) for kind, m in ends)]
    found: list[tuple[Any, float, float]] = []
    m = float(e.nbytes)
    for axis in axes:
        found.append((axis, *_one(e.kind, machine.along(axis), sizes[axis], m)))
        m = m * sizes[axis] if e.kind == "all-gather" else m / sizes[axis] if e.kind == "reduce-scatter" else m
    return found


def _one(kind: str, link: Connection, n: int, m: float) -> tuple[float, float]:
    """Seconds, and bytes that each device sends, along one axis of ``n`` devices."""
    a, b, steps, part = link.latency, 1 / link.bandwidth, math.ceil(math.log2(n)), (n - 1) / n * m
    choices: Sequence[tuple[float, float]]
    if kind == "all-reduce":
        choices = [(steps * (a + m * b), steps * m), (2 * steps * a + 2 * part * b, 2 * part)]
    elif kind == "all-gather":
        choices = [(steps * a + (n - 1) * m * b, (n - 1) * m)]
    elif kind == "reduce-scatter":
        choices = [(steps * a + part * b, part)]
    elif kind == "all-to-all":
        choices = [(steps * (a + m / 2 * b), steps * m / 2), ((n - 1) * a + part * b, part)]
    else:
        choices = [(a + m * b, m)]
    return min(choices)
