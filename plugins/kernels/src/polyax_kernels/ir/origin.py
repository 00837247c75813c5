"""Where the work of a kernel comes from: names of primitives that know which equation of the program applied them.

Nodes, kernels and steps carry them in ``primitives``; whoever puts two together joins the tuples, as they are.
"""

from __future__ import annotations

from collections.abc import Iterable


class Origin(str):
    """The name of a primitive, applied by equation number ``eqn``: the place in the order in which a program's
    equations are lowered, those of nested programs included.

    >>> sin = Origin("sin", 7)
    >>> sin, sin.eqn, sin == "sin"
    ('sin', 7, True)
    """

    __slots__ = ("eqn",)
    eqn: int

    def __new__(cls, name: str, eqn: int) -> Origin:
        self = super().__new__(cls, name)
        self.eqn = eqn
        return self


def equations(primitives: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the equations behind ``primitives``, in order.

    >>> equations([Origin("sin", 7), "literal", Origin("add", 2), Origin("sin", 7)])
    (2, 7)
    """
    return tuple(sorted({p.eqn for p in primitives if isinstance(p, Origin)}))
