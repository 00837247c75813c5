"""The engine: what it takes, and how a program becomes something that it runs. This is the file to translate.

It writes the text of one Python function, a line for each equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from polyax.backend import Eqn, Jaxpr, Literal, Var, blame

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""From the arrays of a program's inputs to those of its results."""
DTYPES = ("bool", "int32", "float32", "float64")


def infix(sign: str) -> Callable[..., str]:
    return lambda eqn, x, y: f"{x} {sign} {y}"


def function(name: str) -> Callable[..., str]:
    return lambda eqn, *args: f"np.{name}({', '.join(args)})"


SIGNS = {"add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
RULES: dict[str, Callable[..., str]] = {
    **{name: infix(sign) for name, sign in SIGNS.items()},
    **{name: function(name) for name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "abs")},
    "neg": lambda eqn, x: f"-{x}",
    "transpose": lambda eqn, x: f"{x}.transpose({eqn.params['permutation']})",
    "reshape": lambda eqn, x: f"{x}.reshape({eqn.outvars[0].aval.shape})",
    "reduce_sum": lambda eqn, x: f"np.sum({x}, {tuple(eqn.params['axes'])}, {x}.dtype)",
}
"""What an equation becomes, by its primitive: here the text that computes it, given the names of its operands."""


def why_not(name: str, dtypes: Iterable[str]) -> str | None:
    """The reason why the engine doesn't take a primitive on these types, if so."""
    if name not in RULES:
        return "the engine has no operator for it"
    lacking = sorted({*dtypes}.difference(DTYPES))
    return f"the engine has no {' and no '.join(lacking)}" if lacking else None


def session(jaxpr: Jaxpr) -> Run:
    """A program, ready to run. What the engine raises says which equations it was at."""
    text, values = source(jaxpr)
    names: dict[str, Any] = {"np": np, "k": values}
    exec(compile(text, "<engine>", "exec"), names)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            with np.errstate(all="ignore"):
                return [np.asarray(x) for x in names["program"](*arrays)]
        except Exception as e:
            blame(e, primitives=", ".join(dict.fromkeys(eqn.primitive.name for eqn in jaxpr.eqns)))
            raise

    return run


def source(jaxpr: Jaxpr) -> tuple[str, list[np.ndarray]]:
    """The text of a program, and the values of the literals ``k`` in it."""
    literals: list[np.ndarray] = []
    names: dict[Var, str] = {}

    def name(atom: Any) -> str:
        if isinstance(atom, Literal):
            literals.append(np.asarray(atom.val, atom.aval.dtype))
            return f"k[{len(literals) - 1}]"
        return names.setdefault(atom, f"v{len(names)}")

    lines = [f"def program({', '.join(map(name, jaxpr.invars))}):"]
    for eqn in jaxpr.eqns:
        text = said(eqn, *map(name, eqn.invars))
        lines.append(f"    {name(eqn.outvars[0])} = {text}")
    lines.append(f"    return [{', '.join(map(name, jaxpr.outvars))}]")
    return "\n".join([*lines, ""]), literals


def said(eqn: Eqn, *operands: str) -> str:
    """What its rule says of an equation; an error in the rule tells which equation that was."""
    try:
        return RULES[eqn.primitive.name](eqn, *operands)
    except Exception as e:
        blame(e, primitives=eqn.primitive.name, source=eqn.source)
        raise
