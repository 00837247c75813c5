"""Programs as data, functions of named steps, and their text as Python. Knows no operation and no module of arrays.

Names are unique in a whole program, so that steps can be moved, replaced and left out without thought for scopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

NAMES = re.compile(r"\b[vx]\d+\b")
"""Variables are called ``v7``, arguments of the program ``x0``."""


@dataclass(frozen=True)
class Step:
    """``targets = text``, after the functions that ``text`` names are defined."""

    targets: str
    text: str
    functions: tuple[Function, ...] = ()

    @property
    def made(self) -> set[str]:
        return set(NAMES.findall(self.targets))

    @property
    def used(self) -> set[str]:
        """The names that must be there before."""
        return set(NAMES.findall(self.text)).union(*(f.free for f in self.functions))


@dataclass(frozen=True)
class Function:
    """``def name(params): steps; return returned``; a parameter may be a pattern, as in ``(v1, v2), v3``."""

    name: str
    params: tuple[str, ...]
    steps: tuple[Step, ...] = field(repr=False)
    returned: str

    @property
    def free(self) -> set[str]:
        """The names that it closes over."""
        own = set(NAMES.findall(str(self.params))).union(*(s.made for s in self.steps))
        return set(NAMES.findall(self.returned)).union(*(s.used for s in self.steps)) - own

    def lines(self) -> Iterator[str]:
        names = [p if NAMES.fullmatch(p) else f"a{n}" for n, p in enumerate(self.params)]
        yield f"def {self.name}({', '.join(names)}):"
        for name, pattern in zip(names, self.params):
            if pattern not in (name, "()"):
                yield f"    {pattern} = {name}"
        for step in self.steps:
            for function in step.functions:
                yield from indented(function.lines())
            yield f"    {step.targets} = {step.text}"
        yield f"    return {self.returned}"

    def __str__(self) -> str:
        return "\n".join(self.lines()) + "\n"

    def without_dead_steps(self) -> Function:
        """The function with the steps that its result needs alone."""
        live, kept = set(NAMES.findall(self.returned)), []
        for step in reversed(self.steps):
            if step.made & live:
                step = replace(step, functions=tuple(f.without_dead_steps() for f in step.functions))
                live |= step.used
                kept.append(step)
        return replace(self, steps=tuple(reversed(kept)))

    def size(self) -> int:
        return sum(1 + sum(f.size() for f in s.functions) for s in self.steps)


def indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def literal(x: Any) -> str:
    """The text of an argument: what has a name is called by it."""
    match x:
        case tuple():
            return f"({', '.join(map(literal, x))}{',' * (len(x) == 1)})"
        case list():
            return f"[{', '.join(map(literal, x))}]"
        case np.ndarray():
            return f"np.array({x.tolist()}, {x.dtype.name!r})" if x.size else f"np.zeros({x.shape}, {x.dtype.name!r})"
        case np.dtype() | np.generic():
            return repr(x.name) if isinstance(x, np.dtype) else f"np.{x.dtype.name}({x.item()})"
        case slice():
            ends = ":".join("" if n is None else str(n) for n in (x.start, x.stop, x.step))
            return ends.removesuffix(":") if x.step is None else ends
        case None | bool() | int() | float() | str():
            return repr(x)
        case _:
            return "..." if x is ... else x.name


def index_text(index: Any) -> str:
    """What stands between the brackets of ``x[...]``."""
    parts = index if isinstance(index, tuple) else (index,)
    return ", ".join(map(literal, parts)) if parts else "()"
