"""The text form of jaxprs, as JAX prints them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var

WIDTH = 80
"""What is wider is broken into lines, as in JAX."""
_NOTE = re.compile("\0(.*?)\1")
"""Part of a comment, where its equation is, while a text is made."""
COLOURS = {
    "program": "font-weight:600",
    "types": "color:#8a8f98",
    "primitive": "color:#4f7fd9;font-weight:600",
    "names": "color:#a0743c",
}
"""Of what notebooks show: those that light and dark pages can both show."""
TOKENS = r"""(?P<program>\b(?:lambda|let|in)\b(?=\ [;\(a-z]|$))
      | (?P<types>:(?:[\w~]+\[[^\]]*\](?:\{[^}]*\})?))
      | (?<==\ )(?P<primitive>[a-z]\w*)
      | (?P<names>\b\w+(?==[^=\s]))"""


def variable_names() -> Iterator[str]:
    """``a b ... z ba bb ...``: as in JAX, numbers with 26 digits, of which ``a`` is zero."""
    yield from string.ascii_lowercase
    for head in variable_names():
        if head != "a":
            yield from (head + last for last in string.ascii_lowercase)


class _Namer:
    """Gives each variable the next free name; nested jaxprs go on counting, as in JAX."""

    def __init__(
        self,
        names: Mapping[Var, str] | None = None,
        sources: bool = False,
        types: bool = True,
        scopes: bool = False,
    ) -> None:
        self._names = dict(names or {})
        self._sources, self._scopes, self._types = sources, scopes, types
        self._fresh = variable_names()
        self.used: set[Any] = set()
        """The variables that are read."""
        self.shared: dict[int, str] = {}
        """Names of programs that are there more than once, which are written before all else, as in JAX."""

    def __call__(self, v: Var) -> str:
        if v not in self._names:
            taken = self.shared.values()
            self._names[v] = next(name for name in self._fresh if name not in taken)
        return self._names[v]

    def same_names(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """Variables of a program are called as what they stand for outside, as in JAX; where two stand for one, the
        first is."""
        taken = set[Var]()
        for theirs, ours in zip(inner, outer, strict=True):
            if isinstance(theirs, Var) and theirs not in self._names and isinstance(ours, Var) and ours not in taken:
                taken.add(ours)
                self._names[theirs] = self(ours) if ours in self.used else "_"

    def typed(self, v: Var) -> str:
        return f"{self(v)}:{v.aval.str_short(True)}" if self._types else self(v)

    def annotated(self, text: str, eqn: Eqn) -> str:
        """An equation's text, in whose first line comments tell the user's line and scope if these are asked for."""
        if not eqn.outvars or not (self._sources or self._scopes):
            return text
        notes = [eqn.source.place if eqn.source else ""] * self._sources
        notes += [f"[{eqn.source.scope if eqn.source else ''}]"] * self._scopes
        first, *rest = text.split("\n")
        return "\n".join([first + "".join(f"\0{note}\1" for note in notes), *rest])

    def typed_or_unused(self, v: Var) -> str:
        """``_`` for what nobody reads."""
        return self.typed(v) if v in self.used else f"_:{v.aval.str_short(True)}" if self._types else "_"

    def atom(self, v: Atom, beside: Sequence[Atom] = ()) -> str:
        return literal(v, beside) if isinstance(v, Literal) else self(v)


def literal(lit: Literal, beside: Sequence[Atom] = ()) -> str:
    """A constant with its type: what Python's numbers became, with the digits that tell which, unless it stands
    ``beside`` numbers of a type that isn't weak."""
    value = lit.val
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind != "V":
        value = str(value) if lit.aval.weak_type and not _is_typed(lit, beside) else value.item()
    return f"{value}:{lit.aval.str_short(True)}"


def _is_typed(lit: Literal, beside: Sequence[Atom]) -> bool:
    return any(a.aval.dtype == lit.aval.dtype and not a.aval.weak_type for a in beside)


def pretty_jaxpr(self: Jaxpr) -> str:
    return _whole(self, _Namer())


def _eqn_alone(self: Eqn) -> str:
    return pretty_eqn(self)


