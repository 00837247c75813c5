"""Jaxprs: typed programs in A-normal form. The one intermediate representation of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.effects import NO_EFFECTS, Effects, join_effects
from polyax.ir.primitive import Primitive, ambient, eval_trace
from polyax.ir.source import NOWHERE, DebugInfo, FunctionName, Nowhere, Source


class Var:
    """A variable; equality is identity. Its name is chosen when printed."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self):x}):{self.aval.str_short(True)}"


class Literal:
    """A constant, written in place: ``val`` is a scalar of NumPy or Python; in programs that are being lowered, an
    array as well."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.val = val
        self.aval = aval

    @property
    def value(self) -> Any:
        """``val``, of the type that it has in the program: weakly typed, if it was a Python scalar."""
        if not self.aval.weak_type or not isinstance(self.val, np.generic):
            return self.val
        scalar = self.val.item()
        return scalar if aval_of(scalar) == self.aval else self.val

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class Eqn:
    """``outvars = primitive[params] invars``, with its effects and the user's line."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        effects: Effects = NO_EFFECTS,
        source: Source | None = None,
    ) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.effects = effects
        self.source = source

    @property
    def source_info(self) -> Source | Nowhere:
        """The user's line, under JAX's name."""
        return self.source or NOWHERE

    @property
    def ctx(self) -> None:
        """JAX keeps settings here that were in force; programs here don't depend on them."""
        return None

    def replace(self, **changes: Any) -> Eqn:
        if "source_info" in changes:
            changes["source"] = (changes.pop("source_info") or NOWHERE).traceback
        changes.pop("ctx", None)
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__} | changes
        return Eqn(**(fields | {"params": fields["primitive"].known_params(fields["params"])}))

    def apply(self, args: Sequence[Any]) -> list[Any]:
        """The results for these inputs, in the current trace."""
        return (ambient.trace or eval_trace[0]).process(self.primitive, tuple(args), self.params)


