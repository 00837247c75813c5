"""Where the work of a kernel comes from: names of primitives that know which equation of the program applied them, and
whose rule says how it is done.

Nodes, kernels and steps carry them in ``primitives``; whoever puts two together joins the tuples, as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Origin(str):
    """The name of a primitive, applied by equation number ``eqn``: the place in the order in which a program's
    equations are lowered, those of nested programs included. ``rule``: whose lowering was chosen. ``source``: the
    user's line, if it is known.

    >>> sin = Origin("sin", 7, "shared")
    >>> sin, sin.eqn, sin == "sin"
    ('sin', 7, True)
    """

    __slots__ = ("eqn", "rule", "source")
    eqn: int
    rule: str
    source: Any

    def __new__(cls, name: str, eqn: int, rule: str, source: Any = None) -> Origin:
        self = super().__new__(cls, name)
        self.eqn = eqn
        self.rule = rule
        self.source = source
        return self


def equations(primitives: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the equations behind ``primitives``, in order.

    >>> equations([Origin("sin", 7, "shared"), "literal", Origin("add", 2, "host"), Origin("sin", 7, "shared")])
    (2, 7)
    """
    return tuple(sorted({p.eqn for p in primitives if isinstance(p, Origin)}))


def rules(primitives: Iterable[str]) -> tuple[str, ...]:
    """Whose rules run ``primitives``, each once.

    >>> rules([Origin("sin", 7, "shared"), "literal", Origin("add", 2, "host"), Origin("cos", 8, "shared")])
    ('shared', 'host')
    """
    return tuple(dict.fromkeys(p.rule for p in primitives if isinstance(p, Origin)))


def sources(primitives: Iterable[str]) -> tuple[Any, ...]:
    """The user's lines behind ``primitives``, each once.

    >>> sources([Origin("sin", 7, "shared", "f.py:3"), "literal", Origin("cos", 8, "shared", "f.py:3")])
    ('f.py:3',)
    """
    return tuple(dict.fromkeys(p.source for p in primitives if isinstance(p, Origin) and p.source is not None))


def facts(primitives: Iterable[str]) -> dict[str, Any]:
    """What errors tell of work that comes from ``primitives``: their names, and the user's line of the first."""
    known = sources(primitives)
    return {"primitives": ", ".join(dict.fromkeys(map(str, primitives))), "source": known[0] if known else None}
