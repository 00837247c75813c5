"""The table of rules, and how functions get into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]

RULES: dict[str, Rule] = {}
"""By the name of a primitive: ``rule(eqn, *tensors)`` gives the tensors of its results, or one. Where there are no
operands, it gets the model instead."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: ``fun(*tensors, **params)`` gives what these primitives become."""

    def register(fun: Rule) -> Rule:
        for name in names:
            RULES[name] = lambda eqn, *args: fun(*args, **eqn.params)
        return fun

    return register
