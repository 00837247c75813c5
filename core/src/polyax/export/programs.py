"""Programs as JSON and back: equations name their primitives, whose parameters are the values of ``values``.

What is read is checked as any program is: each equation is typed anew by its primitive's own rule.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any

from polyax.export.container import Blobs, read, write
from polyax.export.scopes import SymbolicScope
from polyax.export.values import Unsaveable, ValueReader, ValueWriter
from polyax.extend.primitive import Primitive as UserPrimitive
from polyax.ir.check import check_jaxpr
from polyax.ir.effects import NO_EFFECTS
from polyax.ir.errors import JaxprTypeError
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ir.primitive import PRIMITIVES, Primitive

LATE = (
    "polyax.control.calls.closed",
    "polyax.export.sizes",
    "polyax.lax.barriers",
    "polyax.lax.special.bessel",
    "polyax.lax.special.beta",
    "polyax.lax.updates",
    "polyax.ops.reflections",
    "polyax.ops.schur",
)
"""Modules with primitives that ``import polyax`` doesn't load."""
HOMES = ("polyax.control", "polyax.ops", "polyax.lax", "polyax.scipy", "polyax.experimental")


@functools.lru_cache(2)
def _by_name(count: int) -> dict[str, Primitive]:
    return {p.name: p for p in PRIMITIVES[:count] if not isinstance(p, UserPrimitive)}


def own_primitives() -> dict[str, Primitive]:
    """Those of polyax itself, by their names; users' own are no part of files."""
    return _by_name(len(PRIMITIVES))


def _late() -> Iterator[str]:
    """Modules that may have primitives that aren't known yet: at last, all that are made of such."""
    yield from LATE
    for home in HOMES:
        for found in pkgutil.walk_packages(importlib.import_module(home).__path__, f"{home}."):
            yield found.name


class _Saved:
    """Programs, each written once, those inside of others before these."""

    def __init__(self) -> None:
        self.blobs = Blobs()
        self.write = ValueWriter(self.blobs, self.number)
        self.numbers: dict[int, int] = {}
        self.types: dict[str, int] = {}
        self.described: list[Any] = []
        self.programs: list[dict[str, Any]] = []
        self.kept: list[Any] = []  # keeps the ids above valid

    def number(self, closed: ClosedJaxpr) -> int:
        if id(closed) not in self.numbers:
            made = self._program(closed)
            self.kept.append(closed)
            self.programs.append(made)
            self.numbers[id(closed)] = len(self.programs) - 1
        return self.numbers[id(closed)]

    def type(self, aval: Any) -> int:
        described = self.write(aval)
        if repr(described) not in self.types:
            self.types[repr(described)] = len(self.described)
            self.described.append(described)
        return self.types[repr(described)]

    def _program(self, closed: ClosedJaxpr) -> dict[str, Any]:
        jaxpr = closed.jaxpr
        places: dict[Var, int] = {}
        for v in (*jaxpr.constvars, *jaxpr.invars):
            places[v] = len(places)
        return {
            "name": str(jaxpr.debug_name),
            "consts": [[self.type(v.aval), self.write(c)] for v, c in zip(jaxpr.constvars, closed.consts, strict=True)],
            "in": [self.type(v.aval) for v in jaxpr.invars],
            "eqns": [self._eqn(eqn, places) for eqn in jaxpr.eqns],
            "out": [self._atom(a, places) for a in jaxpr.outvars],
        }

    def _eqn(self, eqn: Eqn, places: dict[Var, int]) -> list[Any]:
        p = eqn.primitive
        try:
            if own_primitives().get(p.name) is not p:
                raise Unsaveable(f"the primitive {p.name!r} isn't one of polyax's own, which alone files can name")
            params = {name: self.write(value) for name, value in eqn.params.items()}
        except Unsaveable as e:
            raise Unsaveable(f"{p.name}{f' at {eqn.source}' if eqn.source else ''} can't be exported: {e}") from e
        ins = [self._atom(a, places) for a in eqn.invars]
        for v in eqn.outvars:
            places[v] = len(places)
        return [p.name, ins, params, [self.type(v.aval) for v in eqn.outvars]]

    def _atom(self, atom: Atom, places: dict[Var, int]) -> Any:
        return [self.write(atom.val), self.type(atom.aval)] if isinstance(atom, Literal) else places[atom]


def dumps(closed: ClosedJaxpr, constraints: Sequence[str] = ()) -> bytes:
    """A program as bytes.

    Raises:
      NotImplementedError: it holds Python functions, or primitives of users; the text says which and where.
    """
    saved = _Saved()
    main = saved.number(closed)
    text = {"kind": "program", "main": main, "types": saved.described, "programs": saved.programs}
    return write(text | {"constraints": list(constraints)}, saved.blobs)


def loads(data: bytes) -> ClosedJaxpr:
    """The program in these bytes.

    Raises:
      ValueError: they hold none, or one that this version doesn't know or that is ill-typed.
    """
    text, blobs = read(data, "program")
    try:
        return _Loaded(text, blobs).programs[text["main"]]
    except (KeyError, IndexError, TypeError, AttributeError, JaxprTypeError) as e:
        raise ValueError(f"the exported program is damaged or of an unknown kind: {type(e).__name__}: {e}") from e


class _Loaded:
    """The programs of a file, in its order: each can refer to those before it."""

    def __init__(self, text: dict[str, Any], blobs: Sequence[bytes]) -> None:
        self.programs: list[ClosedJaxpr] = []
        self.read = ValueReader(blobs, self.programs, SymbolicScope(text["constraints"]))
        self.types = self.read.all(text["types"])
        for described in text["programs"]:
            self.programs.append(self._program(described))

    def _program(self, described: dict[str, Any]) -> ClosedJaxpr:
        constvars = [Var(self.types[n]) for n, _ in described["consts"]]
        invars = [Var(self.types[n]) for n in described["in"]]
        bound: list[Var] = [*constvars, *invars]
        eqns = [self._eqn(e, bound) for e in described["eqns"]]
        outs = [self._atom(a, bound) for a in described["out"]]
        jaxpr = Jaxpr(constvars, invars, outs, eqns, debug_name=described["name"])
        check_jaxpr(jaxpr)
        return ClosedJaxpr(jaxpr, [self.read(value) for _, value in described["consts"]])

    def _eqn(self, described: Any, bound: list[Var]) -> Eqn:
        name, ins, params, outs = described
        primitive = _primitive(name)
        invars = [self._atom(a, bound) for a in ins]
        given = {key: self.read(value) for key, value in params.items()}
        typed = primitive.rule("abstract_eval")(*[a.aval for a in invars], **given)
        outvars = [Var(self.types[n]) for n in outs]
        bound += outvars
        return Eqn(primitive, invars, outvars, given, typed[1] if isinstance(typed, tuple) else NO_EFFECTS)

    def _atom(self, described: Any, bound: list[Var]) -> Atom:
        if isinstance(described, int):
            return bound[described]
        value, kind = described
        return Literal(self.read(value), self.types[kind])


RENAMED = {"pjit": "jit", "core_call": "call"}
"""Primitives that older files name otherwise."""


def _primitive(name: str) -> Primitive:
    name, modules = RENAMED.get(name, name), _late()
    while name not in own_primitives() and (module := next(modules, None)):
        importlib.import_module(module)
    found = own_primitives().get(name)
    if found is None:
        raise ValueError(
            f"the exported program uses the primitive {name!r}, which this version of polyax doesn't have; load it "
            "with the version that wrote it, or a later one"
        )
    return found