def pretty_print(
    self: Jaxpr,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    use_color: bool | None = None,
) -> str:
    """The text of a program, in which ``source_info`` adds to each equation the user's line, and ``name_stack`` the
    names and transformations around it; ``print_shapes=False`` leaves out types. What else JAX can be asked for has no
    other form here."""
    del custom_pp_eqn_rules, print_effects, use_color
    return _whole(self, _Namer(sources=source_info, types=print_shapes, scopes=name_stack))


def pretty_eqn(eqn: Eqn, names: Mapping[Var, str] | None = None) -> str:
    """One equation on its own, for error texts and drawings; ``names`` of variables, if they have some."""
    name = _Namer(names)
    name.used = {*eqn.outvars}
    return _eqn(eqn, name, 0)


def around(jaxpr: Jaxpr, v: Var | None, eqn: Eqn | None, lines: int = 20) -> tuple[str, str, str]:
    """For error texts: the name of a variable, if any, the equation that it is in, and so many lines of the program
    around that, in which variables have the same names."""
    name = _Namer()
    program = _jaxpr(jaxpr, name, 0).split("\n")
    equation = _eqn(eqn, name, 0) if eqn else ""
    at = next((n for n, line in enumerate(program) if line.strip() == equation.split("\n")[0]), 0)
    first, last = max(0, at - lines // 2), at + lines // 2
    shown = ["    ..."] * (first > 0) + program[first:last] + ["    ..."] * (last < len(program))
    return name(v) if v else "", equation, "\n".join(shown)


def _whole(jaxpr: Jaxpr, name: _Namer) -> str:
    """A program, after those that are in it more than once."""
    shared, names = _shared(jaxpr)
    name.shared = {id(inner): called for inner, called in zip(shared, names, strict=True)}
    lets = [f"let {called} = {_program(inner, name, 0, 7 + len(called))} in\n" for inner, called in zip(shared, names)]
    return _with_comments("".join(lets) + _program(jaxpr, name, 0))


def _with_comments(text: str) -> str:
    """Comments below each other in a column of their own."""
    if "\0" not in text:
        return text
    lines = [(_NOTE.sub("", line), _NOTE.findall(line)) for line in text.split("\n")]
    width = max(len(line) for line, notes in lines if notes)
    column = "\n" + " " * width
    return "\n".join(line.ljust(width * bool(notes)) + column.join(f" # {n}" for n in notes) for line, notes in lines)


def _shared(jaxpr: Jaxpr) -> tuple[list[Jaxpr], list[str]]:
    """The programs that are in ``jaxpr`` more than once, and names for them that differ: those of their equations."""
    found, wanted, times, seen = [jaxpr], {id(jaxpr): ""}, Counter[int](), Counter[str]()
    for outer in found:  # which grows
        for inner, called in _programs_in(outer):
            times[id(inner)] += 1
            if id(inner) not in wanted:
                found.append(inner)
                wanted[id(inner)] = called
    for outer in found:
        times.update(id(inner) for inner, _ in _programs_in(outer) if times[id(outer)] > 1)
    shared = [inner for inner in found if times[id(inner)] > 1]
    names: list[str] = []
    for called in (wanted[id(inner)] for inner in shared):
        names.append(f"{called}{seen[called] or ''}")
        seen[called] += 1
    return shared, names


def _programs_in(jaxpr: Jaxpr) -> Iterator[tuple[Jaxpr, str]]:
    """With the names of the equations that they are in."""
    for eqn in jaxpr.eqns:
        called = str(eqn.params.get("name") or "jaxpr").strip("<>")
        for value in _shown(eqn).values():
            for x in value if isinstance(value, tuple) else (value,):
                if isinstance(x, (ClosedJaxpr, Jaxpr)):
                    yield (x.jaxpr if isinstance(x, ClosedJaxpr) else x), called


def _shown(eqn: Eqn) -> dict[str, Any]:
    return eqn.primitive.pretty(**eqn.params) if eqn.primitive.pretty else eqn.params


def _jaxpr(jaxpr: Jaxpr, name: _Namer, indent: int, before: int = 0) -> str:
    return name.shared.get(id(jaxpr)) or _program(jaxpr, name, indent, before)


def _program(jaxpr: Jaxpr, name: _Namer, indent: int, before: int = 0) -> str:
    """A program whose lines are indented so far; ``before`` is what stands on its first line already."""
    pad = " " * indent
    name.used |= {v for e in jaxpr.eqns for v in e.invars} | {*jaxpr.outvars}
    consts = " ".join(map(name.typed, jaxpr.constvars))
    args = "".join(f" {name.typed(v)}" for v in jaxpr.invars)
    head = f"{{ lambda {consts};{args}{'. let' if args else ' . let'}"
    eqns = [name.annotated(_eqn(e, name, indent + 4), e) for e in jaxpr.eqns]
    outs = [name.atom(v) for v in jaxpr.outvars]
    tail = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
    one_line = f"{head} {'; '.join(eqns)} {tail}"
    if _fits(one_line, indent + before):
        return one_line
    return f"{head}\n" + "".join(f"{pad}    {e}\n" for e in eqns) + f"{pad}  {tail}"


def _fits(text: str, indent: int) -> bool:
    return "\n" not in text and indent + len(_NOTE.sub("", text)) <= WIDTH


def _eqn(eqn: Eqn, name: _Namer, indent: int) -> str:
    if eqn.primitive.name == "jit" and id(program := eqn.params["jaxpr"].jaxpr) not in name.shared:
        name.same_names(program.invars, eqn.invars)
        name.same_names(program.outvars, eqn.outvars)
    outs = [*map(name.typed_or_unused, eqn.outvars)]
    if eqn.primitive.text is not None:
        return eqn.primitive.text(outs, [*map(name.atom, eqn.invars)], eqn.invars[0].aval.shape, **eqn.params)
    head = " ".join([*outs, *["="][: len(outs)], eqn.primitive.name])
    args = "".join(f" {name.atom(v, eqn.invars)}" for v in eqn.invars)
    shown = _params(_shown(eqn), name, indent + 2)
    if not shown:
        return head + args
    one_line = f"{head}[{' '.join(shown)}]{args}"
    if _fits(one_line, indent):
        return one_line
    pad = " " * indent
    return f"{head}[\n" + "".join(f"{pad}  {s}\n" for s in shown) + f"{pad}]{args}"


def _holds_programs(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in values)


def _params(params: dict[str, Any], name: _Namer, indent: int) -> list[str]:
    return [f"{k}={_param(v, name, indent, len(k) + 1)}" for k, v in sorted(params.items(), key=_name_first)]


def _name_first(item: tuple[str, Any]) -> tuple[bool, str]:
    return item[0] != "name", item[0]


def _param(value: Any, name: _Namer, indent: int, before: int = 0) -> str:
    if isinstance(value, ClosedJaxpr):
        return _jaxpr(value.jaxpr, name, indent, before)
    if isinstance(value, Jaxpr):
        return _jaxpr(value, name, indent, before)
    if isinstance(value, tuple) and _holds_programs(value):
        pad = " " * indent
        parts = [_param(v, name, indent + 2) for v in value]
        one_line = f"({' '.join(parts)})"
        if _fits(one_line, indent + before):
            return one_line
        return "(\n" + "".join(f"{pad}  {part}\n" for part in parts) + f"{pad})"
    if isinstance(value, np.dtype):
        return value.name
    return str(value)


def coloured(text: str) -> str:
    """HTML that shows the text of a jaxpr."""
    from html import escape  # only notebooks need it

    parts: list[str] = []
    end = 0
    for token in re.finditer(TOKENS, text, re.VERBOSE | re.MULTILINE):
        style = COLOURS[str(token.lastgroup)]
        parts += [escape(text[end : token.start()]), f'<span style="{style}">{escape(token[0])}</span>']
        end = token.end()
    return f'<pre style="white-space:pre;overflow-x:auto">{"".join(parts)}{escape(text[end:])}</pre>'


def _html(self: Jaxpr) -> str:
    return coloured(pretty_jaxpr(self))


Jaxpr.__repr__ = pretty_jaxpr
Jaxpr._repr_html_ = _html
Jaxpr.pretty_print = pretty_print
Eqn.__repr__ = _eqn_alone
