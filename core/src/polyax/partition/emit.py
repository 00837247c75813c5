"""From a program and how its values are cut to the program of one device: its equations, run on blocks.

Of each equation it is decided which axes its factors get, by the bytes that this moves; what it needs is brought there,
and its results to where they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyax.control.callback import CALLBACKS
from polyax.control.inner.programs import derived
from polyax.control.inspection import Look, inspect_sharding_p
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Literal, Var
from polyax.ir.primitive import Primitive, ambient
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts, Sums, summands, sums_of
from polyax.ops.collective import axis_index
from polyax.ops.constraint import sharding_constraint_p
from polyax.partition import linear, reasons, reshard
from polyax.partition.choose import FREE, POINT, choose
from polyax.partition.once import on_the_first
from polyax.partition.propagate import Cutting
from polyax.partition.reshard import Move, Way, block_aval, block_shape, follow, way
from polyax.partition.shares import Names, Rule, Shares, Sizes, blocks_along, uncut
from polyax.partition.together import together

Cut = tuple[Any, Cuts]
"""A block, and how the array is cut that it is of."""
Parts = tuple[tuple[str, Names], ...]
Why = Callable[[Cuts, Cuts], str]
"""The reason to go from some cuts to others, in words."""


class Cuttings:
    """An array in the program of one device: blocks of it, by the cuts that they come from. ``home`` came first; if it
    is a sum still to be made, ``why`` is the reason to make it."""

    __slots__ = ("blocks", "home", "why")

    def __init__(self, block: Any, cuts: Cuts, why: Why | None = None) -> None:
        self.home = cuts
        self.blocks = {cuts: block}
        self.why = why


@dataclass
class Ledger:
    """What each device sends and computes, and who is told how a value is cut."""

    moves: list[Move] = field(default_factory=list[Move])
    points: float = 0.0
    looks: list[tuple[Look, Cuts]] = field(default_factory=list[tuple[Look, Cuts]])

    @property
    def cost(self) -> float:
        """In bytes sent. Work that lasts no longer than it takes to begin an exchange is free."""
        return sum([m.total for m in self.moves]) + POINT * max(0, self.points - FREE)


class BlockEmitter:
    """Runs the equations of one flat program on blocks, in the current trace.

    ``free``: the axes along which the partitioner cuts; along others of the mesh, a region around the program does.
    """

    def __init__(self, axes: Axes, layout: Cutting, ledger: Ledger, free: Names, times: int = 1) -> None:
        self.axes = axes
        self.sizes: Sizes = dict(axes)
        self.layout = layout
        self.ledger = ledger
        self.free = free
        self.times = times
        self.env: dict[Var, Cuttings] = {}

    def run(self, flat: ClosedJaxpr, args: Sequence[Cut], outs: Sequence[Cuts], why: Why) -> list[Any]:
        """The blocks of its results, cut as ``outs`` says, from blocks of its arguments."""
        self._keep(flat.jaxpr.constvars, [(x, uncut(aval_of(x).ndim)) for x in flat.consts])
        self._keep(flat.jaxpr.invars, args)
        before = ambient.source
        try:
            for eqn in flat.jaxpr.eqns:
                ambient.source = eqn.source
                self.env.update(zip(eqn.outvars, self._results(eqn), strict=True))
        finally:
            ambient.source = before
        return [self.at(a, c, why) for a, c in zip(flat.jaxpr.outvars, outs, strict=True)]

    def program(
        self, flat: ClosedJaxpr, ins: Sequence[Cuts], outs: Sequence[Cuts], why: Why, times: int = 1
    ) -> ClosedJaxpr:
        """A program on blocks, for an equation that holds one, which runs it so often."""
        inner = BlockEmitter(self.axes, self.layout, self.ledger, self.free, self.times * times)

        def on_blocks(*blocks: Any) -> list[Any]:
            return inner.run(flat, list(zip(blocks, ins, strict=True)), outs, why)

        avals = [block_aval(a, c, self.axes) for a, c in zip(flat.in_avals, ins, strict=True)]
        return together(derived(flat, on_blocks, avals))

    def region(self, manual: Iterable[Any]) -> BlockEmitter:
        """For a program in the same trace within which these axes aren't the partitioner's."""
        taken = set(manual)
        free = tuple(a for a in self.free if a not in taken)
        return BlockEmitter(self.axes, self.layout, self.ledger, free, self.times)

    def _keep(self, variables: Sequence[Var], values: Sequence[Cut]) -> None:
        self.env.update((v, Cuttings(*x)) for v, x in zip(variables, values, strict=True))

    # --- operands

    def home(self, atom: Atom) -> Cuts:
        return () if isinstance(atom, Literal) else self.env[atom].home

    def at(self, atom: Atom, cuts: Cuts, why: Why) -> Any:
        """The block of a value cut so; what was brought there once is there for others."""
        if isinstance(atom, Literal):
            return self.brought(atom.val, atom.aval, uncut(atom.aval.ndim), cuts, why) if sums_of(cuts) else atom.val
        blocks = self.env[atom].blocks
        if cuts not in blocks:
            before = min(blocks, key=lambda c: self.way(atom.aval, c, cuts).total)
            if sums_of(before) - sums_of(cuts):
                why = self.env[atom].why or why
            blocks[cuts] = self.brought(blocks[before], atom.aval, before, cuts, why)
        return blocks[cuts]

    def distance(self, atom: Atom, cuts: Cuts) -> int:
        """The bytes that each device sends to have it cut so."""
        if isinstance(atom, Literal):
            return 0
        blocks = self.env[atom].blocks
        return 0 if cuts in blocks else min(self.way(atom.aval, c, cuts).total for c in blocks)

    def way(self, aval: ShapedArray, before: Cuts, after: Cuts, parts: Parts = ()) -> Way:
        return way(aval.shape, aval.dtype.itemsize, before, after, self.axes, parts)

    def brought(self, block: Any, aval: ShapedArray, before: Cuts, after: Cuts, why: Why, parts: Parts = ()) -> Any:
        """A block of an array of type ``aval`` that is cut otherwise; notes what that moves."""
        if before == after and not parts:
            return block
        found = self.way(aval, before, after, parts)
        for step, nbytes, shape in zip(found.steps, found.nbytes, found.shapes, strict=True):
            if step.kind not in reshard.FREE:
                self._note(step.kind, step.axes, aval.with_shape(shape), nbytes, why(before, after))
        return follow(block, found.steps, self.sizes)

    def _note(self, kind: str, axes: Names, aval: ShapedArray, nbytes: int, reason: str) -> None:
        self.ledger.moves.append(Move(kind, axes, aval, nbytes, reason, str(ambient.source or ""), self.times))

    # --- equations

    def _results(self, eqn: Eqn) -> list[Cuttings]:
        nested = NESTED.get(eqn.primitive)
        if nested is not None:
            return self._wanted(eqn, nested(self, eqn))
        if eqn.primitive is inspect_sharding_p:
            self.ledger.looks.append((eqn.params["callback"], self.home(eqn.invars[0])))
            return []
        if eqn.primitive in CALLBACKS and eqn.params.get("partitioned"):
            return self._wanted(eqn, self._with_parts(eqn))
        if eqn.effects or eqn.primitive in CALLBACKS:
            return self._wanted(eqn, self._once(eqn))
        rule = self.layout.rule(eqn)
        if rule is None:
            return self._wanted(eqn, self._everywhere(eqn))
        return self._on_blocks(eqn, rule)

    def _wanted(self, eqn: Eqn, outs: Sequence[Cut]) -> list[Cuttings]:
        """Results as the layout wants them."""
        pairs = enumerate(zip(eqn.outvars, outs, strict=True))
        return [self._result(eqn, n, var, block, cuts) for n, (var, (block, cuts)) in pairs]

    def _result(self, eqn: Eqn, n: int, var: Var, block: Any, cuts: Cuts, parts: Parts = ()) -> Cuttings:
        """Where it is wanted, and where it is anyway; but what a constraint moves is nowhere else."""
        if var not in self.layout.used:
            return Cuttings(block, cuts)
        after, why = self.layout[var], reasons.of_result(eqn, n, parts)
        sums = sums_of(cuts).union(*[names for _, names in parts])
        if sums - sums_of(after) and all(how == "sum" for how, _ in parts) and self.layout.waits(var):
            return Cuttings(block, summands(cuts, sums), why)
        found = Cuttings(self.brought(block, var.aval, cuts, after, why, parts), after)
        if not parts and eqn.primitive is not sharding_constraint_p:
            found.blocks.setdefault(cuts, block)
        return found

    def _everywhere(self, eqn: Eqn) -> list[Cut]:
        blocks = [self.at(a, uncut(a.aval.ndim), reasons.unruled(eqn, n)) for n, a in enumerate(eqn.invars)]
        return [(x, uncut(v.aval.ndim)) for x, v in zip(eqn.apply(blocks), eqn.outvars, strict=True)]

    def _with_parts(self, eqn: Eqn) -> list[Cut]:
        """Every device does it, with what it has of the operands."""
        homes = [() if isinstance(a, Literal) else tuple(self.home(a)) for a in eqn.invars]
        eqn.apply(
            [self.at(a, c, reasons.unruled(eqn, n)) for n, (a, c) in enumerate(zip(eqn.invars, homes, strict=True))]
        )
        return []

    def _on_blocks(self, eqn: Eqn, rule: Rule) -> list[Cuttings]:
        shares, sums = self._shares(eqn, rule)
        self.ledger.points += rule.points(shares, self.sizes) * self.times
        why = reasons.of_operands(eqn, rule, shares)
        blocks = [self.at(a, summands(rule.cuts(n, shares), sums[n]), why(n)) for n, a in enumerate(eqn.invars)]
        cuts = [rule.cuts(rule.num_ins + n, shares) for n in range(len(eqn.outvars))]
        outs = self._bound(eqn, rule, shares, blocks, cuts)
        results, parts = enumerate(zip(eqn.outvars, outs, cuts, strict=True)), parts_of(rule, shares)
        left = frozenset[Any]().union(*sums)
        return [self._result(eqn, n, v, x, summands(c, left), parts) for n, (v, x, c) in results]

    def _shares(self, eqn: Eqn, rule: Rule) -> tuple[Shares, Sequence[Sums]]:
        """Which axes each factor gets: of the ways that operands and results suggest, that which costs least. And which
        sums of operands are made afterwards, of the results, where that costs no more."""
        homes = [*map(self.home, eqn.invars), *(self.layout[v] for v in eqn.outvars)]
        none = [frozenset[Any]()] * len(eqn.invars)
        best, cost = choose(rule, homes, lambda shares: self._moved(eqn, rule, shares, none), self.sizes)
        waiting = linear.waiting(eqn, [sums_of(c) for c in homes])
        if waiting is None:
            return best, none
        taken = frozenset[Any]().union(*waiting)
        free = [tuple([before(names, taken) for names in c]) for c in homes]
        later, less = choose(rule, free, lambda shares: self._moved(eqn, rule, shares, waiting), self.sizes)
        return (later, waiting) if less <= cost else (best, none)

    def _moved(self, eqn: Eqn, rule: Rule, shares: Shares, sums: Sequence[Sums]) -> int:
        """The bytes that devices send for operands and results."""
        wanted = [summands(rule.cuts(n, shares), s) for n, s in enumerate(sums)]
        total = sum([self.distance(a, c) for a, c in zip(eqn.invars, wanted, strict=True)])
        parts, left = parts_of(rule, shares), frozenset[Any]().union(*sums)
        for n, var in enumerate(eqn.outvars):
            if var in self.layout.used:
                produced = summands(rule.cuts(rule.num_ins + n, shares), left)
                total += self.way(var.aval, produced, self.layout.target(var), parts).total
        return total

    def _bound(self, eqn: Eqn, rule: Rule, shares: Shares, blocks: Sequence[Any], cuts: Sequence[Cuts]) -> list[Any]:
        local = rule.found.local
        if local is None or not (shares or eqn.primitive is sharding_constraint_p):  # blocks have no such types
            outs = eqn.apply(blocks)
        else:
            outs = list(local(BlockPlace(rule, shares, self.sizes), *blocks, **eqn.params))
        found = [aval_of(x).shape for x in outs]
        wanted = [block_shape(v.aval.shape, c, self.sizes) for v, c in zip(eqn.outvars, cuts, strict=True)]
        if found != wanted:
            raise TypeError(
                f"the rule 'factors' of {eqn.primitive} doesn't fit what it computes: blocks of shape "
                f"{[aval_of(x).shape for x in blocks]} give {found}; by the rule, {wanted}"
            )
        return outs

    def _once(self, eqn: Eqn) -> list[Cut]:
        blocks = [self.at(a, uncut(a.aval.ndim), reasons.outside(eqn, n)) for n, a in enumerate(eqn.invars)]
        outs, sent = on_the_first(eqn, blocks, self.free)
        for aval, axis, nbytes in sent:
            self._note("all_gather", (axis,), aval, nbytes, reasons.told(eqn))
        return [(x, uncut(v.aval.ndim)) for x, v in zip(outs, eqn.outvars, strict=True)]


def before(names: Names, taken: Sums) -> Names:
    """The axes, up to the first that is taken."""
    return names[: next((n for n, a in enumerate(names) if a in taken), len(names))]


def parts_of(rule: Rule, shares: Shares) -> Parts:
    """How, and along which axes, results on blocks are parts of what they should be."""
    found: dict[str, Names] = {}
    for f, how in rule.found.reduced.items():
        found[how] = found.get(how, ()) + shares.get(f, ())
    return tuple([(how, names) for how, names in found.items() if names])


class BlockPlace:
    """Where the blocks of an equation's results are."""

    def __init__(self, rule: Rule, shares: Shares, sizes: Sizes) -> None:
        self.rule = rule
        self.shares = shares
        self.sizes = sizes

    def cuts(self, result: int) -> Cuts:
        return self.rule.cuts(self.rule.num_ins + result, self.shares)

    def shape(self, result: int) -> tuple[int, ...]:
        return block_shape(self.rule.avals[self.rule.num_ins + result].shape, self.cuts(result), self.sizes)

    def start(self, result: int, dim: int) -> Any:
        return self._start(self.cuts(result)[dim], self.shape(result)[dim])

    def begin(self, factor: int) -> Any:
        names = self.shares.get(factor, ())
        return self._start(names, self.rule.sizes[factor] // blocks_along(names, self.sizes))

    def _start(self, names: Names, block: int) -> Any:
        return axis_index(names) * np.int32(block) if names else np.int32(0)


Nested = Callable[[BlockEmitter, Eqn], list[Cut]]
NESTED: dict[Primitive, Nested] = {}
"""How equations run that hold programs."""
