"""How the values of a program are cut: what is said of some of them goes forward and backward along its equations.

Cuts only grow, so each variable changes a few times, and all of it takes time linear in the size of the program.
First come equations that leave values in their shape, then those that sum or drop dimensions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.inspection import inspect_sharding_p
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, walk_eqns
from polyax.ir.primitive import Primitive
from polyax.meshes.axes import AbstractMesh, Axes
from polyax.meshes.consensus import KEEPING
from polyax.meshes.explicit import fixed_cuts
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts, OpenCuts, Sums, summands, sums_of
from polyax.meshes.translate import open_cuts_on
from polyax.ops.constraint import sharding_constraint_p
from polyax.ops.resharding import reshard_p
from polyax.partition import linear
from polyax.partition.shares import Names, Rule, Sizes, blocks_along, uncut

Ask = Callable[["Cutting"], Iterable[tuple[Atom, Cuts]]]
ASKED: dict[Primitive, Callable[[Eqn], Ask | None]] = {}
"""Of which equations users say so, if they do."""


@dataclass(frozen=True)
class Link:
    """Two names of one value: outside and inside a program that an equation holds.

    Dimension ``d`` inside is ``d + shift`` outside; there, what ``prefix`` says cuts it as well, outermost. Along axes
    that are ``manual`` inside nothing is cut there.
    """

    outer: Var
    inner: Var
    shift: int = 0
    prefix: Cuts | None = None
    manual: frozenset[Any] = frozenset()

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return self.outer, self.inner


@dataclass(frozen=True)
class Ruled:
    """An equation with a rule that says which of its dimensions belong together. Dimensions of results of which it
    says nothing stay cut as those of ``kept`` are, which have as many."""

    ends: tuple[Atom, ...]
    rule: Rule
    kept: tuple[Atom, ...] = ()

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return *self.ends, *self.kept


@dataclass(frozen=True)
class Asked:
    """An equation of which a user says, as a function of the layout, how its results are cut."""

    atoms: tuple[Atom, ...]
    ask: Ask


Node = Link | Ruled | Asked
Inner = Callable[[Eqn], Iterable[tuple[ClosedJaxpr, Sequence[Link]]]]
"""The programs that an equation holds, and how their variables and those around it are the same."""


class Cutting:
    """How each variable of a flat program, and of those within it, is to be cut."""

    def __init__(self, axes: Axes) -> None:
        self.mesh = AbstractMesh([size for _, size in axes], tuple([name for name, _ in axes]))
        self.sizes: Sizes = dict(axes)
        self.rules: dict[int, Rule | None] = {}  # by the equation's id
        self.used: set[Atom] = set()
        self.readers: dict[Atom, Eqn | None] = {}
        """Of what one equation reads and nobody else, that; else None."""
        self.sliced: dict[Var, Atom] = {}
        """Of slices, what they are of."""
        self._gains: dict[Var, bool] = {}
        self._cuts: dict[Var, Cuts] = {}
        self._closed: dict[Var, tuple[bool, ...]] = {}
        self._free: dict[Var, frozenset[Any]] = {}
        """Of values of whose cuts types tell only along other axes, those that are the partitioner's."""

    def __getitem__(self, atom: Atom) -> Cuts:
        found = None if isinstance(atom, Literal) else self._cuts.get(atom)
        return uncut(atom.aval.ndim) if found is None else found

    def rule(self, eqn: Eqn) -> Rule | None:
        if id(eqn) not in self.rules:
            self.rules[id(eqn)] = Rule.of(eqn)
        return self.rules[id(eqn)]

    def waits(self, var: Var) -> bool:
        """Whether a sum may be made after what reads it, and be a smaller one or one of fewer for that."""
        return linear.gains(var, self.readers, self._gains)

    def target(self, var: Var) -> Cuts:
        """How a value is wanted: as what it is resharded to, if that is all that happens to it."""
        reader = self.readers.get(var)
        return self[reader.outvars[0] if reader is not None and reader.primitive is reshard_p else var]

    def fix(self, atom: Atom, cuts: OpenCuts | None) -> None:
        """What a user says of a value; the first to say something of a dimension counts, and nobody cuts another one
        along the same axes."""
        if cuts is None or isinstance(atom, Literal):
            return
        told = self._closed.get(atom)
        now, closed = list(self[atom]), list(told or [False] * len(cuts))
        sums = sums_of(cuts if told is None else self[atom])
        for d, names in enumerate(cuts):
            if names is not None and not closed[d]:
                taken = sums.union(*[some for k, some in enumerate(now) if k != d])
                now[d], closed[d] = (() if taken.intersection(names) else names), True
        self._cuts[atom], self._closed[atom] = summands(now, sums), tuple(closed)

    def fix_told(self, atom: Atom) -> None:
        """What the type of a value says, which may name the axes of another mesh of the same devices."""
        if atom.aval.told is not None and not self._leave_free(atom, atom.aval.told):
            self.fix(atom, open_cuts_on(self.mesh, atom.aval.told, atom.aval.ndim, fixed_cuts(atom.aval)))

    def fix_resharded(self, atom: Atom, sharding: NamedSharding | None) -> None:
        """What ``reshard`` says: nothing along axes of which types don't tell."""
        if sharding is not None and not self._leave_free(atom, sharding):
            self.fix_asked(atom, sharding)

    def _leave_free(self, atom: Atom, told: NamedSharding) -> bool:
        """On meshes of which some axes are the partitioner's: how a value is cut along the others; whether it is so."""
        axes = frozenset(told.mesh.auto_axes)
        if not axes or isinstance(atom, Literal) or told.mesh.axes != self.mesh.axes:
            return False
        if atom not in self._closed:
            self._cuts[atom] = told.cuts(atom.aval.ndim)
        self._free[atom] = axes
        return True

    def fix_asked(self, atom: Atom, sharding: NamedSharding | None) -> None:
        """What a constraint says, likewise."""
        if sharding is not None:
            self.fix(atom, open_cuts_on(self.mesh, sharding, atom.aval.ndim))

    def extend(self, atom: Atom, wanted: Cuts) -> bool:
        """Cuts dimensions that are open further, as ``wanted`` says, where that goes; whether anything changed."""
        if isinstance(atom, Literal) or not any(wanted):
            return False
        before, closed = self[atom], self._closed.get(atom, ())
        now = list(before)
        for d, names in enumerate(wanted):
            if names and not (closed and closed[d]):
                now[d] = self._longer(now, d, names, atom, sums_of(before))
        self._cuts[atom] = after = summands(now, sums_of(before))
        return after != before

    def _longer(self, now: Sequence[Names], d: int, names: Names, atom: Var, sums: Sums) -> Names:
        have, extent = now[d], atom.aval.shape[d]
        if names[: len(have)] != have:
            return have
        used = sums.union(*[some for k, some in enumerate(now) if k != d])
        free = self._free.get(atom, names)
        for a in names[len(have) :]:
            if a in used or a not in free or not extent or extent % blocks_along((*have, a), self.sizes):
                break
            have = (*have, a)
        return have


