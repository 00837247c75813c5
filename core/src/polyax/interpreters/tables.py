"""A rule slot of all primitives as a dictionary, which is how JAX's programs register rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from polyax.ir.primitive import PRIMITIVES, Primitive

Rule = Callable[..., Any]
Adapt = Callable[[Primitive, Rule], Rule]


class RuleTable(MutableMapping[Primitive, Rule]):
    """``table[p] = rule``, with rules written as JAX's: their results are lists only if ``p.multiple_results`` is set.

    Rules are adapted to the slot, and read back as they were given; polyax's own are adapted when they are read.
    """

    def __init__(self, slot: str, adapt: Adapt, shown: Adapt) -> None:
        self._slot = slot
        self._adapt = adapt
        self._shown = shown
        self._given: dict[Primitive, Rule] = {}

    def __setitem__(self, primitive: object, rule: Rule) -> None:
        if not isinstance(primitive, Primitive):
            raise TypeError(f"rules belong to primitives, such as polyax.lax.sin_p, got {primitive!r}")
        if not callable(rule):
            raise TypeError(f"the {self._slot} rule of '{primitive}' must be a function, got {rule!r}")
        self._given[primitive] = rule
        setattr(primitive, self._slot, self._adapt(primitive, rule))

    def __getitem__(self, primitive: Primitive) -> Rule:
        if (given := self._given.get(primitive)) is not None:
            return given
        if (own := getattr(primitive, self._slot, None)) is None:
            raise KeyError(primitive)
        return self._shown(primitive, lambda *args, **params: own(*args, **primitive.known_params(params)))

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        self._given.pop(primitive, None)
        setattr(primitive, self._slot, None)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in PRIMITIVES if getattr(p, self._slot) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def pair(primitive: Primitive, what: str, result: Any) -> tuple[Any, Any]:
    """What a rule returned, which must be a pair."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"The {what} rule of '{primitive}' must return a pair, but returned {result!r}")
    return result[0], result[1]


def single(primitive: Primitive, results: list[Any]) -> Any:
    """Results as a rule written as JAX's gives them."""
    return results if primitive.multiple_results else results[0]