class Jaxpr:
    """``{ lambda constvars ; invars. let eqns in outvars }``; immutable once made. ``pretty`` gives its text form."""

    __slots__ = ("__weakref__", "_effects", "constvars", "debug_name", "eqns", "invars", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: Effects | None = None,
        debug_name: str | DebugInfo = "",
        debug_info: DebugInfo | None = None,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self._effects = effects
        name = debug_name if debug_info is None else debug_info
        self.debug_name = _name_of(name) if isinstance(name, DebugInfo) else name

    pretty_print: ClassVar[Callable[..., str]]
    _repr_html_: ClassVar[Callable[..., str]]
    """Installed by ``pretty``."""

    @property
    def effects(self) -> Effects:
        if self._effects is None:
            self._effects = join_effects(e.effects for e in self.eqns if e.effects)
        return self._effects

    @property
    def debug_info(self) -> DebugInfo:
        """What is known of the function that it was traced from, found out when tools written for JAX ask for it."""
        name = self.debug_name
        if isinstance(name, FunctionName):
            return name.tell(self.invars, self.outvars)
        return DebugInfo("unknown", name, None)

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with other ``invars outvars constvars eqns effects debug_name`` (or ``debug_info``)."""
        if "debug_info" in changes:
            changes["debug_name"] = changes.pop("debug_info")
        if "eqns" in changes:
            changes.setdefault("effects", None)
        names = ("constvars", "invars", "outvars", "eqns", "debug_name")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields["effects"] = self._effects
        if unknown := {name: x for name, x in changes.items() if name not in fields}:
            raise ValueError(f"Unknown keyword arguments: {unknown}")
        return Jaxpr(**(fields | changes))

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]


def _name_of(info: DebugInfo) -> FunctionName:
    return FunctionName(info.func_name, lambda *_: info)


class ClosedJaxpr:
    """A jaxpr and the values of its constants. ``memo``: what was made from it, to live as long as it does."""

    __slots__ = ("__weakref__", "consts", "jaxpr", "memo")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        assert len(jaxpr.constvars) == len(consts)
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.memo: dict[Any, Any] = {}

    def pretty_print(self, **settings: bool | None) -> str:
        """See ``Jaxpr.pretty_print``."""
        return self.jaxpr.pretty_print(**settings)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> list[Eqn]:
        return self.jaxpr.eqns

    @property
    def constvars(self) -> Sequence[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> Sequence[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> Sequence[Atom]:
        return self.jaxpr.outvars

    @property
    def literals(self) -> list[Any]:
        """The constants, under their older name."""
        return self.consts

    @property
    def debug_info(self) -> DebugInfo:
        return self.jaxpr.debug_info

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    def map_jaxpr(self, fun: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """What ``fun`` makes of the program, with the same constants."""
        return self.replace(jaxpr=fun(self.jaxpr))

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    def __repr__(self) -> str:
        return repr(self.jaxpr)

    def _repr_html_(self) -> str:
        return self.jaxpr._repr_html_()


def is_literal_value(x: Any) -> bool:
    """Scalars that are written in place instead of becoming constants."""
    return isinstance(x, (bool, int, float, complex, np.generic)) or (isinstance(x, np.ndarray) and x.ndim == 0)


def make_literal(x: Any, aval: ShapedArray | None = None) -> Literal:
    aval = aval_of(x) if aval is None else aval
    return Literal(
        np.asarray(x).astype(aval.dtype)[()] if not hasattr(x, "dtype") or x.dtype != aval.dtype else x, aval
    )


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Applies each equation's primitive in the current trace. Values are dropped after their last use."""
    before = ambient.source, ambient.recorded
    ambient.recorded = True
    try:
        return _eval_eqns(jaxpr, consts, args)
    finally:
        ambient.source, ambient.recorded = before


def _eval_eqns(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    last = last_uses(jaxpr)
    caller = ambient.source

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    for i, eqn in enumerate(jaxpr.eqns):
        ambient.source = eqn.source or caller
        outs = eqn.apply(list(map(read, eqn.invars)))
        for var, value in zip(eqn.outvars, outs, strict=True):
            env[var] = value
        for var in last.get(i, ()):
            del env[var]
    return [read(v) for v in jaxpr.outvars]


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """Equation index -> the variables that no later equation or output reads."""
    seen = {v for v in jaxpr.outvars if isinstance(v, Var)}
    last: dict[int, list[Var]] = {}
    for i in range(len(jaxpr.eqns) - 1, -1, -1):
        eqn = jaxpr.eqns[i]
        dying = []
        for v in (*eqn.invars, *eqn.outvars):
            if type(v) is Var and v not in seen:
                seen.add(v)
                dying.append(v)
        if dying:
            last[i] = dying
    return last


def eliminate_dead_code(
    jaxpr: Jaxpr, used: Sequence[bool] | None = None, keep: Callable[[Eqn], bool] = lambda e: bool(e.effects)
) -> tuple[Jaxpr, list[bool]]:
    """Drops equations without used results or effects.

    Returns the smaller jaxpr, with the outputs for which ``used`` holds and all inputs, and which inputs are used.
    """
    outs = [o for o, u in zip(jaxpr.outvars, used or [True] * len(jaxpr.outvars), strict=True) if u]
    live = {v for v in outs if isinstance(v, Var)}
    eqns: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        used_outs = [v in live for v in eqn.outvars]
        if not any(used_outs) and not keep(eqn):
            continue
        if eqn.primitive.dce is not None and not all(used_outs):
            smaller = eqn.primitive.dce(used_outs, eqn)
            if smaller is None:
                continue
            eqn = smaller
        eqns.append(eqn)
        live.update(v for v in eqn.invars if type(v) is Var)
    pruned = Jaxpr(jaxpr.constvars, jaxpr.invars, outs, eqns[::-1], None, jaxpr.debug_name)
    return pruned, [v in live for v in jaxpr.invars]


def sub_jaxprs(eqn: Eqn) -> list[ClosedJaxpr]:
    """The programs in an equation's parameters."""
    return eqn.primitive.sub_jaxprs(**eqn.params) if eqn.primitive.sub_jaxprs else []


def walk_eqns(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """All equations, those of nested programs included; iterative, in no particular order across nesting levels."""
    stack = [jaxpr]
    while stack:
        for eqn in stack.pop().eqns:
            yield eqn
            stack.extend(c.jaxpr for c in sub_jaxprs(eqn))