def propagate(flat: ClosedJaxpr, layout: Cutting, inner: Inner) -> None:
    """Extends what ``layout`` says of some variables to all of them."""
    nodes = collect(flat, layout, inner)
    users: dict[Var, list[int]] = {}
    for n, node in enumerate(nodes):
        for atom in node.atoms:
            if type(atom) is Var:
                users.setdefault(atom, []).append(n)
    gentle = [not (isinstance(node, Ruled) and node.rule.found.reduced) for node in nodes]
    _settle(nodes, users, layout, gentle)
    _settle(nodes, users, layout, [True] * len(nodes))


def meshes_named(closed: ClosedJaxpr) -> set[Any]:
    """The meshes on which equations say how values are cut."""
    told = [e.params["sharding"] for e in walk_eqns(closed.jaxpr) if e.primitive in (sharding_constraint_p, reshard_p)]
    return {s.mesh for s in told if s is not None}


def collect(flat: ClosedJaxpr, layout: Cutting, inner: Inner) -> list[Node]:
    """What constraints say of values, and the equations and ends of programs along which it goes to others."""
    nodes: list[Node] = []
    _collect(flat.jaxpr, layout, inner, nodes)
    return nodes


def _collect(jaxpr: Jaxpr, layout: Cutting, inner: Inner, nodes: list[Node]) -> None:
    """Programs within programs stand where they run."""
    layout.used.update(jaxpr.outvars)
    layout.readers.update(dict.fromkeys(jaxpr.outvars))
    for v in jaxpr.invars:
        layout.fix_told(v)
    for eqn in jaxpr.eqns:
        for a in () if eqn.primitive is inspect_sharding_p else eqn.invars:  # to look at values changes nothing
            layout.used.add(a)
            layout.readers[a] = eqn if layout.readers.get(a, eqn) is eqn else None
        if eqn.primitive is sharding_constraint_p:
            layout.fix_asked(eqn.outvars[0], eqn.params["sharding"])
        if eqn.primitive is reshard_p:
            layout.fix_resharded(eqn.outvars[0], eqn.params["sharding"])
        for v in eqn.outvars:
            layout.fix_told(v)
        rule = layout.rule(eqn)
        if rule is not None:
            nodes.append(Ruled((*eqn.invars, *eqn.outvars), rule, _kept(eqn, layout.sliced)))
        ask = ASKED[eqn.primitive](eqn) if eqn.primitive in ASKED else None
        if ask is not None:
            nodes.append(Asked((*eqn.invars, *eqn.outvars), ask))
        for program, links in inner(eqn):
            nodes.extend(links)
            _collect(program.jaxpr, layout, inner, nodes)


KEPT = KEEPING | {"sort"}


def _kept(eqn: Eqn, sliced: dict[Var, Atom]) -> tuple[Atom, ...]:
    """The values that say how results are cut along dimensions that an operation moves data along: its operands, and
    what they are slices of, as when halves change places. What is sliced where only a run tells is brought together."""
    name, arrays = eqn.primitive.name, [a for a in eqn.invars if a.aval.ndim == eqn.outvars[0].aval.ndim]
    if name not in KEPT or (name == "dynamic_slice" and not all(isinstance(a, Literal) for a in eqn.invars[1:])):
        return ()
    if name == "slice":
        sliced[eqn.outvars[0]] = eqn.invars[0]
    sources = [sliced[a] for a in arrays if isinstance(a, Var) and a in sliced]
    return tuple([a for a in (*arrays, *sources) if isinstance(a, Var)])


def _settle(nodes: Sequence[Node], users: dict[Var, list[int]], layout: Cutting, chosen: Sequence[bool]) -> None:
    queue = deque(n for n, c in enumerate(chosen) if c)
    waiting = list(chosen)
    while queue:
        n = queue.popleft()
        waiting[n] = False
        for var in _flow(nodes[n], layout):
            for user in users[var]:
                if chosen[user] and not waiting[user]:
                    waiting[user] = True
                    queue.append(user)


def _flow(node: Node, layout: Cutting) -> list[Var]:
    """Lets what is known of some values of a node say something of the others; those that changed."""
    if isinstance(node, Asked):
        wanted = node.ask(layout)
    else:
        wanted = _through(node, layout) if isinstance(node, Link) else _along(node, layout)
    return [atom for atom, cuts in wanted if layout.extend(atom, cuts) and type(atom) is Var]


def _along(node: Ruled, layout: Cutting) -> Iterable[tuple[Atom, Cuts]]:
    rule = node.rule
    given = [(n, cuts) for n in rule.by_size if any(cuts := layout[node.ends[n]])]
    if not given and not node.kept:
        return ()
    shares = rule.share(given, layout.sizes, carried=True)
    wanted = [rule.cuts(n, shares) for n in range(len(node.ends))]
    for n in range(rule.num_ins, len(wanted)) if node.kept else ():
        wanted[n] = _also(wanted[n], rule.dims[n], node.kept, layout)
    return zip(node.ends, wanted, strict=True)


def _also(cuts: Cuts, dims: Sequence[Sequence[int]], kept: Sequence[Atom], layout: Cutting) -> Cuts:
    """The cuts of a result, with those that it keeps in dimensions of which its rule says nothing."""
    found = list(cuts)
    for atom in kept:
        for d, names in enumerate(layout[atom]):
            if names and not found[d] and not dims[d]:
                found[d] = names
    return tuple(found)


def _through(link: Link, layout: Cutting) -> Iterable[tuple[Atom, Cuts]]:
    outer, inner = layout[link.outer], layout[link.inner]
    prefix = link.prefix or uncut(len(outer))
    inward = [_unprefixed(outer[d + link.shift], prefix[d + link.shift], link.manual) for d in range(len(inner))]
    outward = [(*p, *c) for p, c in zip(prefix[link.shift :], inner, strict=True)]
    return (link.inner, tuple(inward)), (link.outer, (*uncut(link.shift), *outward))


def _unprefixed(names: Names, prefix: Names, manual: frozenset[Any]) -> Names:
    if names[: len(prefix)] != prefix:
        return ()
    rest = names[len(prefix) :]
    return rest[: next((n for n, a in enumerate(rest) if a in manual), len(rest))]
